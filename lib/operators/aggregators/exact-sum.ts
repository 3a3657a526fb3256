/**
 * Exact sums of numbers, so that no order of adding makes a difference: a sum of fractions is rounded once, when it is read.
 *
 * A sum is a number while it is a whole one that a number holds exactly, which costs nothing. Beyond that it is
 * `mantissa * 2^exponent`: every finite number is one, so no sum of them loses anything.
 */
import type { StateValue } from '../../state/state-store.ts'

export interface Dyadic {
  readonly mantissa: bigint
  /** At most 0. */
  readonly exponent: number
}

/** A number is a safe integer. */
export type ExactSum = number | Dyadic

/** Fractions are scaled by whole steps of this many bits, so that most sums have one exponent. */
const bitsPerStep = 64
const step = 2 ** bitsPerStep

/** The sum with one more finite number. */
export function plus(sum: ExactSum, value: number): ExactSum {
  if (typeof sum === 'number') {
    const simple = sum + value
    // 0.5 + 0.5 is whole, but neither of both is.
    if (Number.isSafeInteger(simple) && Number.isSafeInteger(value)) return simple
  }
  return added(dyadicOf(sum), dyadicOf(value))
}

/** The sum of two sums. */
export function plusSum(a: ExactSum, b: ExactSum): ExactSum {
  return typeof b === 'number' ? plus(a, b) : added(dyadicOf(a), b)
}

/** The number that is nearest to the sum, of two that are as near the even one; infinite beyond the largest number. */
export function nearest(sum: ExactSum): number {
  if (typeof sum === 'number') return sum
  const { mantissa, exponent } = sum
  const magnitude = mantissa < 0n ? -mantissa : mantissa
  const spare = bitsOf(magnitude) - 64
  // Number(bigint) rounds right, but is infinite from 2^1024 on: the bits below the first 64 are gathered in the last one.
  if (spare <= 0) return scaled(Number(mantissa), exponent)
  const top = magnitude >> BigInt(spare)
  const isInexact = top << BigInt(spare) !== magnitude
  const rounded = Number(isInexact ? top | 1n : top)
  return scaled(mantissa < 0n ? -rounded : rounded, exponent + spare)
}

/** What the sum is by a count above 0: finite also where the sum is beyond the largest number, as no mean of numbers is. */
export function nearestMean(sum: ExactSum, count: number): number {
  const total = nearest(sum)
  if (Number.isFinite(total) || typeof sum === 'number') return total / count
  // What the division of so large a mantissa cuts off is hundreds of bits below what a number holds.
  return nearest({ mantissa: sum.mantissa / BigInt(count), exponent: sum.exponent })
}

/** As the table keeps it: equal sums have one form. */
export function encodeSum(sum: ExactSum): StateValue {
  if (typeof sum === 'number') return sum
  let { mantissa, exponent } = sum
  while (exponent < 0 && (mantissa & 1n) === 0n) {
    mantissa >>= 1n
    exponent += 1
  }
  if (exponent === 0 && Number.isSafeInteger(Number(mantissa))) return Number(mantissa)
  return [mantissa.toString(), exponent]
}

export function decodeSum(stored: StateValue): ExactSum {
  if (typeof stored === 'number') return stored
  const [mantissa, exponent] = stored as readonly [string, number]
  return { mantissa: BigInt(mantissa), exponent }
}

function dyadicOf(sum: ExactSum): Dyadic {
  if (typeof sum !== 'number') return sum
  let whole = sum
  let exponent = 0
  // Each step is exact: a number with a fraction is below 2^53, so no step leaves the range of numbers.
  while (!Number.isInteger(whole)) {
    whole *= step
    exponent -= bitsPerStep
  }
  return { mantissa: BigInt(whole), exponent }
}

function added(a: Dyadic, b: Dyadic): ExactSum {
  const exponent = Math.min(a.exponent, b.exponent)
  const mantissa = aligned(a, exponent) + aligned(b, exponent)
  const isWhole = exponent === 0 && mantissa >= -9_007_199_254_740_991n && mantissa <= 9_007_199_254_740_991n
  return isWhole ? Number(mantissa) : { mantissa, exponent }
}

const aligned = ({ mantissa, exponent }: Dyadic, to: number): bigint =>
  exponent === to ? mantissa : mantissa << BigInt(exponent - to)

const bitsOf = (magnitude: bigint): number => {
  const digits = magnitude.toString(16)
  return digits.length * 4 - (Math.clz32(Number.parseInt(digits.slice(0, 1), 16)) - 28)
}

/** `value * 2^exponent`, in steps that stay in the range of numbers. */
function scaled(value: number, exponent: number): number {
  let result = value
  let left = exponent
  while (left < 0 && result !== 0) {
    const by = Math.max(left, -512)
    // Rounding happens in the last step only: before it, the value is far above the smallest numbers.
    result *= 2 ** by
    left -= by
  }
  while (left > 0 && Number.isFinite(result) && result !== 0) {
    const by = Math.min(left, 512)
    result *= 2 ** by
    left -= by
  }
  return result
}
