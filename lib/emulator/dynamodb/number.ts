/**
 * DynamoDB's numbers, exactly: up to 38 significant digits, magnitudes from 1E-130 to below 1E+126.
 *
 * A number is coefficient times ten to the power of exponent; the coefficient has no trailing zeros, and zero is 0E0. So equal
 * numbers have equal parts and one text.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html#HowItWorks.DataTypes.Number
 */
import { invalid } from './errors.ts'

export interface Decimal {
  readonly coefficient: bigint
  readonly exponent: number
}

const MOST_DIGITS = 38
const LARGEST_EXPONENT = 125
const SMALLEST_EXPONENT = -130

const shape = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d{1,18}))?$/
/** Texts that are canonical already, which most numbers are. */
const plainInteger = /^(?:0|-?[1-9]\d{0,14})$/

const zero: Decimal = { coefficient: 0n, exponent: 0 }
const digitsOf = (coefficient: bigint): string => String(coefficient < 0n ? -coefficient : coefficient)

/** Reads a number. Throws ValidationException for anything else, and for what DynamoDB cannot hold exactly. */
export function parseDecimal(text: string): Decimal {
  const match = shape.exec(text)
  if (match === null) {
    throw invalid(
      text === ''
        ? 'The parameter cannot be converted to a numeric value'
        : `The parameter cannot be converted to a numeric value: ${text.slice(0, 100)}`,
    )
  }
  const [, sign, whole = '', fraction = match[4] ?? '', , power = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') {
    // AWS checks the exponent that a zero is written with.
    checkRange(1, Number(power))
    return zero
  }
  const exponent = Number(power) - fraction.length + (digits.length - significant.length)
  checkRange(significant.length, exponent)
  const coefficient = BigInt(significant)
  return { coefficient: sign === '-' ? -coefficient : coefficient, exponent }
}

function checkRange(digits: number, exponent: number): void {
  if (digits > MOST_DIGITS) throw invalid('Attempting to store more than 38 significant digits in a Number')
  const leading = exponent + digits - 1
  if (leading > LARGEST_EXPONENT) {
    throw invalid('Number overflow. Attempting to store a number with magnitude larger than supported range')
  }
  if (leading < SMALLEST_EXPONENT) {
    throw invalid('Number underflow. Attempting to store a number with magnitude smaller than supported range')
  }
}

/** The one text of a number: plain digits, no exponent, no zeros that say nothing. */
export function canonicalNumber(text: string): string {
  return plainInteger.test(text) ? text : formatDecimal(parseDecimal(text))
}

export function formatDecimal({ coefficient, exponent }: Decimal): string {
  const sign = coefficient < 0n ? '-' : ''
  const digits = digitsOf(coefficient)
  if (exponent >= 0) return sign + digits + '0'.repeat(exponent)
  const padded = digits.padStart(1 - exponent, '0')
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`
}

/** Both coefficients over the smaller of the exponents. */
function aligned(a: Decimal, b: Decimal): { a: bigint; b: bigint; exponent: number } {
  const exponent = Math.min(a.exponent, b.exponent)
  return {
    a: a.coefficient * 10n ** BigInt(a.exponent - exponent),
    b: b.coefficient * 10n ** BigInt(b.exponent - exponent),
    exponent,
  }
}

/** Negative, zero or positive as the number `left` is less than, equal to or greater than `right`. */
export function compareNumbers(left: string, right: string): number {
  if (plainInteger.test(left) && plainInteger.test(right)) return Number(left) - Number(right)
  const { a, b } = aligned(parseDecimal(left), parseDecimal(right))
  return a < b ? -1 : a > b ? 1 : 0
}

/** The exact sum or difference, as text. Throws where it needs more than 38 digits: nothing is rounded. */
export function addNumbers(left: string, right: string, operator: '+' | '-' = '+'): string {
  const { a, b, exponent } = aligned(parseDecimal(left), parseDecimal(right))
  const sum = operator === '+' ? a + b : a - b
  if (sum === 0n) return '0'
  const digits = digitsOf(sum)
  const significant = digits.replace(/0+$/, '')
  const shift = digits.length - significant.length
  checkRange(significant.length, exponent + shift)
  return formatDecimal({ coefficient: sum / 10n ** BigInt(shift), exponent: exponent + shift })
}

/**
 * The bytes that a number is counted as: one, one per pair of digits (pairs are aligned at the decimal point), and one for a minus.
 * The page says so roughly; to the byte it was measured at AWS by https://github.com/paritysuite/dynamodb-conformance.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
export function numberBytes(text: string): number {
  if (plainInteger.test(text)) return integerBytes(text)
  const { coefficient, exponent } = parseDecimal(text)
  if (coefficient === 0n) return 1
  const digits = digitsOf(coefficient).length
  const leading = exponent + digits - 1
  // A leading digit at an even power of ten has a pair to itself.
  const pairs = Math.ceil((digits + (leading % 2 === 0 ? 1 : 0)) / 2)
  return 1 + pairs + (coefficient < 0n ? 1 : 0)
}

/** The same of a canonical whole number, which most are: its digits are counted where they stand. */
function integerBytes(text: string): number {
  if (text === '0') return 1
  const from = text.startsWith('-') ? 1 : 0
  let end = text.length
  while (text.charCodeAt(end - 1) === 0x30) end -= 1
  const leading = text.length - from - 1
  return 1 + Math.ceil((end - from + (leading % 2 === 0 ? 1 : 0)) / 2) + from
}
