import {
  type AttributeValue,
  type CreateTableInput,
  createDynamoModel,
  type DynamoEffect,
  type DynamoError,
  type DynamoModel,
  type DynamoModelOptions,
  type Item,
  type StreamRecord,
} from '../../../lib/emulator/dynamodb/index.ts'

export const START_MS = 1_700_000_000_000
export const TableName = 'table'

export interface TestClock {
  nowMs(): number
  advance(ms: number): void
}

export function testClock(startMs = START_MS): TestClock {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
  }
}

export const hashTable: CreateTableInput = {
  TableName,
  AttributeDefinitions: [{ AttributeName: 'p', AttributeType: 'S' }],
  KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
  BillingMode: 'PAY_PER_REQUEST',
}

export function sortedTable(type: 'S' | 'N' | 'B' = 'N'): CreateTableInput {
  return {
    ...hashTable,
    AttributeDefinitions: [...hashTable.AttributeDefinitions, { AttributeName: 's', AttributeType: type }],
    KeySchema: [...hashTable.KeySchema, { AttributeName: 's', KeyType: 'RANGE' }],
  }
}

export const streamed = (table: CreateTableInput): CreateTableInput => ({
  ...table,
  StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
})

export function modelWithTable(table: CreateTableInput = hashTable, options: Partial<DynamoModelOptions> = {}) {
  const clock = testClock()
  const effects: DynamoEffect[] = []
  const model = createDynamoModel({ clock, onEffect: (effect) => effects.push(effect), ...options })
  model.call('CreateTable', table)
  return { clock, model, effects }
}

/** Short for the values that most tests use. */
export const text = (S: string): AttributeValue => ({ S })
export const number = (value: number | bigint | string): AttributeValue => ({ N: String(value) })
export const key = (p: string, s?: number): Item => (s === undefined ? { p: text(p) } : { p: text(p), s: number(s) })

export const put = (model: DynamoModel, item: Item) => model.call('PutItem', { TableName, Item: item })
export const get = (model: DynamoModel, Key: Item) =>
  model.call('GetItem', { TableName, Key, ConsistentRead: true }).Item

export function errorOf(call: () => unknown): DynamoError {
  try {
    call()
  } catch (error) {
    return error as DynamoError
  }
  throw new Error('nothing was thrown')
}

/** Every item of a table, in the order of a scan. */
export function contents(model: DynamoModel, table = TableName): Item[] {
  const items: Item[] = []
  let ExclusiveStartKey: Item | undefined
  do {
    const page = model.call('Scan', { TableName: table, ConsistentRead: true, ExclusiveStartKey })
    items.push(...(page.Items ?? []))
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey !== undefined)
  return items
}

export function streamOf(model: DynamoModel, table = TableName) {
  const [stream] = model.call('ListStreams', { TableName: table }).Streams
  const StreamArn = stream?.StreamArn ?? ''
  const { StreamDescription } = model.call('DescribeStream', { StreamArn })
  return { StreamArn, ShardId: StreamDescription.Shards[0]?.ShardId ?? '', StreamDescription }
}

/** Every record that a table's stream has, by pages of at most `Limit`. */
export function changes(model: DynamoModel, table = TableName, Limit?: number): StreamRecord[] {
  const { StreamArn, ShardId } = streamOf(model, table)
  const records: StreamRecord[] = []
  let { ShardIterator } = model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
  for (;;) {
    const { Records, NextShardIterator } = model.call('GetRecords', { ShardIterator, Limit })
    records.push(...Records)
    if (Records.length === 0 || NextShardIterator === undefined) return records
    ShardIterator = NextShardIterator
  }
}
