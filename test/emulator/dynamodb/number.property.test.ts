import fc from 'fast-check'
import { addNumbers, canonicalNumber, compareNumbers, numberBytes } from '../../../lib/emulator/dynamodb/number.ts'

/**
 * The oracle: a number as an integer of 10^-170, which holds any sum of numbers that DynamoDB takes.
 */
const SCALE = 170
const scaled = (digits: bigint, exponent: number): bigint => digits * 10n ** BigInt(exponent + SCALE)

const anyNumber = fc
  .record({
    digits: fc.oneof(
      fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }),
      fc.bigInt({ min: -120n, max: 120n }),
      fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }),
    ),
    exponent: fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -80, max: 80 })),
  })
  .map(({ digits, exponent }) => ({ text: `${digits}e${exponent}`, value: scaled(digits, exponent) }))

/** Reads canonical text, which has no exponent, by itself. */
function scaledValue(text: string): bigint {
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  const value = BigInt(whole + fraction.padEnd(SCALE, '0'))
  return sign === '-' ? -value : value
}

function significantDigits(value: bigint): number {
  return String(value < 0n ? -value : value).replace(/0+$/, '').length
}

it('gives every number one plain text of the same value', () => {
  fc.assert(
    fc.property(anyNumber, ({ text, value }) => {
      const canonical = canonicalNumber(text)
      expect(scaledValue(canonical)).toBe(value)
      expect(canonicalNumber(canonical)).toBe(canonical)
      expect(canonical).toMatch(/^(0|-?(0|[1-9]\d*)(\.\d*[1-9])?)$/)
    }),
  )
})

it('adds and subtracts exactly, and refuses a sum that needs more than 38 digits', () => {
  fc.assert(
    fc.property(anyNumber, anyNumber, fc.constantFrom('+' as const, '-' as const), (a, b, operator) => {
      const sum = operator === '+' ? a.value + b.value : a.value - b.value
      const add = () => addNumbers(canonicalNumber(a.text), canonicalNumber(b.text), operator)
      if (significantDigits(sum) > 38) expect(add).toThrow('38 significant digits')
      else expect(scaledValue(add())).toBe(sum)
    }),
  )
})

it('orders numbers by their value', () => {
  fc.assert(
    fc.property(anyNumber, anyNumber, (a, b) => {
      const order = compareNumbers(canonicalNumber(a.text), canonicalNumber(b.text))
      expect(Math.sign(order)).toBe(a.value < b.value ? -1 : a.value > b.value ? 1 : 0)
    }),
  )
})

it('counts a byte, one per pair of digits aligned at the point, and one for a minus', () => {
  fc.assert(
    fc.property(anyNumber, ({ text, value }) => {
      // The oracle writes the number in base 100, which a scale of an even number of digits keeps aligned.
      const pairs = (value < 0n ? -value : value).toString(10)
      const aligned = pairs.length % 2 === 0 ? pairs : `0${pairs}`
      const base100 = (aligned.match(/../g) ?? []).join(' ').replace(/( 00)+$/, '')
      const expected = value === 0n ? 1 : 1 + base100.split(' ').length + (value < 0n ? 1 : 0)
      expect(numberBytes(canonicalNumber(text))).toBe(expected)
    }),
  )
})

// Measured at AWS on 2026-08-18 by github.com/paritysuite/dynamodb-conformance (test "A number's byte cost").
it.each([
  ['0', 1],
  ['1', 2],
  ['12', 2],
  ['123', 3],
  ['1234', 3],
  ['12345678901234567890123456789012345678', 20],
  ['0042', 2],
  ['100', 2],
  ['1010', 3],
  ['0.0000001', 2],
  ['1E125', 2],
  ['1E-100', 2],
  ['1.5', 3],
  ['15', 2],
  ['1.200', 3],
  ['1.234', 4],
  ['3.14159', 5],
  ['123456', 4],
])('%s has the size that it has at AWS, %i', (text, bytes) => {
  expect(numberBytes(canonicalNumber(text))).toBe(bytes)
})

it.each([
  ['1e126', 'overflow'],
  ['1e99999999999', 'overflow'],
  ['0e126', 'overflow'],
  ['0e-131', 'underflow'],
  ['-99e125', 'overflow'],
  ['1e-131', 'underflow'],
  [`1${'0'.repeat(37)}1`, '38 significant digits'],
  ['', 'cannot be converted'],
  ['1_000', 'cannot be converted'],
  ['NaN', 'cannot be converted'],
  ['1e999999999', 'overflow'],
])('refuses %s: %s', (text, message) => {
  expect(() => canonicalNumber(text)).toThrow(message)
})

it.each([
  ['1e125', 126],
  [`${'9'.repeat(38)}e88`, 126],
  ['1e-130', 132],
])('takes %s, at the edge of what there is', (text, length) => {
  expect(canonicalNumber(text)).toHaveLength(length)
})
