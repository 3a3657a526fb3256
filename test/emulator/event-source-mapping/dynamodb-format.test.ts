import type { DynamoDBStreamEvent } from 'aws-lambda'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import {
  type DynamoDbChange,
  dynamoDbFormat,
  dynamoDbRecord,
  type MappingSettings,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import { MappingWorld, s0 } from './mapping-world.ts'
import { answered, failed, reports } from './memory-ports.ts'

const streamArn = 'arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2026-01-01T00:00:00.000'
const createdAtSeconds = Date.UTC(2026, 0, 1) / 1_000 - 3

function change(number: number, given: Partial<DynamoDbChange> = {}): DynamoDbChange {
  return {
    eventID: `e${number}`,
    eventName: 'INSERT',
    ...given,
    dynamodb: {
      ApproximateCreationDateTime: createdAtSeconds,
      Keys: { id: { S: 'ключ' } },
      NewImage: { id: { S: 'ключ' }, total: { N: '300' } },
      SequenceNumber: String(number),
      SizeBytes: 29,
      StreamViewType: 'NEW_AND_OLD_IMAGES',
      ...given.dynamodb,
    },
  }
}

/** A mapping on a table's stream that holds these changes. */
async function worldWith(changes: readonly DynamoDbChange[], settings: Partial<MappingSettings> = {}) {
  const world = new MappingWorld(settings, dynamoDbFormat({ streamArn }))
  for (const one of changes) world.stream.put(s0, one.dynamodb.SequenceNumber, dynamoDbRecord(one))
  return world
}

async function deliveredBy(pattern: object, changes: readonly DynamoDbChange[]) {
  const world = await worldWith(changes, { filterCriteria: { filters: [{ pattern: JSON.stringify(pattern) }] } })
  await world.run(1_000)
  await world.stop()
  return world.invoker.batches
}

test('[R] the event is exactly what AWS sends, and names no shard (1.10)', async () => {
  const world = await worldWith([change(1)])
  await world.run(1_000)
  const event = world.invoker.events[0] as DynamoDBStreamEvent
  expect(event).toEqual({
    Records: [
      {
        eventID: 'e1',
        eventName: 'INSERT',
        eventVersion: '1.1',
        eventSource: 'aws:dynamodb',
        awsRegion: 'us-east-1',
        dynamodb: {
          ApproximateCreationDateTime: createdAtSeconds,
          Keys: { id: { S: 'ключ' } },
          NewImage: { id: { S: 'ключ' }, total: { N: '300' } },
          SequenceNumber: '1',
          SizeBytes: 29,
          StreamViewType: 'NEW_AND_OLD_IMAGES',
        },
        eventSourceARN: streamArn,
      },
    ],
  })
  await world.stop()
})

test('the bytes of a batch are those of its JSON', () => {
  const format = dynamoDbFormat({ streamArn })
  const ttl = { userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' } } as const
  const records = [change(1), change(22, { eventName: 'REMOVE', ...ttl })].map(dynamoDbRecord)
  const counted = records.reduce((sum, record) => sum + format.eventBytes(record, s0), format.emptyEventBytes)
  // The first record has no comma before it.
  expect(counted - 1).toBe(Buffer.byteLength(JSON.stringify(format.event(records, s0))))
})

test('[R] the times in the envelope are whole seconds (1.7)', async () => {
  const world = await worldWith([change(1), change(2)], { maximumRetryAttempts: 0 })
  world.invoker.answer = () => failed()
  await world.run(1_000)
  expect(world.destination.messages[0]?.envelope.DDBStreamBatchInfo).toEqual({
    shardId: s0,
    startSequenceNumber: '1',
    endSequenceNumber: '2',
    approximateArrivalOfFirstRecord: '2025-12-31T23:59:57Z',
    approximateArrivalOfLastRecord: '2025-12-31T23:59:57Z',
    batchSize: 2,
    streamArn,
  })
  await world.stop()
})

test('[R] BatchSize 3, R = 3, the last record always reported: five deliveries and an envelope that says 4, as for Kinesis (1.6)', async () => {
  const world = await worldWith(
    [1, 2, 3].map((number) => change(number)),
    { batchSize: 3, maximumRetryAttempts: 3 },
  )
  world.invoker.answer = () => reports('3')
  await world.run(60_000)
  expect(world.invoker.batches).toEqual(['1 2 3', '3', '3', '3', '3'])
  expect(world.destination.envelopes[0]?.requestContext.approximateInvokeCount).toBe(4)
  await world.stop()
})

describe('filters (1.8)', () => {
  const priced = (number: number, total: string) =>
    change(number, { dynamodb: { ...change(number).dynamodb, NewImage: { total: { N: total } } } })

  test('[R] an attribute is matched with its type wrapper, and not without', async () => {
    const changes = [priced(1, '300'), priced(2, '5')]
    expect(await deliveredBy({ dynamodb: { NewImage: { total: { N: ['300'] } } } }, changes)).toEqual(['1'])
    expect(await deliveredBy({ dynamodb: { NewImage: { total: ['300'] } } }, changes)).toEqual([])
  })

  test('[R] numeric operators do not work on N, whose values are text', async () => {
    expect(
      await deliveredBy({ dynamodb: { NewImage: { total: { N: [{ numeric: ['>', 100] }] } } } }, [priced(1, '300')]),
    ).toEqual([])
  })

  test('[R] eventName and userIdentity can be filtered: only what TTL deleted', async () => {
    const ttl = { userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' } } as const
    const changes = [change(1), change(2, { eventName: 'REMOVE' }), change(3, { eventName: 'REMOVE', ...ttl })]
    expect(await deliveredBy({ eventName: ['REMOVE'] }, changes)).toEqual(['2 3'])
    expect(await deliveredBy({ userIdentity: { type: ['Service'] } }, changes)).toEqual(['3'])
  })
})

test('an item stays in its lane, so its changes keep their order', async () => {
  const keyed = (number: number, id: string) =>
    change(number, { dynamodb: { ...change(number).dynamodb, Keys: { id: { S: id } } } })
  const changes = Array.from({ length: 20 }, (_, index) => keyed(index + 1, 'abcde'[(index * index) % 5] ?? 'a'))
  const world = await worldWith(changes, { parallelizationFactor: 3, batchSize: 1 })
  world.invoker.answer = () => answered(null)
  await world.run(5_000)
  const laneOf = new Map(world.invoker.deliveries.map(({ sequenceNumbers: [one], info }) => [one, info.lane]))
  for (const [index, one] of changes.entries()) {
    const sibling = changes.find(({ dynamodb: { Keys } }) => JSON.stringify(Keys) === JSON.stringify(one.dynamodb.Keys))
    expect(laneOf.get(String(index + 1))).toBe(laneOf.get(sibling?.dynamodb.SequenceNumber))
  }
  expect(new Set(laneOf.values()).size).toBeGreaterThan(1)
  await world.stop()
})

test('the ARN of something else is refused', () => {
  expect(() => dynamoDbFormat({ streamArn: 'arn:aws:kinesis:us-east-1:0:stream/s' })).toThrow(ConfigurationError)
})
