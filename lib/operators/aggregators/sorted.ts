/** Sorted lists that are never changed. They are short: their aggregators say how long they may be. */

/** The list with one more element, behind those that are equal to it. */
export function inserted<E>(sorted: readonly E[], element: E, compare: (a: E, b: E) => number): readonly E[] {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(sorted[middle] as E, element) <= 0) low = middle + 1
    else high = middle
  }
  return sorted.toSpliced(low, 0, element)
}

/** All elements of two lists. */
export function mergedSorted<E>(a: readonly E[], b: readonly E[], compare: (a: E, b: E) => number): readonly E[] {
  if (a.length === 0) return b
  if (b.length === 0) return a
  return [...a, ...b].sort(compare)
}

/** Throws where `atMost` bounds nothing; `refuse` makes the error. */
export function checkBound(atMost: number, refuse: (problem: string) => Error): void {
  if (Number.isSafeInteger(atMost) && atMost >= 1) return
  throw refuse(`${atMost} is no bound: give an integer above 0`)
}
