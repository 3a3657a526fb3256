/** The real handler behind the emulated mapping, on the stream of a table of the DynamoDB model. */
import { dynamoDbStreamRecords } from '../../../lib/aws/events/dynamodb-stream-records.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../../lib/core/errors.ts'
import { type TableChange, tableChanges } from '../../../lib/core/table-change.ts'
import { createDynamoModel, type DynamoModel, type StreamRecord } from '../../../lib/emulator/dynamodb/index.ts'
import {
  type DynamoDbChange,
  dynamoDbFormat,
  dynamoDbRecord,
  EventSourceMapping,
  type InvocationOutcome,
  type ShardReader,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import {
  changeNumber,
  dynamoDbStreamEvent,
  kinesisEvent,
  lambdaContext,
  memoryPorts,
  TestDriver,
} from '../../../lib/testing/index.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { functionArn } from '../../emulator/event-source-mapping/mapping-world.ts'
import { MemoryCheckpoints, MemoryDestination } from '../../emulator/event-source-mapping/memory-ports.ts'
import { VirtualClock } from '../../emulator/event-source-mapping/virtual-clock.ts'

interface Order {
  readonly id: string
  readonly total: number
}
type OrderChange = TableChange<Order, { id: string }>

/** Writes what an order changed by; an order above 1,000 waits until `open()`. */
function totals() {
  const app = new Topology('totals')
  const changes = app.source('orders', tableChanges<Order, { id: string }>())
  const out = app.sink<string>('out')
  let isOpen = false
  changes
    .map((change: OrderChange) => {
      if ((change.after?.total ?? 0) > 1_000 && !isOpen) throw new RetryableError('not yet')
      return `${change.type} ${change.key.id} ${change.before?.total ?? '-'}>${change.after?.total ?? '-'}`
    })
    .to(out)
  const ports = memoryPorts()
  const open = () => {
    isOpen = true
  }
  return { app, changes, out, ports, open, handler: streamHandler(app, { ports }), received: () => ports.received(out) }
}

const insert = (id: string, total: number): OrderChange => ({
  type: 'insert',
  key: { id },
  after: { id, total },
  changedAtMs: Date.UTC(2026, 0, 1),
})

/** A change as the stream of the model tells it, in the words of the event. */
function changeOf({ dynamodb, eventID, eventName, userIdentity }: StreamRecord): DynamoDbChange {
  const ApproximateCreationDateTime = dynamodb.ApproximateCreationDateTime.getTime() / 1_000
  const identity = { type: 'Service', principalId: 'dynamodb.amazonaws.com' } as const
  return {
    eventID,
    eventName,
    ...(userIdentity ? { userIdentity: identity } : {}),
    dynamodb: { ...dynamodb, ApproximateCreationDateTime } as DynamoDbChange['dynamodb'],
  }
}

function readerOf(model: DynamoModel, StreamArn: string): ShardReader {
  const iterator = (ShardId: string, rest: object) =>
    model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON', ...rest }).ShardIterator
  return {
    listShards: async () =>
      model
        .call('DescribeStream', { StreamArn })
        .StreamDescription.Shards.map(({ ShardId }) => ({ shardId: ShardId, parentIds: [] })),
    open: async (shardId, position) =>
      position.at === 'after'
        ? iterator(shardId, { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: position.sequenceNumber })
        : iterator(shardId, {}),
    read: async (ShardIterator, limit) => {
      const { Records, NextShardIterator } = model.call('GetRecords', { ShardIterator, Limit: Math.min(limit, 1_000) })
      const records = Records.map((record) => dynamoDbRecord(changeOf(record)))
      return { records, nextIterator: NextShardIterator ?? null, millisBehindLatest: 0 }
    },
  }
}

/** A table with a stream, and a mapping that invokes the handler with what is written to it. */
function deployed(app = totals()) {
  const clock = new VirtualClock()
  const model = createDynamoModel({ clock })
  const TableName = 'orders'
  const { TableDescription } = model.call('CreateTable', {
    TableName,
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    BillingMode: 'PAY_PER_REQUEST',
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
  })
  const streamArn = TableDescription.LatestStreamArn as string
  const batches: string[] = []
  const invoke = async (event: unknown): Promise<InvocationOutcome> => {
    const { Records } = event as { Records: DynamoDbChange[] }
    batches.push(
      Records.map(({ dynamodb }) => dynamodb.Keys.id)
        .map((id) => (id as { S: string }).S)
        .join(' '),
    )
    try {
      return { kind: 'answered', payload: await app.handler(JSON.parse(JSON.stringify(event)), lambdaContext()) }
    } catch (error) {
      return { kind: 'function-error', reason: String(error) }
    }
  }
  const mapping = new EventSourceMapping({
    settings: {
      uuid: 'e5a1c0de-0000-4000-8000-000000000001',
      functionArn,
      startingPosition: 'TRIM_HORIZON',
      functionResponseTypes: ['ReportBatchItemFailures'],
      bisectBatchOnFunctionError: true,
    },
    format: dynamoDbFormat({ streamArn }),
    reader: readerOf(model, streamArn),
    invoker: { invoke },
    checkpoints: new MemoryCheckpoints(),
    clock,
    onFailure: new MemoryDestination(),
  })
  const put = (id: string, total: number) =>
    model.call('PutItem', { TableName, Item: { id: { S: id }, total: { N: String(total) } } })
  const remove = (id: string) => model.call('DeleteItem', { TableName, Key: { id: { S: id } } })
  const stop = async () => {
    const stopped = mapping.stop()
    await clock.advance(1_000)
    await stopped
  }
  return { ...app, clock, mapping, batches, put, remove, stop }
}

test('changes of a table come through the mapping as typed values, each in its order', async () => {
  const { put, remove, mapping, clock, received, stop } = deployed()
  put('a', 1)
  put('b', 5)
  put('a', 2)
  remove('a')
  await mapping.start()
  await clock.advance(2_000)
  expect(received()).toEqual(['insert a ->1', 'insert b ->5', 'modify a 1>2', 'remove a 2>-'])
  await stop()
})

test('what is not done comes again from the first failure on, and nothing overtakes it', async () => {
  const { put, mapping, clock, batches, received, open, stop } = deployed()
  put('a', 1)
  put('b', 5_000)
  put('c', 3)
  await mapping.start()
  await clock.advance(10_000)
  expect(received()).toEqual(['insert a ->1'])
  expect(batches.slice(0, 2)).toEqual(['a b c', 'b c'])
  open()
  await clock.advance(120_000)
  expect(received()).toEqual(['insert a ->1', 'insert b ->5000', 'insert c ->3'])
  await stop()
})

test('the answer names the first sequence number that is not done', async () => {
  const { handler } = totals()
  const event = dynamoDbStreamEvent([insert('a', 1), insert('b', 5_000), insert('c', 3)])
  expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [{ itemIdentifier: changeNumber(1) }] })
})

test('a change that cannot be read is a dead letter with all of the record, and its neighbours go on', async () => {
  const { handler, ports, received } = totals()
  const event = dynamoDbStreamEvent([insert('a', 1), insert('b', 2)])
  delete event.Records[0]?.dynamodb?.NewImage
  expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
  expect(received()).toEqual(['insert b ->2'])
  const [letter] = ports.deadLettered
  expect(letter).toMatchObject({ position: changeNumber(0), reason: { code: 'image-missing', phase: 'decode' } })
  expect(letter?.partition).toMatch(/^table\/2026-01-01T00:00:00\.000\/[0-9a-f]{32}$/)
  expect(JSON.parse(Buffer.from(letter?.payload ?? '', 'base64').toString())).toMatchObject({
    eventName: 'INSERT',
    dynamodb: { Keys: { id: { S: 'a' } }, SequenceNumber: changeNumber(0) },
  })
})

test('the partition of a record is its item, in whatever order its key attributes come', () => {
  const partitions = (keys: object[]) => {
    const event = dynamoDbStreamEvent(keys.map((key) => ({ ...insert('x', 1), key })))
    const { records } = dynamoDbStreamRecords(event as never, 'orders')
    return keys.map((_, index) => records.at(index)?.partition)
  }
  const [one, same, other] = partitions([
    { p: 'a', s: 1 },
    { s: 1, p: 'a' },
    { p: 'a', s: 2 },
  ])
  expect(one).toBe(same)
  expect(one).not.toBe(other)
})

test.each([
  ['no sequence number', { SequenceNumber: undefined }],
  ['no key', { Keys: undefined }],
  ['no time', { ApproximateCreationDateTime: undefined }],
])('an event with %s rejects, so that everything comes again', async (_, change) => {
  const event = dynamoDbStreamEvent([insert('a', 1)])
  Object.assign(event.Records[0]?.dynamodb as object, change)
  await expect(totals().handler(event, lambdaContext())).rejects.toMatchObject({ code: 'malformed-event' })
})

test('the test driver sends changes as values', async () => {
  const { app, changes, out } = totals()
  const driver = new TestDriver(app)
  await driver.send(changes, [
    insert('a', 1),
    { ...insert('a', 2), type: 'modify', before: { id: 'a', total: 1 } } as never,
  ])
  expect(driver.received(out)).toEqual(['insert a ->1', 'modify a 1>2'])
})

test('the same topology takes what the table writes to a Kinesis stream', async () => {
  const { handler, received } = totals()
  const onKinesis = {
    ...{ awsRegion: 'us-east-1', eventID: 'e-1', eventName: 'INSERT', userIdentity: null, tableName: 'orders' },
    ...{ recordFormat: 'application/json', eventSource: 'aws:dynamodb' },
    dynamodb: {
      ApproximateCreationDateTime: 1_767_225_600_123,
      Keys: { id: { S: 'ä' } },
      NewImage: { id: { S: 'ä' }, total: { N: '7' } },
      SizeBytes: 20,
    },
  }
  expect(await handler(kinesisEvent([onKinesis]), lambdaContext())).toEqual({ batchItemFailures: [] })
  expect(received()).toEqual(['insert ä ->7'])
})
