/** Windows of one size that begin at multiples of one step since 1970 UTC. */
import type { Duration } from '../../core/duration.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { floorTo, type GraceOptions, graceOf, lengthOf, type Slice, type SlicedWindows } from './window.ts'

/**
 * Windows of one size, one behind the other: a time `t` is in
 *
 *     [floor(t / size) * size, floor(t / size) * size + size)
 *
 * They are aligned to 1970-01-01T00:00Z, before it as after it.
 *
 *     size 10        |---------|---------|---------|
 *                   -10        0        10        20
 *     t = -1              in [-10, 0)
 *     t = 0                     in [0, 10)
 *
 * Throws a {@link ConfigurationError} where the size is not above 0, or the grace is left out.
 *
 * @example
 * keyed.window(tumbling(minutes(5), { grace: minutes(2) }))
 */
export function tumbling(size: Duration, options: GraceOptions): SlicedWindows {
  const sizeMs = lengthOf('tumbling', 'size', size)
  const graceMs = graceOf('tumbling', options)
  return { ...aligned(sizeMs, sizeMs), kind: 'tumbling', graceMs, label: `tumbling(${sizeMs} ms)` }
}

/**
 * Windows of one size of which one begins every so often: a time `t` is in every
 *
 *     [k * every, k * every + size)   with   k * every <= t < k * every + size
 *
 * for whole numbers `k`, of either sign. A value is kept once per slice of `gcd(size, every)`, not once per window.
 *
 *     size 10, every 4      0   4   8   12  16  20
 *     [0, 10)               |---------|
 *     [4, 14)                   |---------|
 *     [8, 18)                       |---------|
 *     t = 9 is in all three; t = 10 in [4, 14) and [8, 18)
 *
 * Throws a {@link ConfigurationError} where a length is not above 0, where `every` is longer than the size (records between
 * two windows would be in none), or the grace is left out.
 *
 * @example
 * keyed.window(hopping(hours(1), { every: minutes(5), grace: minutes(2) }))
 */
export function hopping(size: Duration, options: GraceOptions & { readonly every: Duration }): SlicedWindows {
  const sizeMs = lengthOf('hopping', 'size', size)
  const everyMs = lengthOf('hopping', 'step `every`', options?.every)
  const graceMs = graceOf('hopping', options)
  if (everyMs > sizeMs) {
    throw new ConfigurationError(
      `hopping: a window of ${sizeMs} ms every ${everyMs} ms leaves records out that are between two windows: let \`every\` be at most the size.`,
    )
  }
  const label = `hopping(${sizeMs} ms, every ${everyMs} ms)`
  return { ...aligned(sizeMs, everyMs), kind: 'hopping', graceMs, label }
}

type Aligned = Omit<SlicedWindows, 'kind' | 'graceMs' | 'label'>

function aligned(sizeMs: number, everyMs: number): Aligned {
  const sliceMs = gcd(sizeMs, everyMs)
  const lastEndOf = (timeMs: number): number => floorTo(timeMs, everyMs) + sizeMs
  /** The least end of any window beyond that time. */
  const endAfter = (timeMs: number): number => floorTo(timeMs - sizeMs, everyMs) + everyMs + sizeMs
  const nextEnd = (slices: readonly Slice[], afterMs: number): number | undefined => {
    let next: number | undefined
    for (const { startMs, fromEndMs } of slices) {
      const endMs = fromEndMs > afterMs ? fromEndMs : endAfter(afterMs)
      if (endMs <= lastEndOf(startMs) && (next === undefined || endMs < next)) next = endMs
      // All that come behind begin later, so they end no sooner.
      if (next !== undefined && startMs >= next) break
    }
    return next
  }
  return {
    sharesSlices: everyMs < sizeMs,
    sliceOf: (timeMs) => floorTo(timeMs, sliceMs),
    firstEndOf: endAfter,
    lastEndOf,
    endBeyond: (startMs, timeMs) => Math.max(endAfter(startMs), endAfter(timeMs)),
    neededUntil: ({ startMs }) => lastEndOf(startMs),
    startOf: (endMs) => endMs - sizeMs,
    endsOf(slices, fromMs, throughMs) {
      const ends: number[] = []
      // Ends are whole, so those from `fromMs` on are those beyond the ms before it.
      let endMs = nextEnd(slices, fromMs - 1)
      for (; endMs !== undefined && endMs <= throughMs; endMs = nextEnd(slices, endMs)) ends.push(endMs)
      return ends
    },
    nextEnd,
  }
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}
