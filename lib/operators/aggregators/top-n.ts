import { ConfigurationError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { type Aggregator, frozen, type Given, refuseValue, select } from './aggregator.ts'
import { compareContent, compareOrdered, isOrdered, type Ordered } from './order.ts'
import { checkBound, inserted, mergedSorted } from './sorted.ts'

interface Ranked {
  readonly rank: Ordered
  readonly value: StateValue
}

/** What `topN` may say. */
export interface TopNOptions<T, R> {
  /** What is kept of a value. @default all of it */
  readonly keep?: (value: T) => R
  /** @default 'largest' */
  readonly order?: 'largest' | 'smallest'
}

/**
 * The `n` values that rank highest (or lowest), best first; of equal rank, those whose content comes first. Equal values
 * count each. A record whose rank is `undefined` is left out.
 *
 * Throws a {@link ConfigurationError} where `n` is no integer above 0; while running, a TerminalError for a rank that is no
 * finite number, bigint or text, and for what the state table could not return unchanged.
 *
 * @example
 * { dearest: topN(3, (b: Bid) => b.price, { keep: ({ bidder, price }) => ({ bidder, price }) }) }
 */
export function topN<T, R = T>(
  n: number,
  by: (value: T) => Ordered | undefined,
  { keep, order = 'largest' }: TopNOptions<T, R> = {},
): Aggregator<T, NoInfer<readonly Given<R>[]>> {
  checkBound(n, (problem) => new ConfigurationError(`topN: ${problem}, the most values to keep.`))
  if (order !== 'largest' && order !== 'smallest') {
    throw new ConfigurationError(`topN: the order is ${JSON.stringify(order)}: say 'largest' or 'smallest'.`)
  }
  const sign = order === 'largest' ? -1 : 1
  const compare = (a: Ranked, b: Ranked): number =>
    sign * compareOrdered(a.rank, b.rank) || compareContent(a.value, b.value)
  const aggregator: Aggregator<T, unknown, readonly Ranked[]> = {
    kind: `topN(order: ${order})`,
    init: () => [],
    add(best, value) {
      const rank: unknown = select('topN', by, value)
      if (rank === undefined) return best
      if (!isOrdered(rank)) refuseValue('topN', rank, 'give a finite number, a bigint or text')
      const worst = best.length < n ? undefined : best[n - 1]
      // Most records of a long window end here: what is kept of them need not even be looked at.
      if (worst !== undefined && sign * compareOrdered(rank, worst.rank) > 0) return best
      const kept = frozen(keep === undefined ? value : select('topN', keep, value), 'a value that topN keeps')
      const after = inserted(best, { rank, value: kept }, compare)
      return after.length > n ? after.slice(0, n) : after
    },
    merge: (a, b) => mergedSorted(a, b, compare).slice(0, n),
    result: (best) => best.map(({ value }) => value),
    encode: (best) => best.map(({ rank, value }) => [rank, value]),
    // A release before may have kept more.
    decode: (stored) =>
      (stored as readonly (readonly [Ordered, StateValue])[]).slice(0, n).map(([rank, value]) => ({ rank, value })),
  }
  return aggregator as Aggregator<T, readonly Given<R>[]>
}
