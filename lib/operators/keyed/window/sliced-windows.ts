/**
 * Tumbling, hopping, sliding and calendar-day windows of one key.
 *
 * 1. A record is late where it is late for every window that it is in. For a window that is over by the larger of its own mark
 *    and the watermark it does not count, whether or not that window was put out already: reading speed makes no difference.
 * 2. Before a record is stepped, whatever its watermark makes due was fired. So a window that ends by the watermark is closed.
 * 3. While a key has slices it has a timer, at the time when something is due or before. A deployment with another grace or
 *    emission finds the timers of the one before: what it would have put out by then comes with one of them.
 * 4. What no record that is in time can change any more is forgotten with the next firing, but never before it was put out.
 */
import type { RecordInfo } from '../../../core/record.ts'
import type { Slice, SlicedWindows } from '../../../time/windows/window.ts'
import {
  contentOf,
  decodeSlices,
  type Emitted,
  emittedOf,
  encodeSlices,
  type FilledSlice,
  noneOver,
  noSlices,
  noted,
  placeOf,
  pruned,
  type SliceState,
  staled,
} from './slices.ts'
import {
  emitResult,
  type LinkedParts,
  type WindowDeclaration,
  type WindowKind,
  type WindowLink,
  WindowState,
} from './window-parts.ts'

export function slicedWindows<T>(windows: SlicedWindows, declaration: WindowDeclaration<T>): WindowKind<T, SliceState> {
  const { aggregator } = declaration
  return {
    encode: (state) => encodeSlices(state, windows, aggregator),
    decode: (stored) => decodeSlices(stored, windows, aggregator),
    link: (parts) => new SlicedLink(windows, declaration, parts),
  }
}

class SlicedLink<T> implements WindowLink<T> {
  readonly #windows: SlicedWindows
  readonly #declaration: WindowDeclaration<T>
  readonly #parts: LinkedParts<T>
  readonly #state: WindowState<SliceState>

  constructor(windows: SlicedWindows, declaration: WindowDeclaration<T>, parts: LinkedParts<T>) {
    this.#windows = windows
    this.#declaration = declaration
    this.#parts = parts
    this.#state = new WindowState(declaration.name, parts.context)
  }

  readonly record = (value: T, record: RecordInfo): void => {
    const windows = this.#windows
    const { context, late } = this.#parts
    const { ownMarkMs, watermarkMs } = context.times()
    const before = this.#state.get() ?? noSlices
    // Windows that end by this time take nothing any more.
    const overMs = Math.max(Math.max(ownMarkMs, watermarkMs) - windows.graceMs, before.overMs ?? noneOver)
    const startMs = windows.sliceOf(record.eventTimeMs)
    if (windows.lastEndOf(startMs) <= overMs) {
      late(value, record)
      return
    }
    const firstEndMs = windows.firstEndOf(startMs)
    const fromEndMs = firstEndMs > overMs ? firstEndMs : windows.endBeyond(startMs, overMs)
    const slice = { startMs, fromEndMs }
    const place = placeOf(before.slices, slice, windows)
    const slices = this.#filled(before.slices, place, slice, value, record)
    const emitted = this.#updated(slices, before, slice, watermarkMs)
    this.#state.set({ slices, emitted, overMs: before.overMs })
    if (place < 0) this.#state.wakeBy(this.#dueAfter(slices, watermarkMs))
  }

  fire(timeMs: number, isQuiet: boolean): void {
    const state = this.#state.get()
    if (state === undefined) return
    const { emit, aggregator } = this.#declaration
    const { graceMs } = this.#windows
    const isFinal = emit === 'final' || (emit === 'on-close' && graceMs === 0)
    const putOut: Emitted[] = []
    for (const endMs of this.#dueBy(state, timeMs)) {
      const before = emittedOf(state, endMs)
      // What has changed it since was a revision of its own.
      if (isQuiet || (before !== undefined && !before.isStale && !isFinal)) continue
      const revision = (before?.revision ?? -1) + 1
      this.#emit(state.slices, endMs, revision, isFinal)
      if (!isFinal) putOut.push({ endMs, revision })
    }
    const emitted = noted(state.emitted, putOut)
    const after = pruned({ ...state, emitted }, timeMs - graceMs, this.#windows, aggregator)
    if (after.slices.length === 0) {
      this.#state.clear()
      return
    }
    this.#state.set(after)
    this.#state.wakeBy(this.#dueAfter(after.slices, timeMs))
  }

  /**
   * The ends of all windows that are to be put out now, or were. With 'on-close' these are, beside those that close, those that are
   * settled now: a deployment that says 'final' may not have put them out, or the firing at their end was given up. With
   * 'on-update' none is left but by a deployment with another emission.
   */
  #dueBy({ slices, overMs }: SliceState, timeMs: number): readonly number[] {
    const { emit } = this.#declaration
    const windows = this.#windows
    const settledMs = timeMs - windows.graceMs
    const dueMs = emit === 'final' ? settledMs : timeMs
    const fromMs = overMs === undefined ? dueMs : overMs + 1
    if (emit === 'on-update') return windows.endsOf(slices, fromMs, Number.POSITIVE_INFINITY)
    const settled = windows.endsOf(slices, fromMs, settledMs)
    return emit === 'final' || settledMs === timeMs
      ? settled
      : [...settled, ...windows.endsOf(slices, Math.max(fromMs, timeMs), timeMs)]
  }

  /** The slices with the value in the one at `place`, or in a new one. */
  #filled(
    slices: readonly FilledSlice[],
    place: number,
    slice: Slice,
    value: T,
    record: RecordInfo,
  ): readonly FilledSlice[] {
    const { aggregator } = this.#declaration
    if (place < 0) {
      const begun = { ...slice, accumulator: aggregator.add(aggregator.init(), value, record) }
      return slices.toSpliced(-1 - place, 0, begun)
    }
    const { startMs, fromEndMs, accumulator } = slices[place] as FilledSlice
    const filled = { startMs, fromEndMs, accumulator: aggregator.add(accumulator, value, record) }
    if (slices.length === 1) return [filled]
    const after = slices.slice()
    after[place] = filled
    return after
  }

  /** Puts out the windows that a record in that slice has changed, or made exist, where it is time; gives all that were put out. */
  #updated(slices: readonly FilledSlice[], before: SliceState, slice: Slice, watermarkMs: number): readonly Emitted[] {
    const windows = this.#windows
    const { emit } = this.#declaration
    const { emitted } = before
    if (emit === 'final') return staled(emitted, slice.fromEndMs, windows.lastEndOf(slice.startMs))
    const isOnClose = emit === 'on-close'
    // What a deployment with 'on-update' has put out of open windows goes on being revised.
    const latestMs = isOnClose ? Math.max(watermarkMs, emitted.at(-1)?.endMs ?? watermarkMs) : Number.POSITIVE_INFINITY
    if (slice.fromEndMs > latestMs) return emitted
    const putOut: Emitted[] = []
    for (const endMs of windows.endsOf(slices, slice.fromEndMs, Math.min(windows.neededUntil(slice), latestMs))) {
      const known = emittedOf(before, endMs)
      if (isOnClose && endMs > watermarkMs && known === undefined) continue
      const revision = (known?.revision ?? -1) + 1
      // It exists because of the slice, which is not in it; if it did before, the record has not changed it.
      if (endMs > windows.lastEndOf(slice.startMs) && revision > 0) continue
      this.#emit(slices, endMs, revision, false)
      putOut.push({ endMs, revision })
    }
    return noted(emitted, putOut)
  }

  #emit(slices: readonly FilledSlice[], endMs: number, revision: number, isFinal: boolean): void {
    const { aggregator } = this.#declaration
    const window = { startMs: this.#windows.startOf(endMs, slices), endMs }
    const content = contentOf(slices, window, this.#windows, aggregator)
    if (content === undefined) return
    const value = aggregator.result(content.accumulator)
    emitResult(this.#parts, { window, revision, isFinal, isRetracted: false, value })
  }

  /** When there is something to do next: to put a window out or, where all are, to forget. */
  #dueAfter(slices: readonly FilledSlice[], timeMs: number): number {
    const windows = this.#windows
    const { graceMs } = windows
    const { emit } = this.#declaration
    if (emit === 'on-close') {
      const endMs = windows.nextEnd(slices, timeMs)
      if (endMs !== undefined) return endMs
    } else if (emit === 'final') {
      const endMs = windows.nextEnd(slices, timeMs - graceMs)
      if (endMs !== undefined) return endMs + graceMs
    }
    return windows.neededUntil(slices.at(-1) as FilledSlice) + graceMs
  }
}
