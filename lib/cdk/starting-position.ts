/** Where the mapping of a log begins, when it is first deployed. */
import { type EventSourceMappingOptions, StartingPosition } from 'aws-cdk-lib/aws-lambda'
import { ConfigurationError } from '../core/errors.ts'

/** At the oldest record, or at the first that arrived at that time or later. */
export type BeginsAt = 'TRIM_HORIZON' | Date

/** Throws a {@link ConfigurationError} for a starting position that would lose records, or is none. */
export function checkedPosition(position: unknown, resource: string): BeginsAt {
  if (position === 'TRIM_HORIZON') return position
  if (position instanceof Date && !Number.isNaN(position.getTime())) return position
  if (position === 'LATEST') {
    throw new ConfigurationError(
      `the source on ${resource} would start at LATEST, which loses what arrives until the mapping polls, minutes after it was created: use 'TRIM_HORIZON', or a Date to start from.`,
    )
  }
  throw new ConfigurationError(
    `the source on ${resource} has the starting position ${String(position)}: use 'TRIM_HORIZON', or a valid Date to start from.`,
  )
}

/** What a mapping is told of it. */
export const positionOf = (
  begins: BeginsAt,
): Pick<EventSourceMappingOptions, 'startingPosition' | 'startingPositionTimestamp'> =>
  begins instanceof Date
    ? { startingPosition: StartingPosition.AT_TIMESTAMP, startingPositionTimestamp: begins.getTime() / 1_000 }
    : { startingPosition: StartingPosition.TRIM_HORIZON }

/** What a function is told of it. */
export const startingAt = (begins: BeginsAt): { readonly startingAtMs?: number } =>
  begins instanceof Date ? { startingAtMs: begins.getTime() } : {}
