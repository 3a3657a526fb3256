/**
 * The ports of a Kafka mapping over a real cluster.
 *
 * 1. A page counts only where the topic is still the one that the iterator is of: ids never come again, so one look behind the fetch
 *    says so of the fetch.
 * 2. A page is only read, never waited for: a connection answers one request after the other, and the pollers of a topic share it.
 * 3. The broker refuses what a generation commits that is over; the mapping is told, and joins anew.
 */
import type { KafkaGroup, KafkaReader, KafkaRecord, KafkaTopic } from '../../aws/kafka/kafka-port.ts'
import type { ConsumerGroup, KafkaSourceRecord, TopicReader } from '../../emulator/event-source-mapping/index.ts'
import { type NamedPosition, offsetAt, partitionsAsShards } from './topic-positions.ts'

export interface BrokerTopicOptions {
  /**
   * Where reading goes on when the offset that comes next is gone, or not there yet: the mapping's starting position, as consumers
   * have it [I]. @default 'trim-horizon'
   */
  readonly whenLost?: 'trim-horizon' | 'latest'
}

type Iterator = readonly [topicId: string, partition: number, offset: string]

const { signal: never } = new AbortController()

function sourceRecord(record: KafkaRecord): KafkaSourceRecord {
  const { partition, offset, key = null, value, headers, timestampMs, timestampType = 'CREATE_TIME' } = record
  return {
    sequenceNumber: String(offset),
    partitionKey: String(partition),
    data: value ?? new Uint8Array(),
    arrivalMs: timestampMs,
    offset: Number(offset),
    ...{ partition, timestampType, key, value, headers },
  }
}

/**
 * Reads a topic of a cluster for a mapping. What the cluster fails with rejects, and the mapping tries again in its own time; a topic
 * that is not there is an error that names it.
 *
 * @example
 * const reader = brokerTopic(openReader(connection), 'orders')
 * const mapping = new KafkaEventSourceMapping({ reader, group: brokerGroup(openGroup(connection, { group, topic })), ...rest })
 */
export function brokerTopic(reader: KafkaReader, topic: string, options: BrokerTopicOptions = {}): TopicReader {
  const { whenLost = 'trim-horizon' } = options
  const described = async (): Promise<KafkaTopic> => {
    const found = await reader.topic(topic, never)
    if (found === undefined) throw new Error(`there is no topic "${topic}": make it, or mend the name`)
    return found
  }
  const offsetIn = (partition: string, position: NamedPosition): Promise<bigint> =>
    offsetAt(position, (place) => reader.offsetOf(topic, Number(partition), place, never))
  return {
    topicId: async () => (await described()).id,
    async listShards() {
      return partitionsAsShards((await described()).partitions)
    },
    offsetAt: async (partition, position) => Number(await offsetIn(partition, position)),
    async open(partition, position) {
      const { id } = await described()
      const wanted =
        position.at === 'after' ? BigInt(position.sequenceNumber) + 1n : await offsetIn(partition, position)
      const first = await offsetIn(partition, { at: 'trim-horizon' })
      const end = await offsetIn(partition, { at: 'latest' })
      const lost = whenLost === 'latest' ? end : first
      const iterator: Iterator = [id, Number(partition), String(wanted >= first && wanted <= end ? wanted : lost)]
      return JSON.stringify(iterator)
    },
    async read(iterator, limit) {
      const [topicId, partition, offset] = JSON.parse(iterator) as Iterator
      const page = await reader.fetch(topic, partition, BigInt(offset), never, 0)
      const records = page.records.slice(0, limit)
      if (records.length > 0) {
        const { id } = await described()
        if (id !== topicId) throw new Error(`topic "${topic}" was deleted and made again: its id is ${id}`)
      }
      const last = records.length < page.records.length ? records.at(-1) : undefined
      const next = last === undefined ? page.nextOffset : last.offset + 1n
      return {
        records: records.map(sourceRecord),
        nextIterator: JSON.stringify([topicId, partition, String(next)] satisfies Iterator),
        millisBehindLatest: next < page.endOffset ? 1 : 0,
      }
    },
  }
}

/** The group of a mapping, at the broker. Whoever opened it closes it, once the mapping has stopped. */
export function brokerGroup(group: KafkaGroup): ConsumerGroup {
  return {
    async join(onLost) {
      const membership = await group.join(onLost)
      return {
        async load() {
          const committed = await membership.committed()
          return new Map(
            Array.from(committed, ([partition, offset]) => {
              const position = { at: 'after', sequenceNumber: String(offset - 1n) } as const
              return [String(partition), { position, drained: false }]
            }),
          )
        },
        async save(partition, { position }) {
          if (position.at === 'after') await membership.commit(Number(partition), BigInt(position.sequenceNumber) + 1n)
        },
      }
    },
  }
}
