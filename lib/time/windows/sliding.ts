/** Windows that move with the records: one for every set of records that a window of the size can hold. */
import type { Duration } from '../../core/duration.ts'
import { type GraceOptions, graceOf, lengthOf, type Slice, type SlicedWindows } from './window.ts'

/**
 * A window of one size that slides over the times of a key's records. Each record has two: the window that it has just come
 * into, and the one that it has just left:
 *
 *     [t + 1 - size, t + 1)    which ends with it
 *     [t + 1, t + 1 + size)    which begins behind it, where any record is in it
 *
 * So there is one window for every set of records less than `size` apart, as in Kafka Streams, whose time difference is
 * `size - 1 ms`. Windows of other bounds hold what one of these holds.
 *
 *     size 10           0    3        9   12        22
 *     records                a            b
 *     [-6, 4)      |---------|                          a
 *     [3, 13)                |---------|                a, b
 *     [4, 14)                 |---------|               b
 *
 * Every ms with a record is kept by itself until its windows are over, so it is meant for few records per key and size.
 *
 * Throws a {@link ConfigurationError} where the size is not above 0, or the grace is left out.
 *
 * @example
 * keyed.window(sliding(minutes(10), { grace: minutes(1) }))
 */
export function sliding(size: Duration, options: GraceOptions): SlicedWindows {
  const sizeMs = lengthOf('sliding', 'size', size)
  const graceMs = graceOf('sliding', options)
  /** The ends of all windows of that slice which exist; with the slices sorted, those behind it follow in the list. */
  const endsAt = (slices: readonly Slice[], index: number, take: (endMs: number) => void): void => {
    const { startMs, fromEndMs } = slices[index] as Slice
    if (fromEndMs <= startMs + 1) take(startMs + 1)
    const leavingMs = startMs + 1 + sizeMs
    for (let i = index + 1; i < slices.length; i += 1) {
      const next = slices[i] as Slice
      if (next.startMs >= leavingMs) return
      if (next.startMs > startMs && next.fromEndMs <= leavingMs) {
        take(leavingMs)
        return
      }
    }
  }
  return {
    kind: 'sliding',
    graceMs,
    label: `sliding(${sizeMs} ms)`,
    sharesSlices: true,
    sliceOf: (timeMs) => timeMs,
    firstEndOf: (startMs) => startMs + 1,
    lastEndOf: (startMs) => startMs + sizeMs,
    endBeyond: (startMs, timeMs) => Math.max(startMs, timeMs) + 1,
    neededUntil: ({ startMs }) => startMs + 1 + sizeMs,
    startOf: (endMs) => endMs - sizeMs,
    endsOf(slices, fromMs, throughMs) {
      const ends = new Set<number>()
      for (const index of slices.keys()) {
        endsAt(slices, index, (endMs) => {
          if (endMs >= fromMs && endMs <= throughMs) ends.add(endMs)
        })
      }
      return [...ends].sort((a, b) => a - b)
    },
    nextEnd(slices, afterMs) {
      let next: number | undefined
      for (const [index, { startMs }] of slices.entries()) {
        if (next !== undefined && startMs >= next) break
        endsAt(slices, index, (endMs) => {
          if (endMs > afterMs && (next === undefined || endMs < next)) next = endMs
        })
      }
      return next
    },
  }
}
