/** What capacity units cost. Storage, backups and the streams between the stages are not part of it. */
import { prices } from '../../lib/plan/prices.ts'

export const dollarsPerMillionWriteUnits = prices.dynamodb.perMillionWriteUnits
export const dollarsPerMillionReadUnits = prices.dynamodb.perMillionReadUnits

/** Capacity units, as DynamoDB counts them. */
export interface Units {
  readonly read: number
  readonly write: number
}

/** What a million events cost where so many of them took so many units. */
export function dollarsPerMillionEvents({ read, write }: Units, events: number): number {
  return (write * dollarsPerMillionWriteUnits + read * dollarsPerMillionReadUnits) / events
}
