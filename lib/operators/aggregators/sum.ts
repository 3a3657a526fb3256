import type { StateValue } from '../../state/state-store.ts'
import { type Aggregator, type Given, type OrNull, refuseValue, select } from './aggregator.ts'
import { decodeSum, type ExactSum, encodeSum, nearest, nearestMean, plus, plusSum } from './exact-sum.ts'

type Total = ExactSum | bigint | null

/**
 * The exact sum of numbers, fractions included: it is rounded once, when it is read, so no order of records makes a
 * difference. 0.1 ten times is 1. Of bigints the sum is a bigint. Beyond the largest number (1.8e308) it is infinite.
 *
 * The result is `null` where the selector left out every record. Throws a TerminalError for a value that is no finite
 * number, and where numbers and bigints are mixed.
 *
 * @example
 * { revenue: sum((b: Booking) => b.price) }
 */
export function sum<T, V extends number | bigint | undefined>(
  by: (value: T) => V,
): Aggregator<T, OrNull<V, Given<V> extends bigint ? bigint : number>, Total> {
  const result = (total: Total): number | bigint | null =>
    total === null || typeof total === 'bigint' ? total : nearest(total)
  return {
    kind: 'sum',
    init: () => null,
    add(total, value) {
      const addend: unknown = select('sum', by, value)
      if (addend === undefined) return total
      if (typeof addend === 'bigint') return (wholeOf(total) ?? 0n) + addend
      if (typeof addend !== 'number' || !Number.isFinite(addend)) refuseValue('sum', addend, 'give a finite number')
      return plus(numberOf(total) ?? 0, addend)
    },
    merge(a, b) {
      if (a === null || b === null) return a ?? b
      return typeof a === 'bigint' ? a + (wholeOf(b) ?? 0n) : plusSum(a, numberOf(b) ?? 0)
    },
    result: result as Aggregator<T, OrNull<V, Given<V> extends bigint ? bigint : number>, Total>['result'],
    // Text, as a bigint may have more digits than a number of the table.
    encode: (total) => (total === null ? null : typeof total === 'bigint' ? total.toString() : encodeSum(total)),
    decode: (stored) => (stored === null ? null : typeof stored === 'string' ? BigInt(stored) : decodeSum(stored)),
  }
}

interface Mean {
  readonly count: number
  readonly sum: ExactSum
}

const none: Mean = { count: 0, sum: 0 }

/**
 * The mean of numbers: their exact sum, rounded once, by their count. It is finite, however large they are.
 *
 * The result is `null` where the selector left out every record. Throws a TerminalError for a value that is no finite number.
 *
 * @example
 * { meanDelay: mean((f: Flight) => f.delayMinutes) }
 */
export function mean<T, V extends number | undefined>(by: (value: T) => V): Aggregator<T, OrNull<V, number>, Mean> {
  const result = ({ count, sum }: Mean): number | null => (count === 0 ? null : nearestMean(sum, count))
  return {
    kind: 'mean',
    init: () => none,
    add(before, value) {
      const addend: unknown = select('mean', by, value)
      if (addend === undefined) return before
      if (typeof addend !== 'number' || !Number.isFinite(addend)) refuseValue('mean', addend, 'give a finite number')
      return { count: before.count + 1, sum: plus(before.sum, addend) }
    },
    merge: (a, b) => ({ count: a.count + b.count, sum: plusSum(a.sum, b.sum) }),
    result: result as Aggregator<T, OrNull<V, number>, Mean>['result'],
    encode: ({ count, sum }) => [count, encodeSum(sum)],
    decode(stored) {
      const [count, sum] = stored as readonly [number, StateValue]
      return { count, sum: decodeSum(sum) }
    },
  }
}

function wholeOf(total: Total): bigint | null {
  if (total === null || typeof total === 'bigint') return total
  refuseValue('sum', 0n, 'numbers and bigints cannot be mixed')
}

function numberOf(total: Total): ExactSum | null {
  if (typeof total !== 'bigint') return total
  refuseValue('sum', 0, 'numbers and bigints cannot be mixed')
}
