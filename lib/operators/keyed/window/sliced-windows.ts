/**
 * Tumbling, hopping, sliding and calendar-day windows of one key.
 *
 * 1. A record is late where it is late for every window that it is in. For a window that is over by the larger of its own mark
 *    and the watermark it does not count, whether or not that window was put out already: reading speed makes no difference.
 * 2. Before a record is stepped, whatever its watermark makes due was fired. So a window that ends by the watermark is closed.
 * 3. While a key has slices it has a timer, at the time when something is due or before.
 * 4. What no record that is in time can change any more is forgotten with the next firing.
 */
import type { RecordInfo } from '../../../core/record.ts'
import type { SlicedWindows } from '../../../time/windows/window.ts'
import {
  contentOf,
  decodeSlices,
  type Emitted,
  encodeSlices,
  type FilledSlice,
  noSlices,
  noted,
  placeOf,
  pruned,
  revisionOf,
  type SliceState,
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
    encode: (state) => encodeSlices(state, aggregator),
    decode: (stored) => decodeSlices(stored, aggregator),
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
    // Windows that end by this time take nothing any more.
    const overMs = Math.max(ownMarkMs, watermarkMs) - windows.graceMs
    const startMs = windows.sliceOf(record.eventTimeMs)
    if (windows.lastEndOf(startMs) <= overMs) {
      late(value, record)
      return
    }
    const firstEndMs = windows.firstEndOf(startMs)
    const fromEndMs = firstEndMs > overMs ? firstEndMs : windows.endBeyond(startMs, overMs)
    const before = this.#state.get() ?? noSlices
    const place = placeOf(before.slices, startMs, fromEndMs)
    const slices = this.#filled(before.slices, place, { startMs, fromEndMs }, value, record)
    const { emit } = this.#declaration
    const putsOut = emit === 'on-update' || (emit === 'on-close' && fromEndMs <= watermarkMs)
    this.#state.set(
      putsOut ? this.#updated(slices, before, startMs, fromEndMs, watermarkMs) : { slices, emitted: before.emitted },
    )
    if (place < 0) this.#state.wakeBy(this.#dueAfter(slices, watermarkMs))
  }

  fire(timeMs: number, isQuiet: boolean): void {
    const state = this.#state.get()
    if (state === undefined) return
    const windows = this.#windows
    const { emit } = this.#declaration
    const isFinal = emit === 'final' || windows.graceMs === 0
    const putOut: Emitted[] = []
    const throughMs = emit === 'final' ? timeMs - windows.graceMs : timeMs
    const ends = emit === 'on-update' ? [] : windows.endsOf(state.slices, throughMs, throughMs)
    for (const endMs of ends) {
      const revision = revisionOf(state, endMs) + 1
      if (isQuiet) continue
      this.#emit(state.slices, endMs, revision, isFinal)
      if (!isFinal) putOut.push({ endMs, revision })
    }
    const emitted = noted(state.emitted, putOut)
    const after = pruned(
      { slices: state.slices, emitted },
      timeMs - windows.graceMs,
      windows,
      this.#declaration.aggregator,
    )
    if (after.slices.length === 0) {
      this.#state.clear()
      return
    }
    this.#state.set(after)
    this.#state.wakeBy(this.#dueAfter(after.slices, timeMs))
  }

  /** The slices with the value in the one at `place`, or in a new one. */
  #filled(
    slices: readonly FilledSlice[],
    place: number,
    slice: { readonly startMs: number; readonly fromEndMs: number },
    value: T,
    record: RecordInfo,
  ): readonly FilledSlice[] {
    const { aggregator } = this.#declaration
    const before = place < 0 ? aggregator.init() : (slices[place] as FilledSlice).accumulator
    const { startMs, fromEndMs } = slice
    const filled = { startMs, fromEndMs, accumulator: aggregator.add(before, value, record) }
    if (place < 0) return slices.toSpliced(-1 - place, 0, filled)
    if (slices.length === 1) return [filled]
    const after = slices.slice()
    after[place] = filled
    return after
  }

  /** Puts out the windows that a record in that slice has changed, or made exist. */
  #updated(
    slices: readonly FilledSlice[],
    before: SliceState,
    startMs: number,
    fromEndMs: number,
    watermarkMs: number,
  ): SliceState {
    const windows = this.#windows
    const neededMs = windows.neededUntil(startMs)
    const throughMs = this.#declaration.emit === 'on-update' ? neededMs : Math.min(neededMs, watermarkMs)
    const putOut: Emitted[] = []
    for (const endMs of windows.endsOf(slices, fromEndMs, throughMs)) {
      const revision = revisionOf(before, endMs) + 1
      // It exists because of the slice, which is not in it; if it did before, the record has not changed it.
      if (endMs > windows.lastEndOf(startMs) && revision > 0) continue
      this.#emit(slices, endMs, revision, false)
      putOut.push({ endMs, revision })
    }
    return { slices, emitted: noted(before.emitted, putOut) }
  }

  #emit(slices: readonly FilledSlice[], endMs: number, revision: number, isFinal: boolean): void {
    const { aggregator } = this.#declaration
    const startMs = this.#windows.startOf(endMs)
    const content = contentOf(slices, startMs, endMs, aggregator)
    if (content === undefined) return
    const value = aggregator.result(content.accumulator)
    emitResult(this.#parts, { window: { startMs, endMs }, revision, isFinal, isRetracted: false, value })
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
    return windows.neededUntil((slices.at(-1) as FilledSlice).startMs) + graceMs
  }
}
