/** The ports of a mapping over a broker. */
import type { KafkaSourceRecord, ShardRead, TopicReader } from '../../lib/emulator/event-source-mapping/index.ts'
import { brokerTopic } from '../../lib/local/reading/broker-topic.ts'
import { admin, never, newTopic, producer, reader, recreate, text, withBroker } from './broker.ts'

const write = (topic: string, values: readonly string[], partition = 0, firstMs = 100) =>
  producer().send(
    topic,
    values.map((value, n) => ({
      partition,
      key: Buffer.from('k'),
      value: Buffer.from(value),
      timestampMs: firstMs + 100 * n,
    })),
    never(),
  )

const recordsOf = ({ records }: ShardRead) => records as readonly KafkaSourceRecord[]
const valuesOf = (read: ShardRead) => recordsOf(read).map(({ value }) => text(value))

/** All that is there, in reads of so many records. */
async function readAll(from: TopicReader, limit: number): Promise<readonly (readonly string[])[]> {
  const reads: (readonly string[])[] = []
  let iterator = await from.open('0', { at: 'trim-horizon' })
  for (;;) {
    const read = await from.read(iterator, limit)
    reads.push(valuesOf(read))
    if (read.millisBehindLatest === 0) return reads
    iterator = String(read.nextIterator)
  }
}

withBroker('a topic, read for a mapping', () => {
  test('gives records as an event has them, no more than are asked for, none twice and none left out', async () => {
    const topic = await newTopic()
    await write(topic, ['a', 'b', 'c', 'd', 'e'])
    const from = brokerTopic(reader(), topic)
    expect(await readAll(from, 2)).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    const [first] = recordsOf(await from.read(await from.open('0', { at: 'trim-horizon' }), 1))
    expect(first).toMatchObject({
      sequenceNumber: '0',
      partition: 0,
      offset: 0,
      arrivalMs: 100,
      timestampType: 'CREATE_TIME',
    })
    expect([text(first?.key), first?.headers]).toEqual(['k', []])
  })

  test('says whose clock the times are of', async () => {
    const topic = await newTopic(1, { 'message.timestamp.type': 'LogAppendTime' })
    await write(topic, ['a'])
    const from = brokerTopic(reader(), topic)
    const [first] = recordsOf(await from.read(await from.open('0', { at: 'trim-horizon' }), 1))
    expect(first?.timestampType).toBe('LOG_APPEND_TIME')
    expect(first?.arrivalMs).toBeGreaterThan(100)
  })

  test('is opened at its places: behind a record, at a time, at its end', async () => {
    const topic = await newTopic()
    await write(topic, ['a', 'b', 'c'])
    const from = brokerTopic(reader(), topic)
    const at = async (...position: Parameters<TopicReader['open']>) =>
      valuesOf(await from.read(await from.open(...position), 10))
    expect(await at('0', { at: 'after', sequenceNumber: '0' })).toEqual(['b', 'c'])
    expect(await at('0', { at: 'timestamp', timestampMs: 250 })).toEqual(['c'])
    expect(await at('0', { at: 'timestamp', timestampMs: 301 })).toEqual([])
    expect(await at('0', { at: 'latest' })).toEqual([])
    expect(await from.offsetAt('0', { at: 'timestamp', timestampMs: 301 })).toBe(3)
  })

  test.each([
    ['trim-horizon', ['a', 'b']],
    ['latest', []],
  ] as const)('goes on at the %s where the next offset is not there', async (whenLost, expected) => {
    const topic = await newTopic()
    await write(topic, ['a', 'b'])
    const from = brokerTopic(reader(), topic, { whenLost })
    const iterator = await from.open('0', { at: 'after', sequenceNumber: '41' })
    expect(valuesOf(await from.read(iterator, 10))).toEqual(expected)
  })

  test('lists a partition that was added, and reads it', async () => {
    const topic = await newTopic()
    const from = brokerTopic(reader(), topic)
    expect((await from.listShards()).map(({ shardId }) => shardId)).toEqual(['0'])
    await admin().addPartitions(topic, 2, never())
    expect((await from.listShards()).map(({ shardId }) => shardId)).toEqual(['0', '1'])
    await write(topic, ['a'], 1)
    expect(valuesOf(await from.read(await from.open('1', { at: 'trim-horizon' }), 10))).toEqual(['a'])
  })

  test('gives nothing of another topic of its name', async () => {
    const topic = await newTopic()
    await write(topic, ['a'])
    const from = brokerTopic(reader(), topic)
    const iterator = await from.open('0', { at: 'trim-horizon' })
    const before = await from.topicId()
    await recreate(topic)
    await write(topic, ['b'])
    await expect(from.read(iterator, 10)).rejects.toThrow()
    expect(await from.topicId()).not.toBe(before)
    await expect(from.read(iterator, 10)).rejects.toThrow('was deleted and made again')
    expect(valuesOf(await from.read(await from.open('0', { at: 'trim-horizon' }), 10))).toEqual(['b'])
  })

  test('that is not there is said', async () => {
    await expect(brokerTopic(reader(), 'no-such-topic').topicId()).rejects.toThrow('there is no topic "no-such-topic"')
  })
})
