/**
 * What DynamoDB charges on demand in us-east-1 for the Standard table class, since 2024-11-01; looked up in November 2026.
 * Storage, backups and the streams between the stages are not part of it.
 *
 * @see https://aws.amazon.com/dynamodb/pricing/on-demand/
 */
export const dollarsPerMillionWriteUnits = 0.625
export const dollarsPerMillionReadUnits = 0.125

/** Capacity units, as DynamoDB counts them. */
export interface Units {
  readonly read: number
  readonly write: number
}

/** What a million events cost where so many of them took so many units. */
export function dollarsPerMillionEvents({ read, write }: Units, events: number): number {
  return (write * dollarsPerMillionWriteUnits + read * dollarsPerMillionReadUnits) / events
}
