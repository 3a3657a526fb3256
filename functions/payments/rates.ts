/** Static exchange rates, and the conversion to euro cents in whole numbers: no binary fraction ever holds an amount. */

/** What one unit of a currency is worth, in millionths of a euro, and how many digits its minor unit has. */
export interface Rate {
  readonly microEuros: number
  readonly minorDigits: number
}

/** Illustrative rates: what matters here is that they do not change while the function runs. */
export const rates: ReadonlyMap<string, Rate> = new Map([
  ['EUR', { microEuros: 1_000_000, minorDigits: 2 }],
  ['USD', { microEuros: 861_400, minorDigits: 2 }],
  ['GBP', { microEuros: 1_141_300, minorDigits: 2 }],
  ['CHF', { microEuros: 1_072_500, minorDigits: 2 }],
  ['JPY', { microEuros: 5_520, minorDigits: 0 }],
  ['KWD', { microEuros: 2_805_000, minorDigits: 3 }],
])

/** Euro cents, half a cent rounded to the even neighbour. Exact for every amount that a number holds exactly. */
export function euroCents(amountMinor: number, { microEuros, minorDigits }: Rate): number {
  const dividend = BigInt(amountMinor) * BigInt(microEuros)
  const divisor = 10_000n * 10n ** BigInt(minorDigits)
  const [whole, twiceRest] = [dividend / divisor, (dividend % divisor) * 2n]
  const isUp = twiceRest > divisor || (twiceRest === divisor && whole % 2n === 1n)
  return Number(isUp ? whole + 1n : whole)
}
