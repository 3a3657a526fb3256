/**
 * The slices and the emitted windows of one key, as a value that is never changed.
 *
 * 1. Slices stand in the order of their starts, those of one start in the order of their first ends.
 * 2. A window's content is the merge of the slices in it that count for its end.
 * 3. What there is of a window that is not settled is kept, whichever grace and emission are declared. A settled one, which gets
 *    no result any more, has no slice left or, where windows share slices, ends by `overMs`. So the state itself says what is
 *    still to be put out, and a deployment may say otherwise when than the one before.
 */
import type { StateValue } from '../../../state/state-store.ts'
import type { Slice, SlicedWindows, WindowBounds } from '../../../time/windows/window.ts'
import type { Aggregator } from '../../aggregators/aggregator.ts'

export interface FilledSlice extends Slice {
  readonly accumulator: unknown
}

export interface Emitted {
  readonly endMs: number
  readonly revision: number
  /** Whether the window has changed since, and nothing was put out for it: a deployment that says 'final' came in between. */
  readonly isStale?: true
}

export interface SliceState {
  readonly slices: readonly FilledSlice[]
  /** Windows with results that may still be revised, by their ends, ascending. */
  readonly emitted: readonly Emitted[]
  /**
   * Windows that end by this time are settled. Undefined where a release wrote the state that did not say so: then it is what a
   * firing of the same windows would find.
   */
  readonly overMs: number | undefined
}

/** Where no window is settled that slices could still show. */
export const noneOver = Number.NEGATIVE_INFINITY

export const noSlices: SliceState = { slices: [], emitted: [], overMs: noneOver }

/** Where the slice stands; or, as a negative number, -1 minus where it belongs. From behind: most records are of late slices. */
export function placeOf(
  slices: readonly Slice[],
  { startMs, fromEndMs }: Slice,
  { sharesSlices }: SlicedWindows,
): number {
  for (let i = slices.length - 1; i >= 0; i -= 1) {
    const slice = slices[i] as Slice
    // A window that is open keeps the start that it began with, though the rules of its zone may say another by now.
    if (!sharesSlices && slice.fromEndMs === fromEndMs) return i
    if (slice.startMs < startMs) return -2 - i
    if (slice.startMs > startMs) continue
    if (slice.fromEndMs === fromEndMs) return i
    if (slice.fromEndMs < fromEndMs) return -2 - i
  }
  return -1
}

/** What the window of that end holds; undefined where it holds nothing. */
export function contentOf(
  slices: readonly FilledSlice[],
  { startMs, endMs }: WindowBounds,
  { sharesSlices }: SlicedWindows,
  aggregator: Aggregator<never, unknown>,
): { readonly accumulator: unknown } | undefined {
  let content: { accumulator: unknown } | undefined
  for (const slice of slices) {
    if (slice.startMs >= endMs) break
    if (slice.startMs < startMs || slice.fromEndMs > endMs) continue
    if (!sharesSlices && slice.fromEndMs < endMs) continue
    if (content === undefined) content = { accumulator: slice.accumulator }
    else content.accumulator = aggregator.merge(content.accumulator, slice.accumulator)
  }
  return content
}

/** What was put out of the window of that end. */
export function emittedOf({ emitted }: SliceState, endMs: number): Emitted | undefined {
  return emitted.findLast((one) => one.endMs === endMs)
}

/** With those put out besides; both are in the order of their ends. */
export function noted(emitted: readonly Emitted[], more: readonly Emitted[]): readonly Emitted[] {
  if (more.length === 0) return emitted
  const after: Emitted[] = []
  let next = 0
  for (const one of emitted) {
    for (; next < more.length && (more[next] as Emitted).endMs < one.endMs; next += 1) after.push(more[next] as Emitted)
    if (more[next]?.endMs !== one.endMs) after.push(one)
  }
  for (; next < more.length; next += 1) after.push(more[next] as Emitted)
  return after
}

/** With the windows that end from one time through another as changed, though nothing was put out. */
export function staled(emitted: readonly Emitted[], fromMs: number, throughMs: number): readonly Emitted[] {
  if (emitted.length === 0) return emitted
  return emitted.map((one) => (one.endMs < fromMs || one.endMs > throughMs ? one : { ...one, isStale: true }))
}

/** Without what no window needs that ends beyond `settledMs`, and with slices as one that count for the same of those. */
export function pruned(
  { slices, emitted, overMs: before = noneOver }: SliceState,
  settledMs: number,
  windows: SlicedWindows,
  aggregator: Aggregator<never, unknown>,
): SliceState {
  // A longer grace than before opens nothing again.
  const overMs = Math.max(before, settledMs)
  const left = slices.filter((slice) => windows.neededUntil(slice) > overMs)
  const still = emitted.filter(({ endMs }) => endMs > overMs)
  if (!windows.sharesSlices) return { slices: left, emitted: still, overMs: noneOver }
  const kept: FilledSlice[] = []
  for (const slice of left) {
    const last = kept.at(-1)
    const countsFor = windows.endBeyond(slice.startMs, overMs)
    const isOne = last?.startMs === slice.startMs && last.fromEndMs <= countsFor && slice.fromEndMs <= countsFor
    const merged = isOne ? mergedOf(last, slice, aggregator) : undefined
    if (merged === undefined) kept.push(slice)
    else kept[kept.length - 1] = merged
  }
  return { slices: kept, emitted: still, overMs }
}

/** Both as one; undefined where that throws: then they stay apart, and each window that needs both fails when it is put out. */
function mergedOf(
  before: FilledSlice,
  slice: FilledSlice,
  aggregator: Aggregator<never, unknown>,
): FilledSlice | undefined {
  try {
    return { ...before, accumulator: aggregator.merge(before.accumulator, slice.accumulator) }
  } catch {
    return undefined
  }
}

/**
 * `{ slices: [[startMs, fromEndMs, accumulator]], emitted: [[endMs, revision]], over: overMs }`; nothing emitted is left out, what is
 * stale of it has a third element, and `over` is of windows that share slices alone: null where none is settled.
 */
export function encodeSlices(
  { slices, emitted, overMs }: SliceState,
  { sharesSlices }: SlicedWindows,
  aggregator: Aggregator<never, unknown>,
): StateValue {
  const stored = slices.map(({ startMs, fromEndMs, accumulator }) => [
    startMs,
    fromEndMs,
    aggregator.encode(accumulator),
  ])
  return {
    ...(emitted.length > 0 && { emitted: emitted.map(encodeEmitted) }),
    ...(sharesSlices && overMs !== undefined && { over: Number.isFinite(overMs) ? overMs : null }),
    slices: stored,
  }
}

const encodeEmitted = ({ endMs, revision, isStale }: Emitted) => (isStale ? [endMs, revision, 1] : [endMs, revision])

export function decodeSlices(
  stored: StateValue,
  { sharesSlices }: SlicedWindows,
  aggregator: Aggregator<never, unknown>,
): SliceState {
  const {
    slices,
    emitted = [],
    over,
  } = stored as {
    readonly slices: readonly (readonly [number, number, StateValue])[]
    readonly emitted?: readonly (readonly [number, number, 1?])[]
    readonly over?: number | null
  }
  return {
    slices: slices.map(([startMs, fromEndMs, accumulator]) => {
      return { startMs, fromEndMs, accumulator: aggregator.decode(accumulator) }
    }),
    emitted: emitted.map(([endMs, revision, stale]) => ({ endMs, revision, ...(stale && { isStale: true }) })),
    overMs: sharesSlices && over === undefined ? undefined : (over ?? noneOver),
  }
}
