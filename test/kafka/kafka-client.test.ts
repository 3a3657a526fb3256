/** The rules of lib/aws/kafka/kafka-client.ts, each against a broker. */
import { Consumer, murmur2 as ofTheClient, Producer } from '@platformatic/kafka'
import fc from 'fast-check'
import type { KafkaMessage } from '../../lib/aws/kafka/kafka-port.ts'
import { murmur2, partitionOf } from '../../lib/core/kafka-partitioner.ts'
import {
  admin,
  allRecords,
  inOpenTransaction,
  never,
  newTopic,
  plain,
  producer,
  reader,
  recordsIn,
  recreate,
  text,
  withBroker,
} from './broker.ts'

const message = (value: string, changes: Partial<KafkaMessage> = {}): KafkaMessage => ({
  partition: 0,
  key: undefined,
  value: Buffer.from(value),
  ...changes,
})

test('a key is where the Java client puts it', () => {
  // From the tests of Kafka's own Utils.murmur2.
  expect([murmur2(Buffer.from('21')), murmur2(Buffer.from('foobar'))]).toEqual([-973932308, -790332482])
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(murmur2(bytes)).toBe(ofTheClient(Buffer.from(bytes)))
    }),
  )
  expect(partitionOf(Buffer.from('21'), 8)).toBe((-973932308 & 0x7fffffff) % 8)
})

/** How many calls of a method of the client are in flight with each that begins. */
function callsOf<Name extends string>(prototype: { [name in Name]: unknown }, name: Name) {
  const real = prototype[name] as (...all: unknown[]) => Promise<unknown>
  const inFlight: number[] = []
  let now = 0
  const spy = jest.spyOn(prototype as never, name as never).mockImplementation(async function (
    this: unknown,
    ...all: unknown[]
  ) {
    inFlight.push(++now)
    try {
      return await real.apply(this, all)
    } finally {
      now--
    }
  } as never)
  return { inFlight, restore: () => spy.mockRestore() }
}

withBroker('a producer', () => {
  test('keeps keys, headers and timestamps, and tells a tombstone from an empty payload and no key from an empty one', async () => {
    const topic = await newTopic()
    const headers = [
      { name: 'trace', value: Buffer.from([0, 255]) },
      { name: 'trace', value: Buffer.from('again') },
      { name: 'ä', value: Buffer.alloc(0) },
    ]
    await producer().send(
      topic,
      [
        message('a', { key: Buffer.from('ä'), headers, timestampMs: 1_700_000_000_123 }),
        message('', { key: Buffer.alloc(0), timestampMs: 0 }),
        { partition: 0, key: Buffer.from('gone'), value: null, timestampMs: 1_600_000_000_000 },
        message('b'),
      ],
      never(),
    )
    const records = await recordsIn(topic)
    expect(records.map(({ key, value }) => [key && text(key), value && text(value)])).toEqual([
      ['ä', 'a'],
      ['', ''],
      ['gone', null],
      [undefined, 'b'],
    ])
    expect(records[0]?.headers.map(({ name, value }) => [name, [...value]])).toEqual([
      ['trace', [0, 255]],
      ['trace', [...Buffer.from('again')]],
      ['ä', []],
    ])
    expect(records.slice(0, 3).map(({ timestampMs }) => timestampMs)).toEqual([1_700_000_000_123, 0, 1_600_000_000_000])
    expect(records.map(({ offset }) => offset)).toEqual([0n, 1n, 2n, 3n])
  })

  test('keeps timestamps that are years apart, which the client alone would not', async () => {
    const topic = await newTopic(2)
    const day = 86_400_000
    const times = [1_700_000_000_000, 0, 24 * day, 25 * day, 1_700_000_000_000, 2 ** 31, 0, 2 ** 32, 5]
    const messages = times.map((timestampMs, n) => message(String(n), { timestampMs, partition: n % 2 }))
    await producer().send(topic, messages, never())
    const records = await allRecords(topic, 2)
    const order = [0, 2, 4, 6, 8, 1, 3, 5, 7]
    expect(records.map(({ value, timestampMs }) => [Number(text(value)), timestampMs])).toEqual(
      order.map((n) => [n, times[n]]),
    )
  })

  test('has one send in flight, whoever calls', async () => {
    const topic = await newTopic()
    const { inFlight, restore } = callsOf(Producer.prototype, 'send')
    try {
      const writer = producer()
      await Promise.all(Array.from({ length: 20 }, (_, n) => writer.send(topic, [message(String(n))], never())))
    } finally {
      restore()
    }
    expect(inFlight).toEqual(Array(20).fill(1))
    expect((await recordsIn(topic)).map(({ value }) => Number(text(value)))).toEqual(
      Array.from({ length: 20 }, (_, n) => n),
    )
  })

  test('refuses a partition that is not there, which the client would take for another', async () => {
    const topic = await newTopic(4)
    const writer = producer()
    for (const partition of [99, 4, -1, 0.5]) {
      await expect(writer.send(topic, [message('a', { partition })], never())).rejects.toMatchObject({
        name: 'PARTITION_OUT_OF_BOUNDS',
        passes: false,
      })
    }
    expect(await allRecords(topic, 4)).toEqual([])
  })

  test('says that a topic is missing at once, and does not make it', async () => {
    await expect(producer().send('no-such-topic', [message('a')], never())).rejects.toMatchObject({
      name: 'UNKNOWN_TOPIC_OR_PARTITION',
      passes: false,
    })
    expect(await reader().topic('no-such-topic', never())).toBeUndefined()
  })

  test('says by the name of the protocol what is too large, and goes on with the next', async () => {
    const topic = await newTopic(1, { 'max.message.bytes': '2000' })
    const writer = producer()
    await writer.send(topic, [message('before')], never())
    const failure = writer.send(topic, [message('x'.repeat(3_000))], never())
    await expect(failure).rejects.toMatchObject({ name: 'MESSAGE_TOO_LARGE', passes: false })
    await writer.send(topic, [message('behind')], never())
    expect((await recordsIn(topic)).map(({ value }) => text(value))).toEqual(['before', 'behind'])
  })

  test('does not begin a send behind the abort', async () => {
    const topic = await newTopic()
    await expect(producer().send(topic, [message('a')], AbortSignal.abort())).rejects.toMatchObject({
      name: 'DEADLINE',
      passes: true,
    })
    expect(await recordsIn(topic)).toEqual([])
  })

  test('a broker that is not there is a failure that passes, within the deadline', async () => {
    const writer = producer({ bootstrapBrokers: ['127.0.0.1:1'] }, { sendDeadlineMs: 300 })
    await expect(writer.send('any', [message('a')], never())).rejects.toMatchObject({ name: 'DEADLINE', passes: true })
  })
})

withBroker('a reader', () => {
  test('begins at the asked offset, although a broker gives the whole batch that it is in', async () => {
    const topic = await newTopic()
    await producer().send(
      topic,
      ['a', 'b', 'c', 'd'].map((value) => message(value)),
      never(),
    )
    const page = await reader().fetch(topic, 0, 2n, never())
    expect(page.records.map(({ offset, value }) => [offset, text(value)])).toEqual([
      [2n, 'c'],
      [3n, 'd'],
    ])
    expect(page).toMatchObject({ nextOffset: 4n, endOffset: 4n })
  })

  test('has one fetch in flight, so that many at once are each answered', async () => {
    const topic = await newTopic(4)
    const numbers = Array.from({ length: 20 }, (_, n) => n)
    for (const partition of [0, 1, 2, 3]) {
      await producer().send(
        topic,
        numbers.map((n) => message(`${partition}:${n}`, { partition })),
        never(),
      )
    }
    const reads = reader()
    const asked = numbers.flatMap((n) => [0, 1, 2, 3].map((partition) => [partition, n] as const))
    const { inFlight, restore } = callsOf(Consumer.prototype, 'fetch')
    const pages = await Promise.all(
      asked.map(([partition, n]) => reads.fetch(topic, partition, BigInt(n), never(), 0)),
    ).finally(restore)
    expect(inFlight).toEqual(Array(asked.length).fill(1))
    expect(pages.map(({ records }) => text(records[0]?.value))).toEqual(asked.map(([p, n]) => `${p}:${n}`))
  })

  test('gives no control record and nothing of an aborted transaction', async () => {
    const topic = await newTopic()
    const transactional = new Producer({
      clientId: 'millrace-test',
      ...plain,
      idempotent: true,
      transactionalId: `tx-${topic}`,
    })
    try {
      for (const [value, commits] of [
        ['kept', true],
        ['dropped', false],
        ['kept too', true],
        ['dropped too', false],
      ] as const) {
        const transaction = await transactional.beginTransaction()
        await transaction.send({ messages: [{ topic, partition: 0, value: Buffer.from(value) }] })
        await (commits ? transaction.commit() : transaction.abort())
      }
    } finally {
      await transactional.close()
    }
    const records = await recordsIn(topic)
    expect(records.map(({ value }) => text(value))).toEqual(['kept', 'kept too'])
    expect(await reader().offsetOf(topic, 0, 'latest', never())).toBe(8n)
    // From within the aborted transaction, and behind it.
    expect((await reader().fetch(topic, 0, 2n, never())).records.map(({ value }) => text(value))).toEqual(['kept too'])
    expect((await reader().fetch(topic, 0, 6n, never())).records).toEqual([])
  })

  test('says what may be read, and where the end is, while a transaction is open', async () => {
    const topic = await newTopic()
    await producer().send(topic, [message('a')], never())
    await inOpenTransaction(topic, async () => {
      const page = await reader().fetch(topic, 0, 0n, never())
      expect(page.records.map(({ value }) => text(value))).toEqual(['a'])
      expect(page).toMatchObject({ nextOffset: 1n, endOffset: 1n })
      expect(await reader().offsetOf(topic, 0, 'latest', never())).toBe(2n)
    })
    expect((await recordsIn(topic)).map(({ value }) => text(value))).toEqual(['a', 'open'])
  })

  test('finds places: the beginning, the end and a time', async () => {
    const topic = await newTopic()
    await producer().send(
      topic,
      [100, 200, 300].map((timestampMs) => message('a', { timestampMs })),
      never(),
    )
    const places = reader()
    expect(await places.offsetOf(topic, 0, 'earliest', never())).toBe(0n)
    expect(await places.offsetOf(topic, 0, 'latest', never())).toBe(3n)
    expect(await places.offsetOf(topic, 0, 150, never())).toBe(1n)
    expect(await places.offsetOf(topic, 0, 301, never())).toBeUndefined()
  })

  test('sees a partition that was added, and another topic of the same name', async () => {
    const topic = await newTopic(2)
    const sees = reader()
    const before = await sees.topic(topic, never())
    expect(before?.partitions).toBe(2)
    await admin().addPartitions(topic, 3, never())
    expect(await sees.topic(topic, never())).toEqual({ id: before?.id, partitions: 3 })
    await recreate(topic)
    const after = await sees.topic(topic, never())
    expect(after?.partitions).toBe(1)
    expect(after?.id).not.toBe(before?.id)
  })
})
