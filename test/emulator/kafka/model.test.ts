/** The log of Kafka as the emulated mapping, the simulator and tests know it. */
import fc from 'fast-check'
import { KafkaModel, murmur2, partitionOf, type TopicSettings } from '../../../lib/emulator/kafka/index.ts'

const noonMs = Date.UTC(2026, 0, 1, 12)
const bytes = (text: string) => Buffer.from(text)

function world(settings: TopicSettings = {}) {
  const clock = { now: noonMs, nowMs: () => clock.now }
  const kafka = new KafkaModel({ clock })
  const { topicId } = kafka.createTopic('orders', settings)
  const put = (value: string | null, more: { key?: string; timestampMs?: number; partition?: number } = {}) =>
    kafka.produce({
      topic: 'orders',
      partition: more.partition ?? 0,
      records: [
        {
          value: value === null ? null : bytes(value),
          ...(more.key === undefined ? {} : { key: bytes(more.key) }),
          ...(more.timestampMs === undefined ? {} : { timestampMs: more.timestampMs }),
        },
      ],
    }).offset
  const read = (offset = 0, maxRecords = 1_000) => kafka.fetch({ topicId, partition: 0, offset, maxRecords })
  const offsets = () => read(kafka.offsetAt('orders', 0, 'earliest') as number).records.map((record) => record.offset)
  return { clock, kafka, topicId, put, read, offsets }
}

describe('a partition', () => {
  test('numbers its records from 0, and gives them as they came: key, value, headers, time', () => {
    const { kafka, read } = world()
    const headers = [
      { name: 'trace', value: bytes('1') },
      { name: 'trace', value: null },
    ]
    const records = [
      { key: bytes('k'), value: bytes(''), headers, timestampMs: noonMs - 5 },
      { key: null, value: null },
    ]
    expect(kafka.produce({ topic: 'orders', partition: 0, records })).toEqual({ offset: 0, isDuplicate: false })
    expect(read()).toEqual({
      records: [
        { offset: 0, key: bytes('k'), value: bytes(''), headers, timestampMs: noonMs - 5 },
        { offset: 1, key: null, value: null, headers: [], timestampMs: noonMs },
      ],
      nextOffset: 2,
      logStartOffset: 0,
      endOffset: 2,
    })
  })

  test('reads page after page, each record once', () => {
    const { put, read } = world()
    for (const value of ['a', 'b', 'c']) put(value)
    expect(read(0, 2)).toMatchObject({ records: [{ offset: 0 }, { offset: 1 }], nextOffset: 2 })
    expect(read(2, 2)).toMatchObject({ records: [{ offset: 2 }], nextOffset: 3 })
    expect(read(3, 2)).toMatchObject({ records: [], nextOffset: 3 })
  })

  test('with LogAppendTime the broker says the time, whatever the producer says', () => {
    const { clock, put, read } = world({ timestampType: 'LogAppendTime' })
    put('a', { timestampMs: 5 })
    clock.now += 10
    put('b', { timestampMs: 6 })
    expect(read().records.map(({ timestampMs }) => timestampMs)).toEqual([noonMs, noonMs + 10])
  })

  test('has gaps where transactions end, and reading goes on behind them', () => {
    const { kafka, put, read, offsets } = world()
    put('a')
    kafka.appendControl('orders', 0)
    put('b')
    kafka.appendControl('orders', 0)
    expect(offsets()).toEqual([0, 2])
    expect(read(1)).toMatchObject({ records: [{ offset: 2 }], nextOffset: 4, endOffset: 4 })
    expect(read(3)).toMatchObject({ records: [], nextOffset: 4 })
  })

  test('finds the first record with a time, though times of producers do not ascend', () => {
    const { kafka, put } = world()
    for (const timestampMs of [100, 300, 200]) put('v', { timestampMs: noonMs + timestampMs })
    const at = (ms: number) => kafka.offsetAt('orders', 0, { timestampMs: noonMs + ms })
    expect([at(0), at(150), at(300), at(301)]).toEqual([0, 1, 1, undefined])
  })

  test.each([-1, 3])('refuses to read at the offset %d, which it does not have', (offset) => {
    const { put, read } = world()
    put('a')
    put('b')
    expect(() => read(offset)).toThrow(expect.objectContaining({ code: 'OFFSET_OUT_OF_RANGE', apiCode: 1 }))
  })

  test('a batch above the topic’s limit is refused as a whole', () => {
    const { kafka, read } = world({ maxMessageBytes: 200 })
    const records = [{ value: bytes('a') }, { value: Buffer.alloc(150) }]
    expect(() => kafka.produce({ topic: 'orders', partition: 0, records })).toThrow(
      expect.objectContaining({ code: 'MESSAGE_TOO_LARGE' }),
    )
    expect(read().records).toEqual([])
  })
})

describe('what a log lets go of', () => {
  test('deleted records are gone from the front; offsets go on', () => {
    const { kafka, put, read, offsets } = world()
    for (const value of ['a', 'b', 'c']) put(value)
    kafka.deleteRecords('orders', 0, 2)
    expect(offsets()).toEqual([2])
    expect(() => read(1)).toThrow(expect.objectContaining({ code: 'OFFSET_OUT_OF_RANGE' }))
    kafka.deleteRecords('orders', 0, 1)
    kafka.deleteRecords('orders', 0, 3)
    expect(read(3)).toMatchObject({ records: [], logStartOffset: 3 })
    expect(put('d')).toBe(3)
    expect(() => kafka.deleteRecords('orders', 0, 9)).toThrow(expect.objectContaining({ code: 'OFFSET_OUT_OF_RANGE' }))
  })

  test('retention takes from the front what is older, and a young record keeps all behind it', () => {
    const { clock, put, offsets, kafka } = world({ retentionMs: 1_000 })
    put('a')
    put('b', { timestampMs: noonMs + 5_000 })
    put('c', { timestampMs: noonMs - 5_000 })
    clock.now += 1_001
    expect(offsets()).toEqual([1, 2])
    clock.now += 5_000
    expect(offsets()).toEqual([])
    expect(kafka.offsetAt('orders', 0, 'earliest')).toBe(3)
  })

  test('compaction keeps the last record of each key and of the log; old tombstones go', () => {
    const { clock, kafka, put, offsets, read } = world({ isCompacted: true, deleteRetentionMs: 1_000, retentionMs: -1 })
    put('1', { key: 'a' })
    put('1', { key: 'b' })
    put('2', { key: 'a' })
    put(null, { key: 'b' })
    put('1', { key: 'c' })
    kafka.compact('orders')
    expect(offsets()).toEqual([2, 3, 4])
    expect(read(0)).toMatchObject({ nextOffset: 5, logStartOffset: 0 })
    clock.now += 1_001
    kafka.compact('orders')
    expect(offsets()).toEqual([2, 4])
    expect(() => put('no key')).toThrow(expect.objectContaining({ code: 'INVALID_RECORD' }))
  })
})

describe('topics', () => {
  test('partitions are only ever added, and are empty', () => {
    const { kafka, put, topicId } = world({ partitions: 2 })
    put('a')
    kafka.createPartitions('orders', 3)
    expect(kafka.describeTopic('orders')).toMatchObject({ partitions: 3, topicId })
    expect(put('b', { partition: 2 })).toBe(0)
    expect(() => kafka.createPartitions('orders', 3)).toThrow(expect.objectContaining({ code: 'INVALID_PARTITIONS' }))
    expect(() => put('c', { partition: 3 })).toThrow(expect.objectContaining({ code: 'UNKNOWN_TOPIC_OR_PARTITION' }))
  })

  test('one that is made again has another id, begins at 0, and groups have committed nothing of it', () => {
    const { kafka, put, topicId } = world()
    put('a')
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 1 }])
    kafka.deleteTopic('orders')
    const again = kafka.createTopic('orders')
    expect(again.topicId).not.toBe(topicId)
    expect(put('b')).toBe(0)
    expect(kafka.committedOffsets('g', 'orders')).toEqual(new Map())
    expect(() => kafka.fetch({ topicId, partition: 0, offset: 0, maxRecords: 1 })).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_TOPIC_ID' }),
    )
    expect(() => kafka.createTopic('orders')).toThrow(expect.objectContaining({ code: 'TOPIC_ALREADY_EXISTS' }))
  })
})

describe('consumer groups', () => {
  test('what was committed last counts, of each group for itself', () => {
    const { kafka } = world({ partitions: 2 })
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 5 }])
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 1, offset: 2 }])
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 3 }])
    expect(kafka.committedOffsets('g', 'orders')).toEqual(
      new Map([
        [0, 3],
        [1, 2],
      ]),
    )
    expect(kafka.committedOffsets('other', 'orders')).toEqual(new Map())
  })

  test('a member of an older generation commits nothing', () => {
    const { kafka } = world()
    const first = kafka.rebalanceGroup('g')
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 5 }], first)
    const second = kafka.rebalanceGroup('g')
    expect(() => kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 9 }], first)).toThrow(
      expect.objectContaining({ code: 'ILLEGAL_GENERATION' }),
    )
    kafka.commitOffsets('g', [{ topic: 'orders', partition: 0, offset: 6 }], second)
    expect(kafka.committedOffsets('g', 'orders')).toEqual(new Map([[0, 6]]))
  })
})

describe('idempotent producers', () => {
  const sending =
    (w: ReturnType<typeof world>, producerId: number) =>
    (sequence: number, values: string[], epoch = 0) =>
      w.kafka.produce({
        topic: 'orders',
        partition: 0,
        records: values.map((value) => ({ value: bytes(value) })),
        producer: { producerId, epoch, sequence },
      })

  test('a batch that comes again gets the offset that it has', () => {
    const w = world()
    const send = sending(w, w.kafka.initProducer())
    send(0, ['a', 'b'])
    send(2, ['c'])
    expect(send(0, ['a', 'b'])).toEqual({ offset: 0, isDuplicate: true })
    expect(send(2, ['c'])).toEqual({ offset: 2, isDuplicate: true })
    expect(send(3, ['d'])).toEqual({ offset: 3, isDuplicate: false })
    expect(w.offsets()).toEqual([0, 1, 2, 3])
  })

  test.each([
    ['one that leaves a batch out', 2, 'OUT_OF_ORDER_SEQUENCE_NUMBER', 0],
    ['one that is too old to be known', 0, 'DUPLICATE_SEQUENCE_NUMBER', 6],
  ])('%s is refused', (_, sequence, code, sentBefore) => {
    const w = world()
    const send = sending(w, w.kafka.initProducer())
    send(0, ['first'])
    for (let i = 1; i <= sentBefore; i += 1) send(i, ['more'])
    expect(() => send(sequence, ['x'])).toThrow(expect.objectContaining({ code }))
  })

  test('an older epoch is fenced, and a newer one begins at 0', () => {
    const w = world()
    const send = sending(w, w.kafka.initProducer())
    send(0, ['a'])
    expect(() => send(1, ['b'], 1)).toThrow(expect.objectContaining({ code: 'OUT_OF_ORDER_SEQUENCE_NUMBER' }))
    send(0, ['b'], 1)
    expect(() => send(1, ['c'], 0)).toThrow(expect.objectContaining({ code: 'INVALID_PRODUCER_EPOCH' }))
  })

  test('sequence numbers begin anew at 0 behind the largest', () => {
    const w = world()
    const send = sending(w, w.kafka.initProducer())
    send(2 ** 31 - 2, ['a', 'b'])
    expect(send(0, ['c'])).toEqual({ offset: 2, isDuplicate: false })
  })

  test('whatever comes again in whatever order, each batch is in the log once', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4), { maxLength: 30 }), (steps) => {
        const w = world()
        const send = sending(w, w.kafka.initProducer())
        let next = 0
        for (const back of steps) {
          const sequence = back === 0 ? next : Math.max(0, next - back)
          if (sequence === next) next += 1
          expect(send(sequence, [String(sequence)]).offset).toBe(sequence)
        }
        expect(w.offsets()).toEqual(Array.from({ length: next }, (_, i) => i))
      }),
    )
  })
})

test('keys are placed as by the Java client: murmur2', () => {
  // From the tests of Kafka's own client (UtilsTest).
  const known: [string, number][] = [
    ['21', -973_932_308],
    ['foobar', -790_332_482],
    ['a-little-bit-long-string', -985_981_536],
    ['a-little-bit-longer-string', -1_486_304_829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58_897_971],
    ['abc', 479_470_107],
  ]
  for (const [key, hash] of known) expect([key, murmur2(bytes(key))]).toEqual([key, hash])
  expect(partitionOf(bytes('21'), 10)).toBe((-973_932_308 & 0x7fffffff) % 10)
})
