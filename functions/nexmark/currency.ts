/** Prices in another currency, as exact decimals: one unit is 0.908 of the other. */

const thousandthsPerUnit = 908

/** The converted price in thousandths, not exact beyond 2^53: for comparing with bounds far below. */
export const convertedThousandths = (price: number): number => price * thousandthsPerUnit

/**
 * The converted price with its three decimals.
 *
 * @example
 * converted(101) // '91.708'
 */
export function converted(price: number): string {
  const thousandths = price * thousandthsPerUnit
  const digits = Number.isSafeInteger(thousandths)
    ? String(Math.abs(thousandths))
    : String(BigInt(Math.abs(price)) * BigInt(thousandthsPerUnit))
  const padded = digits.padStart(4, '0')
  return `${thousandths < 0 ? '-' : ''}${padded.slice(0, -3)}.${padded.slice(-3)}`
}
