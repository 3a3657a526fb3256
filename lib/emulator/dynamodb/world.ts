import type { UnitsByTable } from './capacity.ts'
import type { Contents, DynamoEffect } from './effects.ts'
import { constraintViolated, DynamoError } from './errors.ts'
import type { Item } from './shapes.ts'
import type { Key, Row, Table } from './table.ts'

/** A row that an operation is about to read or write. */
export interface RowAccess {
  readonly operation: string
  readonly table: string
  /** The row's key attributes; absent for a query or a scan. */
  readonly key?: Item
}

/** What may go wrong at AWS, decided by whoever owns the model: a simulator draws it from its seed. */
export interface DynamoFaults {
  /** Asked before an operation takes effect, of each of its rows. A conflict is with a transaction under way. @default never */
  refuse?(access: RowAccess): 'throttle' | 'conflict' | undefined
  /**
   * Asked of a row that is read without ConsistentRead: true shows it as it was before its last write. A row that was deleted last
   * does not come back in a query or a scan. @default never
   */
  isStale?(access: RowAccess): boolean
}

/** What the operations share: the tables, the time, the units, and the one way to change anything. */
export interface World extends Contents {
  readonly tables: Map<string, Table>
  readonly faults: DynamoFaults
  readonly readMeter: UnitsByTable
  readonly writeMeter: UnitsByTable
  nowMs(): number
  /** Applies an effect and reports it to the model's owner. */
  commit(effect: DynamoEffect): void
}

const tableName = /^[a-zA-Z0-9_.-]{3,255}$/

export function checkTableName(name: string): void {
  if (tableName.test(name)) return
  if (name.length < 3 || name.length > 255) {
    throw constraintViolated('tableName', name, 'Member must have length between 3 and 255, inclusive')
  }
  throw constraintViolated('tableName', name, 'Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+')
}

export function findTable(world: World, name: string): Table {
  checkTableName(name)
  const table = world.tables.get(name)
  if (table !== undefined) return table
  throw new DynamoError('ResourceNotFoundException', `Requested resource not found: Table: ${name} not found`)
}

export const THROTTLED =
  'The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.'
export const CONFLICT = 'Transaction is ongoing for the item'

export function refusalOf(
  world: World,
  operation: string,
  table: Table,
  key?: Key,
): 'throttle' | 'conflict' | undefined {
  return world.faults.refuse?.({ operation, table: table.name, ...(key === undefined ? {} : { key: key.attributes }) })
}

/** Throws where the owner of the model wants this operation to be refused. */
export function checkRefusal(world: World, operation: string, table: Table, key?: Key): void {
  const refusal = refusalOf(world, operation, table, key)
  if (refusal === 'throttle') throw new DynamoError('ProvisionedThroughputExceededException', THROTTLED)
  if (refusal === 'conflict') throw new DynamoError('TransactionConflictException', CONFLICT)
}

/** Reads a row, as it is or, eventually consistent, perhaps as it was. */
export function readRow(world: World, operation: string, table: Table, key: Key, consistent: boolean): Row | undefined {
  const stale = !consistent && world.faults.isStale?.({ operation, table: table.name, key: key.attributes })
  return stale ? table.getPrevious(key) : table.get(key)
}

/** Refuses a whole number outside [least, most] in the words of AWS's request validation. */
export function checkRange(field: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined || (value >= least && value <= most)) return
  const bound = value < least ? `greater than or equal to ${least}` : `less than or equal to ${most}`
  throw constraintViolated(field, value, `Member must have value ${bound}`)
}

/** Refuses a list of fewer than one or more than `most` elements. */
export function checkCount(field: string, count: number, most: number): void {
  if (count >= 1 && count <= most) return
  const bound = count < 1 ? 'greater than or equal to 1' : `less than or equal to ${most}`
  throw constraintViolated(field, `of length ${count}`, `Member must have length ${bound}`)
}

/** Refuses a text that is none of those that the API has. */
export function checkChoice(field: string, value: string | undefined, choices: readonly string[]): void {
  if (value === undefined || choices.includes(value)) return
  throw constraintViolated(field, value, `Member must satisfy enum value set: [${choices.join(', ')}]`)
}

const capacityReports = ['INDEXES', 'TOTAL', 'NONE']
export function checkCapacityReport(value: string | undefined): void {
  checkChoice('returnConsumedCapacity', value, capacityReports)
}
