/**
 * DynamoDB and its streams as a state machine: the tables of one account in one region, in memory.
 *
 * 1. Time comes from the clock alone and nothing is random: the same calls at the same times give the same answers.
 * 2. Every change is an effect (effects.ts); the owner sees each one as it is applied and can apply it again elsewhere.
 * 3. A call that throws has changed nothing, but for the units that it used up.
 * 4. What the model does not have is refused and named, never ignored.
 *
 * Not modelled: indexes, provisioned throughput, backups, PartiQL, the parameters from before there were expressions, the limits of
 * a partition, and shards of streams that split or roll.
 */
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { batchGetItem, batchWriteItem } from './batch-operations.ts'
import { UnitsByTable } from './capacity.ts'
import { applyEffect, type DynamoEffect } from './effects.ts'
import { DynamoError } from './errors.ts'
import { sweepExpired } from './expiry.ts'
import { deleteItem, getItem, putItem, updateItem } from './item-operations.ts'
import { query, scan } from './page-operations.ts'
import { describeStream, getRecords, getShardIterator, listStreams } from './stream-operations.ts'
import * as tables from './table-operations.ts'
import { transactGetItems, transactWriteItems } from './transaction-operations.ts'
import type { DynamoFaults, World } from './world.ts'

/** The operations by their names at AWS; those of streams are a service of their own there, with names of its own. */
const operations = {
  BatchGetItem: batchGetItem,
  BatchWriteItem: batchWriteItem,
  CreateTable: tables.createTable,
  DeleteItem: deleteItem,
  DeleteTable: tables.deleteTable,
  DescribeStream: describeStream,
  DescribeTable: tables.describeTable,
  DescribeTimeToLive: tables.describeTimeToLive,
  GetItem: getItem,
  GetRecords: getRecords,
  GetShardIterator: getShardIterator,
  ListStreams: listStreams,
  ListTables: tables.listTables,
  PutItem: putItem,
  Query: query,
  Scan: scan,
  TransactGetItems: transactGetItems,
  TransactWriteItems: transactWriteItems,
  UpdateItem: updateItem,
  UpdateTimeToLive: tables.updateTimeToLive,
}

type Operations = typeof operations
export type DynamoOperationName = keyof Operations
export type DynamoInput<Name extends DynamoOperationName> = Parameters<Operations[Name]>[1]
export type DynamoOutput<Name extends DynamoOperationName> = ReturnType<Operations[Name]>

export interface DynamoModelOptions {
  readonly clock: Pick<Clock, 'nowMs'>
  /** Twelve digits. @default 000000000000 */
  readonly accountId?: string
  /** @default us-east-1 */
  readonly region?: string
  /** What goes wrong. @default nothing */
  readonly faults?: DynamoFaults
  /** Sees every change, in order, after it was applied. It must not throw, and must not change what it is given. */
  readonly onEffect?: (effect: DynamoEffect) => void
}

/** Capacity units used by a table's name, failed and cancelled operations included. */
export interface ConsumedUnits {
  readonly read: number
  readonly write: number
}

export interface DynamoModel {
  /**
   * Performs one operation. Throws a {@link DynamoError} named as the exception of AWS. Nothing of an answer is shared with the
   * model: it may be changed.
   *
   * @example
   * const TableName = 'orders'
   * model.call('PutItem', { TableName, Item: { id: { S: 'a' }, seats: { N: '2' } } })
   * model.call('GetItem', { TableName, Key: { id: { S: 'a' } }, ConsistentRead: true }).Item
   */
  call<Name extends DynamoOperationName>(name: Name, input: DynamoInput<Name>): DynamoOutput<Name>
  /** Deletes what TTL says has expired by now; AWS does so within days. Returns the number of items. */
  sweepExpired(): number
  /** What all operations on a table have cost since the model was made. */
  consumedUnits(table: string): ConsumedUnits
  /** Applies an effect of an earlier model, without reporting it to `onEffect`. */
  restore(effect: DynamoEffect): void
}

/** Whether the model has an operation of this name. */
export function isDynamoOperation(name: string): name is DynamoOperationName {
  return Object.hasOwn(operations, name)
}

/**
 * Makes an empty model.
 *
 * @example
 * const model = createDynamoModel({ clock: { nowMs: () => 1_700_000_000_000 } })
 */
export function createDynamoModel(options: DynamoModelOptions): DynamoModel {
  const accountId = options.accountId ?? '000000000000'
  if (!/^\d{12}$/.test(accountId)) {
    throw new ConfigurationError(`The account id '${accountId}' is not one: give twelve digits.`)
  }
  const world: World = {
    accountId,
    region: options.region ?? 'us-east-1',
    faults: options.faults ?? {},
    keepPrevious: options.faults?.isStale !== undefined,
    tables: new Map(),
    streams: new Map(),
    tokens: new Map(),
    readMeter: new UnitsByTable(),
    writeMeter: new UnitsByTable(),
    nowMs: () => Math.floor(options.clock.nowMs()),
    commit(effect) {
      applyEffect(world, effect)
      options.onEffect?.(effect)
    },
  }
  return {
    call(name, input) {
      if (!isDynamoOperation(name)) throw unknownOperation(name)
      // The table pairs every name with its own input, which TypeScript cannot follow through a generic index.
      const operation = operations[name] as (world: World, input: unknown) => never
      return operation(world, input)
    },
    sweepExpired: () => sweepExpired(world),
    consumedUnits: (table) => ({ read: world.readMeter.of(table), write: world.writeMeter.of(table) }),
    restore(effect) {
      applyEffect(world, effect)
    },
  }
}

/** The refusal of what the model does not have. */
export function unknownOperation(name: string): DynamoError {
  return new DynamoError(
    'UnknownOperationException',
    `The embedded DynamoDB has no operation '${name}'. It has: ${Object.keys(operations).join(', ')}.`,
  )
}
