import { KafkaFailure } from '../../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaReader } from '../../../lib/aws/kafka/kafka-port.ts'
import { KafkaModel } from '../../../lib/emulator/kafka/index.ts'
import { DeadLetterLog } from '../../../lib/local/dead-letters/log.ts'
import { lookUpTopicRecord } from '../../../lib/local/dead-letters/topic-record-lookup.ts'
import { TopicReader } from '../../../lib/local/reading/topic-reader.ts'
import { InstantClock } from '../../aws/sink-worlds.ts'
import { readerOf } from '../../functions/kafka/kafka-cluster.ts'

const clock = new InstantClock()
const record = (value: string | null, timestampMs = 100) => ({
  key: Buffer.from('k'),
  value: value === null ? null : Buffer.from(value),
  headers: [{ name: 'trace', value: Buffer.from([1, 255]) }],
  timestampMs,
})

function topicOf(...partitions: readonly (readonly ReturnType<typeof record>[])[]) {
  const kafka = new KafkaModel({ clock })
  kafka.createTopic('failed', { partitions: Math.max(1, partitions.length), retentionMs: -1 })
  for (const [partition, records] of partitions.entries()) {
    if (records.length > 0) kafka.produce({ topic: 'failed', partition, records })
  }
  return { kafka, reader: new TopicReader({ reader: readerOf(kafka), topic: 'failed', clock }) }
}

/** All values from a position on. */
async function valuesFrom(reader: TopicReader, partition: string, position: Parameters<TopicReader['open']>[1]) {
  const values: string[] = []
  let iterator: string | null = await reader.open(partition, position)
  while (iterator !== null) {
    const { records, nextIterator, millisBehindLatest } = await reader.read(iterator)
    values.push(...records.map(({ data }) => Buffer.from(data).toString()))
    iterator = millisBehindLatest === 0 ? null : nextIterator
  }
  return values
}

test('a position is an offset, from which on all is read', async () => {
  const { reader, kafka } = topicOf([], [record('a', 100), record('b', 300), record('c', 200)])
  expect(await reader.listShards()).toEqual([
    { shardId: '0', parentIds: [] },
    { shardId: '1', parentIds: [] },
  ])
  expect(await valuesFrom(reader, '0', { at: 'trim-horizon' })).toEqual([])
  expect(await valuesFrom(reader, '1', { at: 'trim-horizon' })).toEqual(['a', 'b', 'c'])
  expect(await valuesFrom(reader, '1', { at: 'after', sequenceNumber: '0' })).toEqual(['b', 'c'])
  expect(await valuesFrom(reader, '1', { at: 'timestamp', timestampMs: 150 })).toEqual(['b', 'c'])
  expect(await valuesFrom(reader, '1', { at: 'timestamp', timestampMs: 301 })).toEqual([])
  expect(await valuesFrom(reader, '1', { at: 'latest' })).toEqual([])
  // What retention took is missed by nobody.
  kafka.deleteRecords('failed', 1, 2)
  expect(await valuesFrom(reader, '1', { at: 'after', sequenceNumber: '0' })).toEqual(['c'])
})

test('control records and pages are no end', async () => {
  const { reader, kafka } = topicOf(Array.from({ length: 250 }, (_, index) => record(`${index}`)))
  kafka.appendControl('failed', 0)
  kafka.produce({ topic: 'failed', partition: 0, records: [record('last')] })
  kafka.appendControl('failed', 0)
  const values = await valuesFrom(reader, '0', { at: 'trim-horizon' })
  expect([values.length, values.at(-1)]).toEqual([251, 'last'])
})

test('the dead letters of a topic are known by partition and offset; what is none is told of', async () => {
  const { reader, kafka } = topicOf([record('no letter')], [record(null)])
  const log = new DeadLetterLog(reader)
  await log.refresh()
  expect(log.unreadable.map(({ place }) => place)).toEqual(['0:0', '1:0'])
  kafka.produce({ topic: 'failed', partition: 1, records: [record('{"formatVersion":3}')] })
  await log.refresh()
  expect(log.unreadable.at(-1)).toEqual({ place: '1:1', problem: expect.stringContaining('format version 3') })
})

test('what passes by itself is tried again, a few times; what does not is said at once', async () => {
  const { kafka } = topicOf([record('a')])
  let refusals = 0
  let calls = 0
  const refusing = (passes: boolean): TopicReader => {
    const reader: KafkaReader = {
      ...readerOf(kafka),
      async topic() {
        calls += 1
        if (calls <= refusals) throw new KafkaFailure('LEADER_NOT_AVAILABLE', 'in a moment', { passes })
        return { id: 'x', partitions: 1 }
      },
    }
    return new TopicReader({ reader, topic: 'failed', clock })
  }
  refusals = 4
  expect(await refusing(true).describe()).toEqual({ id: 'x', partitions: 1 })
  calls = 0
  refusals = 100
  await expect(refusing(true).describe()).rejects.toThrow('topic failed: LEADER_NOT_AVAILABLE: in a moment')
  expect(calls).toBe(5)
  calls = 0
  await expect(refusing(false).describe()).rejects.toThrow('in a moment')
  expect(calls).toBe(1)
})

test('a topic that is not there is a mistake of who named it', async () => {
  const { kafka } = topicOf([])
  const reader = new TopicReader({ reader: readerOf(kafka), topic: 'other', clock })
  await expect(reader.listShards()).rejects.toMatchObject({ name: 'ConfigurationError' })
})

test('one record is read by its offset, if it is the one: with a tombstone for a value too', async () => {
  const { kafka } = topicOf([], [record('a', 100), record(null, 200)])
  const lookUp = (position: string, arrivalTimeMs: number) =>
    lookUpTopicRecord(readerOf(kafka), { partition: 'failed-1', position, arrivalTimeMs })
  const headers = [{ name: 'trace', value: 'Af8=' }]
  expect(await lookUp('0', 100)).toEqual({ record: { key: 'aw==', payload: 'YQ==', headers } })
  expect(await lookUp('1', 200)).toEqual({ record: { key: 'aw==', payload: null, headers } })
  await expect(lookUp('1', 100)).rejects.toThrow('offset 1 of failed-1 holds another record')
  expect(await lookUp('2', 100)).toBeUndefined()
  expect(await lookUp('7', 100)).toBeUndefined()
  kafka.deleteRecords('failed', 1, 1)
  expect(await lookUp('0', 100)).toBeUndefined()
})
