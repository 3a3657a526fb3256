import { type Aggregator, frozen, refuseValue, select } from './aggregator.ts'
import { GrowingSet } from './growing-set.ts'

/** What may be counted as one. 1, 1n, '1' and true are four values. */
export type Distinguishable = number | bigint | string | boolean

/**
 * How many different values there are, exactly. Every one of them is kept: where there may be many thousands per key and
 * window, use `approximateDistinct`, which is bounded.
 *
 * A record whose value is `undefined` is left out. Throws a TerminalError for what is no finite number, bigint, text or
 * boolean.
 *
 * @example
 * { bidders: distinct((b: Bid) => b.bidder) }
 */
export function distinct<T>(by: (value: T) => Distinguishable | undefined): Aggregator<T, number> {
  const aggregator: Aggregator<T, number, GrowingSet> = {
    kind: 'distinct',
    init: () => GrowingSet.empty(),
    add(seen, value) {
      const one = distinguishable('distinct', select('distinct', by, value))
      return one === undefined ? seen : seen.with(one)
    },
    merge: (a, b) => a.union(b),
    result: (seen) => seen.size,
    encode: (seen) => seen.sorted(),
    decode: (stored) => GrowingSet.of(stored as readonly Distinguishable[]),
  }
  return aggregator
}

/** Throws a TerminalError for what cannot be told apart. */
export function distinguishable(aggregator: string, value: unknown): Distinguishable | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value + 0
  const isOne =
    typeof value === 'bigint' ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  if (value === undefined) return undefined
  if (!isOne) refuseValue(aggregator, value, 'give a finite number, a bigint, text or a boolean')
  return frozen(value, `a value of ${aggregator}`) as Distinguishable
}
