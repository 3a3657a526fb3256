import { EventError } from '../../../lib/aws/events/event-error.ts'
import { type KafkaEventRecord, kafkaRecords } from '../../../lib/aws/events/kafka-records.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const good: KafkaEventRecord = { offset: 5, timestamp: 1545084650987, key: base64('k'), value: base64('v') }

function read(records: Record<string, unknown>, sourceOf: (topic: string) => string = () => 'orders') {
  return kafkaRecords({ eventSource: 'aws:kafka', records } as Parameters<typeof kafkaRecords>[0], sourceOf)
}
const readOne = (row: object) => read({ 't-0': [row] })[0]?.records[0]

describe('kafkaRecords', () => {
  test('reads key, value, offset, timestamp and headers', () => {
    const record = readOne({ ...good, headers: [{ h1: [104, 101] }, { h2: [-1] }, { h1: [] }, { h2: null }] })
    expect(record).toMatchObject({
      source: 'orders',
      partition: 't-0',
      position: '5',
      subPosition: 0,
      arrivalTimeMs: 1545084650987,
      key: 'k',
      payload: Buffer.from('v'),
      unreadable: undefined,
    })
    expect(record?.headers.map(({ name, value }) => [name, [...value]])).toEqual([
      ['h1', [104, 101]],
      ['h2', [255]],
      ['h1', []],
      ['h2', []],
    ])
  })

  test('keeps partitions apart and orders each, and asks for the source by topic, which may contain "-"', () => {
    const batches = read(
      { 'a-b-0': [good, { ...good, offset: 6 }], 'a-b-11': [good], 'c-0': [] },
      (topic) => `source-of-${topic}`,
    )
    expect(
      batches.map(({ partition, topic, records }) => [partition, topic, records.map((r) => [r.source, r.position])]),
    ).toEqual([
      [
        'a-b-0',
        'a-b',
        [
          ['source-of-a-b', '5'],
          ['source-of-a-b', '6'],
        ],
      ],
      ['a-b-11', 'a-b', [['source-of-a-b', '5']]],
      ['c-0', 'c', []],
    ])
  })

  test('no key and an empty key are different', () => {
    expect(readOne({ ...good, key: undefined })?.key).toBeUndefined()
    expect(readOne({ ...good, key: null })?.key).toBeUndefined()
    expect(readOne({ ...good, key: '' })?.key).toBe('')
  })

  test('null and absent values are tombstones, an empty one is an empty payload', () => {
    expect(readOne({ ...good, value: null })?.payload).toBeNull()
    expect(readOne({ ...good, value: undefined })?.payload).toBeNull()
    expect(readOne({ ...good, value: '' })?.payload).toEqual(Buffer.alloc(0))
  })

  test('a self-managed event without an ARN is read alike', () => {
    expect(kafkaRecords({ eventSource: 'SelfManagedKafka', records: { 't-0': [good] } }, () => 'orders')).toHaveLength(
      1,
    )
  })

  test.each([
    ['a value that is not base64', { value: '{"a":1}' }, Buffer.from('{"a":1}')],
    ['a value with a wrong length', { value: 'abc' }, Buffer.from('abc')],
    ['a value that is an object', { value: { a: 1 } }, Buffer.from('{"a":1}')],
    ['a key that is not base64', { key: 'ä' }, Buffer.from('v')],
    ['a header that is text', { headers: [{ h: 'text' }] }, Buffer.from('v')],
    ['a header with a byte out of range', { headers: [{ h: [256] }] }, Buffer.from('v')],
    ['a header with a byte far below', { headers: [{ h: [-129] }] }, Buffer.from('v')],
    ['headers that are no list', { headers: 'h' }, Buffer.from('v')],
    ['no timestamp', { timestamp: undefined }, Buffer.from('v')],
    ['a timestamp in text', { timestamp: '1545084650987' }, Buffer.from('v')],
  ])('%s makes one unreadable record with what came; its neighbours go on', (_, change, payload) => {
    const records = read({
      't-0': [
        { ...good, offset: 4 },
        { ...good, ...change },
        { ...good, offset: 6 },
      ],
    })[0]?.records
    expect(records?.map(({ position, unreadable }) => [position, unreadable?.code])).toEqual([
      ['4', undefined],
      ['5', 'kafka-record-malformed'],
      ['6', undefined],
    ])
    expect(records?.[1]?.payload).toEqual(payload)
  })

  test.each([[undefined], [null], [-1], [1.5], ['5'], [2 ** 53]])(
    'the offset %p names no record: a typed error',
    (offset) => {
      const act = () => read({ 't-0': [good, { ...good, offset }] })
      expect(act).toThrow(EventError)
      expect(act).toThrow('record 1 of t-0')
    },
  )

  test.each([
    ['no records', undefined],
    ['a key that is no topic-partition', { orders: [good] }],
    ['a partition that is no list', { 't-0': good }],
    ['a record that is null', { 't-0': [null] }],
  ])('an event with %s is a typed error', (_, records) => {
    expect(() => read(records as Record<string, unknown>)).toThrow(EventError)
  })
})
