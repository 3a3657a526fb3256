import fc from 'fast-check'
import { EventError } from '../../../lib/aws/events/event-error.ts'
import { type KinesisEventRecord, kinesisRecords } from '../../../lib/aws/events/kinesis-records.ts'
import type { SourceRecord } from '../../../lib/core/record.ts'
import { aggregateOf } from './kpl-aggregate-bytes.ts'

const shard = 'shardId-000000000007'

function row(sequenceNumber: string, data: Uint8Array | string, changes: object = {}): KinesisEventRecord {
  return {
    eventID: `${shard}:${sequenceNumber}`,
    eventSourceARN: 'arn:aws:kinesis:eu-central-1:000000000000:stream/orders',
    kinesis: {
      sequenceNumber,
      partitionKey: 'outer-key',
      data: Buffer.from(data as Uint8Array).toString('base64'),
      approximateArrivalTimestamp: 1671562498.449,
      ...changes,
    },
  }
}

function read(...Records: KinesisEventRecord[]) {
  const { partition, records } = kinesisRecords({ Records }, 'orders')
  return { partition, records: Array.from({ length: records.length }, (_, i) => records.at(i) as SourceRecord) }
}

describe('kinesisRecords', () => {
  test('takes the shard from the event id and the arrival time from seconds to whole milliseconds', () => {
    const { partition, records } = read(row('49546986683135544286507457936321625675700192471156785154', '{"id":1}'))
    expect(partition).toBe(shard)
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({
      source: 'orders',
      partition: shard,
      position: '49546986683135544286507457936321625675700192471156785154',
      subPosition: 0,
      key: 'outer-key',
      arrivalTimeMs: 1671562498449,
      eventTimeMs: 1671562498449,
      payload: Buffer.from('{"id":1}'),
    })
  })

  test('no arrival time loses or gains a millisecond on its way through seconds', () => {
    const latest = Date.UTC(2100, 0, 1)
    fc.assert(
      fc.property(fc.nat(latest), (arrivalTimeMs) => {
        const approximateArrivalTimestamp = arrivalTimeMs / 1_000
        expect(read(row('1', '', { approximateArrivalTimestamp })).records[0]).toMatchObject({ arrivalTimeMs })
      }),
      { numRuns: 1_000 },
    )
    // 1089361670.169 * 1000 is a little off the whole number.
    const [record] = read(row('1', '', { approximateArrivalTimestamp: 1089361670.169 })).records
    expect(record?.arrivalTimeMs).toBe(1089361670169)
  })

  test('an empty payload is an empty payload', () => {
    expect(read(row('1', '')).records[0]?.payload).toEqual(Buffer.alloc(0))
  })

  test('sub-records share the position of their aggregate, count from 0 and have keys of their own', () => {
    const aggregate = aggregateOf([
      { partitionKey: 'a', data: 'one' },
      { partitionKey: 'b', explicitHashKey: '12', data: 'two' },
      { partitionKey: 'a', data: '' },
    ])
    const { records } = read(row('1', 'plain'), row('2', aggregate), row('3', 'plain'))
    const seen = records.map(({ position, subPosition, key, payload }) => [position, subPosition, key, String(payload)])
    expect(seen).toEqual([
      ['1', 0, 'outer-key', 'plain'],
      ['2', 0, 'a', 'one'],
      ['2', 1, 'b', 'two'],
      ['2', 2, 'a', ''],
      ['3', 0, 'outer-key', 'plain'],
    ])
  })

  test('a redriven record keeps the sub-position that it had, and is not taken apart although it looks like an aggregate', () => {
    const inner = aggregateOf([
      { partitionKey: 'a', data: 'x' },
      { partitionKey: 'b', data: 'y' },
    ])
    const { partition, records } = read({ ...row('7', inner), millrace: { subPosition: 3 } })
    expect(partition).toBe(shard)
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({
      ...{ source: 'orders', partition: shard, position: '7', subPosition: 3, key: 'outer-key' },
      ...{ payload: inner, arrivalTimeMs: 1671562498449, unreadable: undefined },
    })
  })

  test.each([-1, 1.5, '1', undefined])('the sub-position %p of a redriven record is refused', (subPosition) => {
    const redriven = { ...row('7', 'x'), millrace: { subPosition: subPosition as number } }
    expect(() => read(redriven)).toThrow(/^record 0 of the Kinesis event has the sub-position/)
  })

  test('an aggregate without records yields nothing', () => {
    expect(read(row('1', aggregateOf([])))).toEqual({ partition: shard, records: [] })
  })

  test('a cut or altered aggregate is one unreadable record with its original bytes; its neighbours go on', () => {
    const whole = aggregateOf([{ partitionKey: 'a', data: 'one' }])
    const altered = Buffer.from(whole)
    altered[6] = 0x62
    for (const bytes of [altered, whole.subarray(0, 12), whole.subarray(0, 4)]) {
      const { records } = read(row('1', bytes), row('2', 'plain'))
      expect(records).toHaveLength(2)
      expect(records[0]).toMatchObject({
        position: '1',
        key: 'outer-key',
        payload: bytes,
        unreadable: { code: 'aggregate-corrupt', message: expect.stringMatching(/checksum|too short/) },
      })
      expect(records[1]?.unreadable).toBeUndefined()
    }
  })

  test('bytes that only begin like an aggregate are a plain record', () => {
    const bytes = Buffer.from([0xf3, 0x89, 0x9a, 0x00, 0x01])
    expect(read(row('1', bytes)).records[0]).toMatchObject({ payload: bytes, unreadable: undefined })
  })

  test('an event that mixes shards is refused with both names', () => {
    const other = { ...row('2', ''), eventID: 'shardId-000000000070:2' }
    expect(() => read(row('1', ''), other)).toThrow(
      expect.objectContaining({ code: 'several-shards', message: expect.stringContaining('shardId-000000000070') }),
    )
  })

  test.each([
    ['no event id', { ...row('1', ''), eventID: undefined }],
    ['an event id without a shard', { ...row('1', ''), eventID: ':1' }],
    ['nothing of Kinesis', { ...row('1', ''), kinesis: undefined }],
    ['no sequence number', row('1', '', { sequenceNumber: undefined })],
    ['a sequence number of letters', row('1', '', { sequenceNumber: 'seq' })],
    ['no data', row('1', '', { data: undefined })],
    ['no partition key', row('1', '', { partitionKey: undefined })],
    ['no arrival time', row('1', '', { approximateArrivalTimestamp: undefined })],
  ])('a record with %s is a typed error that names its place', (_, bad) => {
    const act = () => read(row('0', ''), bad as KinesisEventRecord)
    expect(act).toThrow(EventError)
    expect(act).toThrow('record 1 of the Kinesis event')
  })

  test('an event without records is a typed error', () => {
    expect(() => read()).toThrow(EventError)
  })
})
