import { dynamoDbStreamRecords } from '../../../lib/aws/events/dynamodb-stream-records.ts'
import { kafkaRecords } from '../../../lib/aws/events/kafka-records.ts'
import { kinesisRecords } from '../../../lib/aws/events/kinesis-records.ts'
import { sqsRecords } from '../../../lib/aws/events/sqs-records.ts'
import type { SourceRecord } from '../../../lib/core/record.ts'
import { misfit, type OriginalRecord, originalRecord, redriveEvent } from '../../../lib/local/dead-letters/record.ts'
import type { SourceBinding } from '../../../lib/plan/stage-bindings.ts'
import { deadLetterOf } from '../../../lib/runtime/dead-letter.ts'
import { dynamoDbStreamEvent, sqsEvent } from '../../../lib/testing/index.ts'
import { aggregateOf } from '../../aws/events/kpl-aggregate-bytes.ts'

const kinesis = {
  name: 'orders',
  kind: 'kinesis',
  streamArn: 'arn:aws:kinesis:eu-west-1:000000000000:stream/orders',
} as const
const kafka = {
  name: 'orders',
  kind: 'kafka',
  clusterArn: 'arn:aws:kafka:eu-west-1:0:cluster/c/1',
  topic: 'eu-orders',
} as const

/** A record as a function would have given it up, and as its redrive brings it back. */
async function giveUp(record: SourceRecord, code = 'invalid'): Promise<OriginalRecord> {
  const failure = { error: Object.assign(new Error('no'), { code }), phase: 'decode', attempts: 1 } as const
  const entry = deadLetterOf(record, failure, { topology: 'app', stage: 'orders', failedAtMs: 9 })
  const none = async () => {
    throw new Error('nothing else is read')
  }
  const reading = { topology: 'app', sources: ['orders'], readSource: none, readObject: none }
  const found = await originalRecord(entry, reading)
  if ('reason' in found) throw new Error(found.reason)
  return found
}

const viaJson = (value: unknown) => JSON.parse(JSON.stringify(value))
const fieldsOf = ({
  source,
  partition,
  position,
  subPosition,
  arrivalTimeMs,
  keyBytes,
  payload,
  headers,
}: SourceRecord) => ({
  ...{ source, partition, position, subPosition, arrivalTimeMs, headers },
  ...{ key: keyBytes && Buffer.from(keyBytes), payload },
})

function ofKinesis(event: unknown): readonly SourceRecord[] {
  const { records } = kinesisRecords(viaJson(event), 'orders')
  return Array.from({ length: records.length }, (_, index) => records.at(index) as SourceRecord)
}
const ofKafka = (event: unknown): readonly SourceRecord[] =>
  kafkaRecords(viaJson(event), () => 'orders').flatMap(({ records }) => records)

const row = (data: Buffer) => ({
  eventID: 'shardId-000000000003:49545',
  eventSourceARN: kinesis.streamArn,
  kinesis: {
    ...{ sequenceNumber: '49545', partitionKey: 'outer', data: data.toString('base64') },
    approximateArrivalTimestamp: 1671562498.449,
  },
})

test('every record of an aggregate comes back alone, as it was, inside its aggregate', async () => {
  const aggregate = aggregateOf(['a', 'b', 'c'].map((name) => ({ partitionKey: name, data: `bytes of ${name}` })))
  const originals = ofKinesis({ Records: [row(aggregate)] })
  expect(originals).toHaveLength(3)
  for (const original of originals) {
    const again = ofKinesis(redriveEvent(await giveUp(original), kinesis))
    expect(again.map(fieldsOf)).toEqual([fieldsOf(original)])
  }
})

test('an aggregate that could not be taken apart is tried as an aggregate once more', async () => {
  const broken = aggregateOf([{ partitionKey: 'a', data: 'x' }])
  broken[broken.length - 1] = (broken.at(-1) ?? 0) ^ 1
  const [original] = ofKinesis({ Records: [row(broken)] })
  const again = ofKinesis(redriveEvent(await giveUp(original as SourceRecord, 'aggregate-corrupt'), kinesis))
  expect(again.map(({ unreadable, payload }) => [unreadable?.code, payload])).toEqual([['aggregate-corrupt', broken]])
})

test('a Kafka record comes back with its partition, offset, timestamp, key, value and headers', async () => {
  const rows = [
    { offset: 7, timestamp: 1_000, key: 'aw==', value: 'e30=', headers: [{ trace: [1, 255] }, { trace: [-2 & 255] }] },
    { offset: 8, timestamp: 1_001, key: null, value: null, headers: [] },
    { offset: 9, timestamp: 1_002, key: '', value: '', headers: null },
  ]
  const originals = ofKafka({ eventSource: 'aws:kafka', records: { 'eu-orders-12': rows } })
  for (const [index, original] of originals.entries()) {
    const event = viaJson(redriveEvent(await giveUp(original), kafka))
    expect(event).toMatchObject({ eventSource: 'aws:kafka', eventSourceArn: kafka.clusterArn })
    expect(event.records['eu-orders-12']).toMatchObject([
      { topic: 'eu-orders', partition: 12, offset: rows[index]?.offset, timestamp: rows[index]?.timestamp },
    ])
    expect(ofKafka(event).map(fieldsOf)).toEqual([fieldsOf(original)])
  }
})

test.each([
  ['a standard queue', undefined, 'orders'],
  ['a FIFO queue', (index: number) => `group ${index}`, 'orders.fifo'],
])('a message of %s comes back with its position, partition, key, body and attributes', async (_, group, queue) => {
  const binding = { name: 'orders', kind: 'sqs', queueArn: `arn:aws:sqs:eu-west-1:0:${queue}` } as const
  const read = (event: unknown) =>
    sqsRecords(viaJson(event), 'orders').map(({ records }) => records.at(0) as SourceRecord)
  const event = sqsEvent(['ä', '{}'], {
    source: { name: 'orders' },
    attributes: { trace: 't-1' },
    ...(group ? { group } : {}),
  })
  for (const original of read(event)) {
    const record = await giveUp(original)
    expect(misfit(record, binding)).toBeUndefined()
    expect(read(redriveEvent(record, binding)).map(fieldsOf)).toEqual([fieldsOf(original)])
    const other = { ...binding, queueArn: 'arn:aws:sqs:eu-west-1:0:new' }
    expect(misfit(record, other)).toBe(`it came from queue "${queue}", and "orders" is bound to queue "new" now`)
  }
})

test("a change of a table comes back with its position, partition and all of the stream's record", async () => {
  const event = dynamoDbStreamEvent([
    { type: 'insert', key: { id: 'a' }, after: { id: 'a', n: 1n }, changedAtMs: 5_000 },
  ])
  const streamArn = String(event.Records[0]?.eventSourceARN)
  const binding = { name: 'orders', kind: 'dynamodb-stream', streamArn } as const
  const read = (from: unknown) => dynamoDbStreamRecords(viaJson(from), 'orders').records.at(0) as SourceRecord
  const record = await giveUp(read(event))
  expect(misfit(record, binding)).toBeUndefined()
  expect(fieldsOf(read(redriveEvent(record, binding)))).toEqual(fieldsOf(read(event)))
  const renewed = { ...binding, streamArn: streamArn.replace('2026-01-01', '2026-02-02') }
  expect(misfit(record, renewed)).toMatch(/^it came from the stream "2026-01-01T.*bound to the stream "2026-02-02T/)
})

test('a self-managed cluster has no ARN in the event', async () => {
  const [original] = ofKafka({ records: { 'eu-orders-0': [{ offset: 0, timestamp: 1, value: 'e30=' }] } })
  const { clusterArn, ...selfManaged } = kafka
  const event = redriveEvent(await giveUp(original as SourceRecord), selfManaged) as object
  expect([event, 'eventSourceArn' in event]).toEqual([
    expect.objectContaining({ eventSource: 'SelfManagedKafka' }),
    false,
  ])
})

test('a record of another kind of source, or of another topic than is bound now, does not fit', async () => {
  const [fromKafka] = ofKafka({ records: { 'old-orders-0': [{ offset: 0, timestamp: 1, value: 'e30=' }] } })
  const record = await giveUp(fromKafka as SourceRecord)
  const binding = (changes: object) => misfit(record, { ...kafka, ...changes } as SourceBinding)
  expect(binding({ topic: 'old-orders' })).toBeUndefined()
  expect(binding({})).toBe('it came from topic "old-orders", and "orders" is bound to topic "eu-orders" now')
  expect(misfit(record, kinesis)).toBe('it came from Kafka, and "orders" is bound to Kinesis now')
  expect(misfit(record, undefined)).toBe('the function takes no source "orders"')
})

test('the event says of what it is a redrive: the own mark of the record, and whether keyed state has what it was to get', async () => {
  const [record] = ofKinesis({ Records: [row(Buffer.from('{}'))] })
  const where = { topology: 'app', stage: 'orders', failedAtMs: 9 }
  const none = async () => {
    throw new Error('nothing else is read')
  }
  const reading = { topology: 'app', sources: ['orders'], readSource: none, readObject: none }
  const markOf = async (phase: 'step' | 'sink', more: Parameters<typeof deadLetterOf>[3]) => {
    const failure = { error: new Error('no'), phase, attempts: 1 }
    const found = await originalRecord(deadLetterOf(record as SourceRecord, failure, where, more), reading)
    if ('reason' in found) throw new Error(found.reason)
    return redriveEvent(found, kinesis).millrace?.redrive
  }
  expect(await markOf('step', { ownMarkMs: 5 })).toEqual({ ownMarkMs: 5, applied: false })
  expect(await markOf('step', {})).toEqual({ ownMarkMs: null, applied: false })
  expect(await markOf('sink', { ownMarkMs: null })).toEqual({ ownMarkMs: null, applied: true })
  expect(await markOf('step', { ownMarkMs: 5, applied: true })).toEqual({ ownMarkMs: 5, applied: true })
})
