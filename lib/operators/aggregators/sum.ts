import { TerminalError } from '../../core/errors.ts'
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
): Aggregator<T, OrNull<V, Given<V> extends bigint ? bigint : number>> {
  const aggregator: Aggregator<T, number | bigint | null, Total> = {
    kind: 'sum',
    init: () => null,
    add(total, value) {
      const addend: unknown = select('sum', by, value)
      if (addend === undefined) return total
      if (typeof addend === 'bigint') {
        if (total !== null && typeof total !== 'bigint') refuseMixed(addend, 'numbers')
        return (total ?? 0n) + addend
      }
      if (typeof addend !== 'number' || !Number.isFinite(addend)) refuseValue('sum', addend, 'give a finite number')
      if (typeof total === 'bigint') refuseMixed(addend, 'bigints')
      return plus(total ?? 0, addend)
    },
    merge(a, b) {
      if (a === null || b === null) return a ?? b
      if (typeof a === 'bigint') return a + (typeof b === 'bigint' ? b : refuseMixedParts())
      return plusSum(a, typeof b === 'bigint' ? refuseMixedParts() : b)
    },
    result: (total) => (total === null || typeof total === 'bigint' ? total : nearest(total)),
    // Text, as a bigint may have more digits than a number of the table.
    encode: (total) => (total === null ? null : typeof total === 'bigint' ? total.toString() : encodeSum(total)),
    decode: (stored) => (stored === null ? null : typeof stored === 'string' ? BigInt(stored) : decodeSum(stored)),
  }
  return aggregator as Aggregator<T, OrNull<V, Given<V> extends bigint ? bigint : number>>
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
export function mean<T, V extends number | undefined>(by: (value: T) => V): Aggregator<T, OrNull<V, number>> {
  const aggregator: Aggregator<T, number | null, Mean> = {
    kind: 'mean',
    init: () => none,
    add(before, value) {
      const addend: unknown = select('mean', by, value)
      if (addend === undefined) return before
      if (typeof addend !== 'number' || !Number.isFinite(addend)) refuseValue('mean', addend, 'give a finite number')
      return { count: before.count + 1, sum: plus(before.sum, addend) }
    },
    merge: (a, b) => ({ count: a.count + b.count, sum: plusSum(a.sum, b.sum) }),
    result: ({ count, sum }) => (count === 0 ? null : nearestMean(sum, count)),
    encode: ({ count, sum }) => [count, encodeSum(sum)],
    decode(stored) {
      const [count, sum] = stored as readonly [number, StateValue]
      return { count, sum: decodeSum(sum) }
    },
  }
  return aggregator as Aggregator<T, OrNull<V, number>>
}

function refuseMixed(addend: number | bigint, before: 'numbers' | 'bigints'): never {
  refuseValue('sum', addend, `numbers and bigints cannot be mixed, and it gave ${before} before: give ${before}`)
}

function refuseMixedParts(): never {
  throw new TerminalError(
    'the selector of sum gave numbers for some records of a window and bigints for others, which cannot be mixed: give one of the two',
    { code: 'not-aggregable' },
  )
}
