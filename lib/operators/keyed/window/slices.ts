/**
 * The slices and the emitted windows of one key, as a value that is never changed.
 *
 * 1. Slices stand in the order of their starts, those of one start in the order of their first ends.
 * 2. A window's content is the merge of the slices in it that count for its end.
 */
import type { StateValue } from '../../../state/state-store.ts'
import type { Slice, SlicedWindows } from '../../../time/windows/window.ts'
import type { Aggregator } from '../../aggregators/aggregator.ts'

export interface FilledSlice extends Slice {
  readonly accumulator: unknown
}

export interface Emitted {
  readonly endMs: number
  readonly revision: number
}

export interface SliceState {
  readonly slices: readonly FilledSlice[]
  /** Windows with results that may still be revised, by their ends, ascending. */
  readonly emitted: readonly Emitted[]
}

export const noSlices: SliceState = { slices: [], emitted: [] }

/** Where the slice stands; or, as a negative number, -1 minus where it belongs. From behind: most records are of late slices. */
export function placeOf(slices: readonly Slice[], startMs: number, fromEndMs: number): number {
  for (let i = slices.length - 1; i >= 0; i -= 1) {
    const slice = slices[i] as Slice
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
  startMs: number,
  endMs: number,
  aggregator: Aggregator<never, unknown>,
): { readonly accumulator: unknown } | undefined {
  let content: { accumulator: unknown } | undefined
  for (const slice of slices) {
    if (slice.startMs >= endMs) break
    if (slice.startMs < startMs || slice.fromEndMs > endMs) continue
    if (content === undefined) content = { accumulator: slice.accumulator }
    else content.accumulator = aggregator.merge(content.accumulator, slice.accumulator)
  }
  return content
}

/** The last revision that was put out of the window of that end; -1 where there is none. */
export function revisionOf({ emitted }: SliceState, endMs: number): number {
  return emitted.findLast((one) => one.endMs === endMs)?.revision ?? -1
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

/** Without what no window needs that ends beyond `overMs`, and with slices as one that count for the same of those. */
export function pruned(
  { slices, emitted }: SliceState,
  overMs: number,
  windows: SlicedWindows,
  aggregator: Aggregator<never, unknown>,
): SliceState {
  const kept: FilledSlice[] = []
  for (const slice of slices) {
    if (windows.neededUntil(slice.startMs) <= overMs) continue
    const before = kept.at(-1)
    const countsFor = windows.endBeyond(slice.startMs, overMs)
    const isOne = before?.startMs === slice.startMs && before.fromEndMs <= countsFor && slice.fromEndMs <= countsFor
    const merged = isOne ? mergedOf(before, slice, aggregator) : undefined
    if (merged === undefined) kept.push(slice)
    else kept[kept.length - 1] = merged
  }
  return { slices: kept, emitted: emitted.filter(({ endMs }) => endMs > overMs) }
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

/** `{ slices: [[startMs, fromEndMs, accumulator]], emitted: [[endMs, revision]] }`; nothing emitted is left out. */
export function encodeSlices({ slices, emitted }: SliceState, aggregator: Aggregator<never, unknown>): StateValue {
  const stored = slices.map(({ startMs, fromEndMs, accumulator }) => [
    startMs,
    fromEndMs,
    aggregator.encode(accumulator),
  ])
  if (emitted.length === 0) return { slices: stored }
  return { emitted: emitted.map(({ endMs, revision }) => [endMs, revision]), slices: stored }
}

export function decodeSlices(stored: StateValue, aggregator: Aggregator<never, unknown>): SliceState {
  const { slices, emitted = [] } = stored as {
    readonly slices: readonly (readonly [number, number, StateValue])[]
    readonly emitted?: readonly (readonly [number, number])[]
  }
  return {
    slices: slices.map(([startMs, fromEndMs, accumulator]) => {
      return { startMs, fromEndMs, accumulator: aggregator.decode(accumulator) }
    }),
    emitted: emitted.map(([endMs, revision]) => ({ endMs, revision })),
  }
}
