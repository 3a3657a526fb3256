/** Keys as they come in the field: the n-th most frequent key comes 1/n as often as the first (Zipf, s = 1.0). */

/** Numbers in [0, 1), the same in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Draws ranks from 0 to `keys - 1`. */
export function zipf(keys: number, random: () => number): () => number {
  const upTo = new Float64Array(keys)
  let sum = 0
  for (let rank = 0; rank < keys; rank++) {
    sum += 1 / (rank + 1)
    upTo[rank] = sum
  }
  return () => {
    const point = random() * sum
    let [low, high] = [0, keys - 1]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((upTo[middle] as number) <= point) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The name of the key of a rank. */
export const keyOf = (rank: number): string => `user-${String(rank).padStart(7, '0')}`

/** One batch of keys. */
export const batchOf = (draw: () => number, records: number): string[] =>
  Array.from({ length: records }, () => keyOf(draw()))
