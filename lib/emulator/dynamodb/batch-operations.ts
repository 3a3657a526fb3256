/** BatchGetItem and BatchWriteItem: many single operations in one request, each of which may be left unprocessed. */
import { readUnits, UnitsByTable } from './capacity.ts'
import type { ItemWrite } from './effects.ts'
import { DynamoError, invalid } from './errors.ts'
import type { Path } from './expressions/reader.ts'
import { projectionOf, shown } from './item-operations.ts'
import { keyOfRequest } from './keys.ts'
import type {
  BatchGetItemInput,
  BatchGetItemOutput,
  BatchWriteItemInput,
  BatchWriteItemOutput,
  Item,
  KeysAndAttributes,
  WriteRequest,
} from './shapes.ts'
import type { Key, Table } from './table.ts'
import { itemBytes } from './value.ts'
import { checkCapacityReport, checkCount, findTable, readRow, refusalOf, THROTTLED, type World } from './world.ts'
import { decide, effectOf, type PreparedWrite, prepareDelete, preparePut } from './write.ts'

const MOST_READS = 100
const MOST_WRITES = 25
const LARGEST_BATCH_BYTES = 16 * 1_048_576

interface PreparedRead {
  readonly table: Table
  readonly key: Key
  readonly paths: readonly Path[] | undefined
  readonly consistent: boolean
  readonly request: KeysAndAttributes
  readonly input: Item
}

export function batchGetItem(world: World, input: BatchGetItemInput): BatchGetItemOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  const reads = Object.entries(input.RequestItems).flatMap(([name, request]) => prepareReads(world, name, request))
  checkCount('requestItems', reads.length, MOST_READS)
  checkDistinct(reads)
  const units = new UnitsByTable()
  const found = new Map<string, Item[]>(Object.keys(input.RequestItems).map((name) => [name, []]))
  const unprocessed: PreparedRead[] = []
  let bytes = 0
  for (const read of reads) {
    const { table, key, consistent } = read
    const row = readRow(world, 'BatchGetItem', table, key, consistent)
    const full = bytes + (row?.bytes ?? 0) > LARGEST_BATCH_BYTES
    if (full || refusalOf(world, 'BatchGetItem', table, key) === 'throttle') {
      unprocessed.push(read)
      continue
    }
    bytes += row?.bytes ?? 0
    units.add(table.name, readUnits(row?.bytes ?? 0, consistent))
    if (row !== undefined) found.get(table.name)?.push(shown(row.item, read.paths))
  }
  if (unprocessed.length === reads.length) throw new DynamoError('ProvisionedThroughputExceededException', THROTTLED)
  for (const [table, amount] of units) world.readMeter.add(table, amount)
  const ConsumedCapacity = units.report(input.ReturnConsumedCapacity)
  return {
    // No order is promised: not to be relied on, it is not that of the request.
    Responses: Object.fromEntries([...found].map(([name, items]) => [name, items.reverse()])),
    UnprocessedKeys: keysLeft(unprocessed),
    ...(ConsumedCapacity === undefined ? {} : { ConsumedCapacity }),
  }
}

function prepareReads(world: World, name: string, request: KeysAndAttributes): PreparedRead[] {
  const table = findTable(world, name)
  const paths = projectionOf(request)
  checkCount(`requestItems.${name}.member.keys`, request.Keys.length, MOST_READS)
  const consistent = request.ConsistentRead === true
  return request.Keys.map((input) => ({ table, key: keyOfRequest(table, input), paths, consistent, request, input }))
}

function keysLeft(unprocessed: readonly PreparedRead[]): Record<string, KeysAndAttributes> {
  const left: Record<string, KeysAndAttributes> = {}
  for (const { table, request, input } of unprocessed) {
    left[table.name] = { ...request, Keys: [...(left[table.name]?.Keys ?? []), input] }
  }
  return left
}

function checkDistinct(rows: readonly { readonly table: Table; readonly key: Key }[]): void {
  if (new Set(rows.map(({ table, key }) => `${table.name} ${key.id}`)).size < rows.length) {
    throw invalid('Provided list of item keys contains duplicates')
  }
}

export function batchWriteItem(world: World, input: BatchWriteItemInput): BatchWriteItemOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  const requests = Object.entries(input.RequestItems).flatMap(([name, list]) =>
    list.map((request) => ({ name, request })),
  )
  checkCount('requestItems', requests.length, MOST_WRITES)
  const prepared = requests.map(({ name, request }) => ({ request, write: prepareWrite(world, name, request) }))
  checkDistinct(prepared.map(({ write }) => write))
  checkBatchSize(prepared.map(({ write }) => write))
  const units = new UnitsByTable()
  const writes: ItemWrite[] = []
  const left: Record<string, WriteRequest[]> = {}
  for (const { request, write } of prepared) {
    if (refusalOf(world, 'BatchWriteItem', write.table, write.key) !== undefined) {
      left[write.table.name] = [...(left[write.table.name] ?? []), request]
      continue
    }
    const decision = decide(write)
    units.add(write.table.name, decision.units)
    if (decision.type === 'written') writes.push(...effectOf(write, decision))
  }
  if (Object.values(left).flat().length === prepared.length) {
    throw new DynamoError('ProvisionedThroughputExceededException', THROTTLED)
  }
  for (const [table, amount] of units) world.writeMeter.add(table, amount)
  if (writes.length > 0) world.commit({ type: 'items-written', atMs: world.nowMs(), writes, by: 'request' })
  const ConsumedCapacity = units.report(input.ReturnConsumedCapacity)
  return { UnprocessedItems: left, ...(ConsumedCapacity === undefined ? {} : { ConsumedCapacity }) }
}

function prepareWrite(world: World, TableName: string, request: WriteRequest): PreparedWrite {
  const { PutRequest, DeleteRequest } = request
  if (PutRequest !== undefined && DeleteRequest === undefined) return preparePut(world, { TableName, ...PutRequest })
  if (DeleteRequest !== undefined && PutRequest === undefined) {
    return prepareDelete(world, { TableName, ...DeleteRequest })
  }
  throw invalid(
    'Supplied AttributeValue has more than one datatypes set, or none: a write request is one put or one delete',
  )
}

function checkBatchSize(writes: readonly PreparedWrite[]): void {
  const bytes = writes.reduce((sum, { change }) => sum + itemBytes(change(undefined) ?? {}), 0)
  if (bytes > LARGEST_BATCH_BYTES) throw invalid(`The items of one BatchWriteItem have ${bytes} bytes: at most 16 MB`)
}
