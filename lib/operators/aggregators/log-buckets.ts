/**
 * How many values fall in each of many narrow ranges, of which each is wider than the one before by one ratio: the range `i`
 * is `(ratio^(i-1), ratio^i]`. It is never changed.
 *
 * It is bounded, and depends on the values alone: once the ranges from the lowest to the highest one are more than `most`, the
 * lowest count as the lowest of the highest `most`, whenever they came.
 */
export interface LogBuckets {
  /** Ascending. */
  readonly indexes: readonly number[]
  readonly counts: readonly number[]
}

/** From 1e-9 to 1e9 with a relative error of 1 percent. */
const most = 2_048

export const noBuckets: LogBuckets = { indexes: [], counts: [] }

/** With one more value in the range `index`. */
export function countedIn({ indexes, counts }: LogBuckets, index: number): LogBuckets {
  const at = placeOf(indexes, index)
  if (indexes[at] === index) return { indexes, counts: counts.with(at, (counts[at] as number) + 1) }
  return collapsed({ indexes: indexes.toSpliced(at, 0, index), counts: counts.toSpliced(at, 0, 1) })
}

export function mergedBuckets(a: LogBuckets, b: LogBuckets): LogBuckets {
  if (a.indexes.length === 0) return b
  if (b.indexes.length === 0) return a
  const counts = new Map(a.indexes.map((index, i) => [index, a.counts[i] as number]))
  for (const [i, index] of b.indexes.entries()) counts.set(index, (counts.get(index) ?? 0) + (b.counts[i] as number))
  const sorted = [...counts].sort(([one], [other]) => one - other)
  return collapsed({ indexes: sorted.map(([index]) => index), counts: sorted.map(([, count]) => count) })
}

export const sizeOfBuckets = ({ counts }: LogBuckets): number => counts.reduce((sum, count) => sum + count, 0)

/** The place of the index, or where it belongs. */
function placeOf(indexes: readonly number[], index: number): number {
  let low = 0
  let high = indexes.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((indexes[middle] as number) < index) low = middle + 1
    else high = middle
  }
  return low
}

function collapsed(buckets: LogBuckets): LogBuckets {
  const { indexes, counts } = buckets
  const lowest = (indexes.at(-1) ?? 0) - most + 1
  if ((indexes[0] ?? lowest) >= lowest) return buckets
  const kept = placeOf(indexes, lowest)
  const below = counts.slice(0, kept).reduce((sum, count) => sum + count, 0)
  if (indexes[kept] === lowest) {
    return { indexes: indexes.slice(kept), counts: [below + (counts[kept] as number), ...counts.slice(kept + 1)] }
  }
  return { indexes: [lowest, ...indexes.slice(kept)], counts: [below, ...counts.slice(kept)] }
}
