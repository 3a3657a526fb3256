/**
 * Quantiles of numbers, from counts in ranges of one relative width, as DDSketch keeps them.
 *
 * @see https://www.vldb.org/pvldb/vol12/p2195-masson.pdf
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { type Aggregator, frozen, type OrNull, refuseValue, select } from './aggregator.ts'
import { countedIn, type LogBuckets, mergedBuckets, noBuckets, sizeOfBuckets } from './log-buckets.ts'

/** What `quantile` may say. */
export interface QuantileOptions {
  /** By how much of itself a result may be off, from 0.001 to 0.1. @default 0.01 */
  readonly relativeError?: number
}

interface Sketch {
  readonly least: number
  readonly largest: number
  /** Magnitudes of negative numbers. */
  readonly negative: LogBuckets
  readonly zeros: number
  readonly positive: LogBuckets
}

const none: Sketch = {
  least: Number.POSITIVE_INFINITY,
  largest: Number.NEGATIVE_INFINITY,
  negative: noBuckets,
  zeros: 0,
  positive: noBuckets,
}

/**
 * The number at a rank among all: `quantile(0.9, by)` is the least one that at least nine tenths of them do not exceed, give
 * or take the relative error (1 percent unless said). The least (0) and the largest (1) are exact. It is bounded: where the
 * magnitudes span more than 2,048 ranges of that error (eighteen powers of ten at 1 percent), the smallest of them are told
 * less well. No order of records makes a difference.
 *
 * The result is `null` where the selector left out every record. Throws a {@link ConfigurationError} where `q` is not from 0
 * to 1; while running, a TerminalError for a value that is no finite number, or that the state table could not return.
 *
 * @example
 * { p90: quantile(0.9, (f: Flight) => f.delayMinutes) }
 */
export function quantile<T, V extends number | undefined>(
  q: number,
  by: (value: T) => V,
  { relativeError = 0.01 }: QuantileOptions = {},
): Aggregator<T, OrNull<V, number>> {
  if (!(q >= 0 && q <= 1)) throw new ConfigurationError(`quantile(${q}): give a share from 0 to 1, such as 0.9.`)
  if (!(relativeError >= 0.001 && relativeError <= 0.1)) {
    throw new ConfigurationError(`quantile: the relative error ${relativeError} is not from 0.001 to 0.1.`)
  }
  const ratio = (1 + relativeError) / (1 - relativeError)
  const perRange = 1 / Math.log(ratio)
  const rangeOf = (magnitude: number): number => Math.ceil(Math.log(magnitude) * perRange)
  /** As far from both ends of the range, by the share of itself. */
  const middleOf = (range: number): number => (2 * ratio ** range) / (ratio + 1)
  const aggregator: Aggregator<T, number | null, Sketch> = {
    kind: `quantile(relativeError: ${relativeError})`,
    init: () => none,
    add(sketch, value) {
      const number: unknown = select('quantile', by, value)
      if (number === undefined) return sketch
      if (typeof number !== 'number' || !Number.isFinite(number)) {
        refuseValue('quantile', number, 'give a finite number')
      }
      // The least and the largest are kept as they are.
      if (!Number.isSafeInteger(number)) frozen(number, 'a value of quantile')
      return counted(sketch, number, rangeOf)
    },
    merge: (a, b) => ({
      least: Math.min(a.least, b.least),
      largest: Math.max(a.largest, b.largest),
      negative: mergedBuckets(a.negative, b.negative),
      zeros: a.zeros + b.zeros,
      positive: mergedBuckets(a.positive, b.positive),
    }),
    result: (sketch) => at(sketch, q, middleOf),
    encode,
    decode,
  }
  return aggregator as Aggregator<T, OrNull<V, number>>
}

function counted(sketch: Sketch, number: number, rangeOf: (magnitude: number) => number): Sketch {
  const { least, largest, negative, zeros, positive } = sketch
  return {
    least: Math.min(number, least),
    largest: Math.max(number, largest),
    negative: number < 0 ? countedIn(negative, rangeOf(-number)) : negative,
    zeros: number === 0 ? zeros + 1 : zeros,
    positive: number > 0 ? countedIn(positive, rangeOf(number)) : positive,
  }
}

function at(sketch: Sketch, q: number, middleOf: (range: number) => number): number | null {
  const { least, largest, negative, zeros, positive } = sketch
  const below = sizeOfBuckets(negative)
  const all = below + zeros + sizeOfBuckets(positive)
  if (all === 0) return null
  // 0.07 times 100 is a hair above 7.
  let rank = Math.max(1, Math.ceil(q * all - q * all * Number.EPSILON * 2))
  if (rank === 1) return least
  if (rank >= all) return largest
  const within = (value: number): number => Math.min(largest, Math.max(least, value))
  if (rank <= below) return within(-middleOf(rangeAt(negative, below - rank + 1)))
  rank -= below
  return rank <= zeros ? 0 : within(middleOf(rangeAt(positive, rank - zeros)))
}

/** The range of the value at a rank, from 1. */
function rangeAt({ indexes, counts }: LogBuckets, rank: number): number {
  let seen = 0
  for (const [i, index] of indexes.entries()) {
    seen += counts[i] as number
    if (seen >= rank) return index
  }
  return indexes.at(-1) ?? 0
}

/** A list of numbers, the ranges by their distance from the one before: short in the table. */
function encode({ least, largest, negative, zeros, positive }: Sketch): StateValue {
  const isEmpty = least > largest
  return isEmpty ? null : [least, largest, zeros, encodeBuckets(negative), encodeBuckets(positive)]
}

function encodeBuckets({ indexes, counts }: LogBuckets): StateValue {
  return indexes.flatMap((index, i) => [index - (indexes[i - 1] ?? 0), counts[i] as number])
}

function decode(stored: StateValue): Sketch {
  if (stored === null) return none
  const [least, largest, zeros, negative, positive] = stored as readonly [number, number, number, number[], number[]]
  return { least, largest, zeros, negative: decodeBuckets(negative), positive: decodeBuckets(positive) }
}

function decodeBuckets(stored: readonly number[]): LogBuckets {
  const indexes: number[] = []
  const counts: number[] = []
  for (let i = 0; i < stored.length; i += 2) {
    indexes.push((indexes.at(-1) ?? 0) + (stored[i] as number))
    counts.push(stored[i + 1] as number)
  }
  return { indexes, counts }
}
