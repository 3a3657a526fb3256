import { KafkaFailure } from '../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaProducer } from '../../lib/aws/kafka/kafka-port.ts'
import { kafkaSink } from '../../lib/aws/kafka/kafka-sink.ts'
import { partitionOf } from '../../lib/core/kafka-partitioner.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import type { Output } from '../../lib/runtime/sink.ts'
import { type Probe, type Refusal, sinkConformance } from '../../lib/testing/sink-conformance.ts'
import { InstantClock, never, outputs, testPorts } from '../aws/sink-worlds.ts'
import { allRecords, newTopic, producer, recordsIn, text, withBroker } from './broker.ts'

const partitions = 3
const options = (writer: KafkaProducer, topic: string) => ({
  producer: writer,
  topic,
  origin: 'shop/orders',
  ...testPorts(),
})

/** A producer that refuses requests with records of a key before the broker sees them, as one without replicas does. */
function refusing(inner: KafkaProducer, refusals: readonly (Refusal & { left: number })[]): KafkaProducer {
  return {
    topic: (name, signal) => inner.topic(name, signal),
    close: () => inner.close(),
    async send(topic, messages, signal) {
      const refusal = refusals.find(
        ({ key, left }) => left > 0 && messages.some((message) => text(message.key) === key),
      )
      if (refusal === undefined) return inner.send(topic, messages, signal)
      refusal.left--
      refusal.refused()
      throw new KafkaFailure('NOT_ENOUGH_REPLICAS', 'too few replicas are in sync', { passes: true })
    },
  }
}

withBroker('the Kafka sink', () => {
  describe('conformance', () => {
    const make = async () => {
      const topic = await newTopic(partitions)
      const refusals: (Refusal & { left: number })[] = []
      return {
        sink: kafkaSink<Probe>(options(refusing(producer(), refusals), topic)),
        idempotent: false,
        stored: async () => (await allRecords(topic, partitions)).map(({ value }): Probe => JSON.parse(text(value))),
        refuse: (refusal: Refusal) => void refusals.push({ ...refusal, left: refusal.times }),
      }
    }
    for (const { name, run } of sinkConformance('Kafka', { make })) test(name, run)
  })

  const fields = {
    source: 'orders',
    partition: '0',
    position: '7',
    arrivalTimeMs: 1_700_000_000_000,
    payload: null,
    headers: [
      { name: 'trace', value: Buffer.from('t-1') },
      { name: 'millrace-output', value: Buffer.from('of the sink before') },
    ],
  }
  const record = new SourceRecord(fields)
  // Long before it arrived.
  record.eventTimeMs = 1_600_000_000_500
  const output = (value: unknown, key?: string, index = 0): Output => ({ value, key, record, index })

  async function written(...all: Output[]) {
    const topic = await newTopic(partitions)
    const sink = kafkaSink<unknown>(options(producer(), topic))
    const outcomes = await sink.deliver(
      all.map((one) => sink.prepare(one)),
      { signal: never() },
    )
    return { outcomes, records: await allRecords(topic, partitions) }
  }

  test('puts a key where every producer does, with the headers of its record, its event time and its identity', async () => {
    const { records } = await written(output({ id: 'ä' }, 'ä'))
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({
      partition: partitionOf(Buffer.from('ä'), partitions),
      timestampMs: 1_600_000_000_500,
    })
    expect([text(records[0]?.key), text(records[0]?.value)]).toEqual(['ä', '{"id":"ä"}'])
    expect(records[0]?.headers.map(({ name, value }) => [name, text(value)])).toEqual([
      ['trace', 't-1'],
      ['millrace-output', 'shop/orders/orders/0/7/0/0'],
    ])
  })

  test('writes the arrival of a record whose event time is before 1970, which a broker does not take', async () => {
    const early = new SourceRecord(fields)
    early.eventTimeMs = -1
    const { outcomes, records } = await written({ value: 'a', key: 'k', record: early, index: 0 })
    expect(outcomes).toEqual([{ status: 'delivered' }])
    expect(records.map(({ timestampMs }) => timestampMs)).toEqual([1_700_000_000_000])
  })

  test('places an output without a key by its identity: a repeated one goes where it went', async () => {
    const all = Array.from({ length: 30 }, (_, index) => output(index, undefined, index))
    const once = (await written(...all)).records
    const again = (await written(...all)).records
    const places = (records: typeof once) => records.map(({ partition, value }) => [partition, text(value)])
    expect(new Set(once.map(({ partition }) => partition)).size).toBe(partitions)
    expect(once.every(({ key }) => key === undefined)).toBe(true)
    expect(places(again)).toEqual(places(once))
  })

  test('writes null as a tombstone, and refuses one without a key', async () => {
    const { records } = await written(output(null, 'gone'))
    expect(records.map(({ value }) => value)).toEqual([null])
    const sink = kafkaSink<unknown>(options({} as KafkaProducer, 'any'))
    expect(() => sink.prepare(output(null))).toThrow(
      expect.objectContaining({ name: 'TerminalError', code: 'missing-key' }),
    )
  })

  test('what it prepares at the limit is taken by a topic with the limit of Kafka, to the byte and beyond', async () => {
    const topic = await newTopic()
    const sink = kafkaSink<string>({ ...options(producer(), topic), encode: (value) => value })
    const [first] = outputs([''], () => 'k')
    const largest = (bytes: number) => sink.prepare({ ...first, value: 'x'.repeat(bytes) } as Output<string>)
    let bytes = 1_048_588
    while (bytes > 0) {
      try {
        largest(bytes)
        break
      } catch {
        bytes--
      }
    }
    expect(bytes).toBeGreaterThan(1_048_400)
    const outcomes = await sink.deliver([largest(bytes)], { signal: never() })
    expect(outcomes.map(({ status }) => status)).toEqual(['delivered'])
  })

  test('many records of one partition go in requests that it takes', async () => {
    const topic = await newTopic()
    const sink = kafkaSink<string>(options(producer(), topic))
    const values = Array.from({ length: 40 }, (_, n) => `${n}-${'x'.repeat(100_000)}`)
    const items = outputs(values, () => 'k').map((one) => sink.prepare(one))
    const outcomes = await sink.deliver(items, { signal: never() })
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['delivered']))
    expect((await recordsIn(topic)).map(({ value }) => JSON.parse(text(value)))).toEqual(values)
  })

  test('rejects what the broker refuses of a record, and only that', async () => {
    const topic = await newTopic(1, { 'max.message.bytes': '5000', 'message.timestamp.after.max.ms': '1000' })
    const sink = kafkaSink<string>(options(producer(), topic))
    const items = outputs(['a', 'x'.repeat(6_000), 'b', 'c', 'd'], () => 'k').map((one) => sink.prepare(one))
    const ahead = { ...(items[3] as (typeof items)[0]), timestampMs: Date.now() + 3_600_000 }
    const outcomes = await sink.deliver(items.with(3, ahead), { signal: never() })
    expect(outcomes.map(({ status }) => status)).toEqual([
      'delivered',
      'rejected',
      'delivered',
      'rejected',
      'delivered',
    ])
    expect(outcomes[1]).toMatchObject({ error: { name: 'TerminalError', code: 'oversize' } })
    expect(outcomes[3]).toMatchObject({ error: { name: 'TerminalError', code: 'invalid-timestamp' } })
    const values = (await recordsIn(topic)).map(({ value }) => JSON.parse(text(value)))
    expect([...new Set(values)]).toEqual(['a', 'b', 'd'])
  })

  test('a missing topic returns everything at once, with what to do', async () => {
    const ports = testPorts(new InstantClock())
    const sink = kafkaSink<number>({ ...options(producer(), 'no-such-topic'), ...ports })
    const items = outputs([1, 2], String).map((one) => sink.prepare(one))
    const outcomes = await sink.deliver(items, { signal: never() })
    expect(outcomes.map(({ status }) => status)).toEqual(['retry', 'retry'])
    expect(outcomes[0]).toMatchObject({ error: { code: 'sink-misconfigured' } })
    expect(ports.lines).toMatchObject([{ level: 'error', fields: { error: 'UNKNOWN_TOPIC_OR_PARTITION' } }])
  })
})
