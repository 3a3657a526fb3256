/** A length of time in words. */

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/**
 * A whole number of ms in the units that people say, none of them left out or rounded: `5 min`, `1 h 30 min`, `0 s`.
 *
 * @example
 * exactSpan(90_000) // '1 min 30 s'
 */
export function exactSpan(ms: number): string {
  let leftMs = ms
  const parts = units.flatMap(([name, unitMs]) => {
    const whole = Math.floor(leftMs / unitMs)
    leftMs -= whole * unitMs
    return whole === 0 ? [] : [`${whole} ${name}`]
  })
  return parts.join(' ') || '0 s'
}
