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
