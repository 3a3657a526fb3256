import { ConfigurationError } from './errors.ts'

/** A length of time. Make one with {@link seconds}, {@link minutes} and their like, so that the unit is always said. */
export interface Duration {
  readonly ms: number
}

const duration =
  (unit: string, unitMs: number) =>
  (count: number): Duration => {
    if (!Number.isFinite(count) || count < 0) {
      throw new ConfigurationError(
        `${unit}(${count}) is not a length of time: give a finite number that is not negative.`,
      )
    }
    return { ms: Math.round(count * unitMs) }
  }

/** `milliseconds(250)` is a quarter of a second. Throws a {@link ConfigurationError} for a negative or infinite count. */
export const milliseconds = duration('milliseconds', 1)
/** `seconds(30)`. Throws a {@link ConfigurationError} for a negative or infinite count. */
export const seconds = duration('seconds', 1_000)
/** `minutes(5)`. Throws a {@link ConfigurationError} for a negative or infinite count. */
export const minutes = duration('minutes', 60_000)
/** `hours(1)`. Throws a {@link ConfigurationError} for a negative or infinite count. */
export const hours = duration('hours', 3_600_000)
/** `days(7)`, each of 24 hours. Throws a {@link ConfigurationError} for a negative or infinite count. */
export const days = duration('days', 86_400_000)

/**
 * The ms of an option that takes a {@link Duration}, whole and at least `leastMs`. Throws a {@link ConfigurationError} for a bare
 * number and for what is no length of time: topologies are written in JavaScript, too, and a time that is none stops windows
 * without a word. `what` is the error up to the value, such as `session: the gap is`.
 *
 * @example
 * msOf('source "orders": skewLimit is', options.skewLimit, 0, 'give a length of time, such as minutes(5).')
 */
export function msOf(what: string, duration: Duration, leastMs: 0 | 1, remedy: string): number {
  const ms: unknown = (duration as Duration | null | undefined)?.ms
  if (Number.isSafeInteger(ms) && (ms as number) >= leastMs) return ms as number
  throw new ConfigurationError(`${what} ${shown(duration)}: ${remedy}`)
}

function shown(duration: unknown): string {
  if (typeof duration === 'string') return JSON.stringify(duration)
  if (typeof duration !== 'object' || duration === null) return String(duration)
  const { ms } = duration as { readonly ms?: unknown }
  return typeof ms === 'number' ? `${ms} ms` : 'an object without a number of ms'
}
