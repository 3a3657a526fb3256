/** Numbers as DynamoDB writes them, with up to 38 digits: read exactly or not at all. */

/** A number as digits and a power of ten, so that its spellings compare: `12.50` and `1.25e1` are [`125`, -1]. */
function digitsOf(text: string): readonly [digits: string, power: number] {
  const [mantissa = '', exponent = '0'] = text.replace(/^[+-]/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const digits = all.replace(/0+$/, '')
  const power = Number(exponent) - fraction.length + all.length - digits.length
  const significant = digits.replace(/^0+/, '')
  return [significant, significant === '' ? 0 : power]
}

/**
 * The number that a decimal text tells: a number where that is exact, else, where it is whole, a bigint. Undefined for one that
 * neither can hold.
 *
 * @example
 * exactNumber('12.50') // 12.5
 * exactNumber('9007199254740993') // 9007199254740993n
 */
export function exactNumber(text: string): number | bigint | undefined {
  const number = Number(text)
  const [digits, power] = digitsOf(text)
  const [ownDigits, ownPower] = digitsOf(String(number))
  const isExact = digits === ownDigits && power === ownPower
  if (isExact && (!Number.isInteger(number) || Number.isSafeInteger(number))) return number
  if (power < 0) return undefined
  const magnitude = BigInt(digits) * 10n ** BigInt(power)
  return text.startsWith('-') ? -magnitude : magnitude
}
