/** The ports of a Kafka mapping over the model of Kafka's log. */
import { KafkaError, type KafkaModel, type LogRecord, type TopicDescription } from '../kafka/index.ts'
import type { KafkaSourceRecord } from './kafka-format.ts'
import type { ConsumerGroup, TopicReader } from './kafka-ports.ts'
import type { ReadPosition } from './ports.ts'

export interface ModelTopicOptions {
  /**
   * Where reading goes on when the offset that comes next is gone, or not there yet: the mapping's starting position, as consumers
   * have it [I]. @default 'trim-horizon'
   */
  readonly whenLost?: 'trim-horizon' | 'latest'
  /** What a schema registry says of a record. @default nothing */
  readonly schemasOf?: (record: LogRecord) => Pick<KafkaSourceRecord, 'keySchemaMetadata' | 'valueSchemaMetadata'>
}

/**
 * Reads a topic of the model.
 *
 * @example
 * const mapping = new KafkaEventSourceMapping({ reader: modelTopic(kafka, 'orders'), group: modelGroup(kafka, 'orders', uuid), ...rest })
 */
export function modelTopic(kafka: KafkaModel, topic: string, options: ModelTopicOptions = {}): TopicReader {
  const { whenLost = 'trim-horizon', schemasOf = () => ({}) } = options
  const sourceRecord = (record: LogRecord, partition: number, { timestampType }: TopicDescription) => ({
    sequenceNumber: String(record.offset),
    partitionKey: String(partition),
    data: record.value ?? new Uint8Array(),
    arrivalMs: record.timestampMs,
    partition,
    offset: record.offset,
    timestampType: timestampType === 'CreateTime' ? 'CREATE_TIME' : 'LOG_APPEND_TIME',
    ...{ key: record.key, value: record.value, headers: record.headers },
    ...schemasOf(record),
  })
  return {
    topicId: async () => kafka.describeTopic(topic).topicId,
    async listShards() {
      const { partitions } = kafka.describeTopic(topic)
      return Array.from({ length: partitions }, (_, partition) => ({ shardId: String(partition), parentIds: [] }))
    },
    offsetAt: async (partition, position) => offsetAt(kafka, topic, Number(partition), position),
    async open(partition, position) {
      const { topicId } = kafka.describeTopic(topic)
      const at = (place: Exclude<ReadPosition, { at: 'after' }>) => offsetAt(kafka, topic, Number(partition), place)
      const wanted = position.at === 'after' ? Number(position.sequenceNumber) + 1 : at(position)
      const isThere = wanted >= at({ at: 'trim-horizon' }) && wanted <= at({ at: 'latest' })
      return JSON.stringify([topicId, Number(partition), isThere ? wanted : at({ at: whenLost })])
    },
    async read(iterator, limit) {
      const [topicId, partition, offset] = JSON.parse(iterator) as [string, number, number]
      const described = kafka.describeTopic(topic)
      if (described.topicId !== topicId)
        throw new KafkaError(
          'UNKNOWN_TOPIC_ID',
          `Topic ${topic} was deleted and made again: its id is ${described.topicId}.`,
        )
      const { records, nextOffset, endOffset } = kafka.fetch({ topicId, partition, offset, maxRecords: limit })
      return {
        records: records.map((record) => sourceRecord(record, partition, described)),
        nextIterator: JSON.stringify([topicId, partition, nextOffset]),
        millisBehindLatest: nextOffset < endOffset ? 1 : 0,
      }
    },
  }
}

function offsetAt(
  kafka: KafkaModel,
  topic: string,
  partition: number,
  position: Exclude<ReadPosition, { at: 'after' }>,
): number {
  const end = () => kafka.offsetAt(topic, partition, 'latest') as number
  if (position.at === 'latest') return end()
  if (position.at === 'trim-horizon') return kafka.offsetAt(topic, partition, 'earliest') as number
  return kafka.offsetAt(topic, partition, { timestampMs: position.timestampMs }) ?? end()
}

/** A consumer group of the model. */
export function modelGroup(kafka: KafkaModel, topic: string, group: string): ConsumerGroup {
  let joined = 0
  return {
    async join(onLost) {
      const generation = kafka.rebalanceGroup(group)
      joined = generation
      return {
        async load() {
          const committed = kafka.committedOffsets(group, topic)
          return new Map(
            Array.from(committed, ([partition, offset]) => {
              const position = { at: 'after', sequenceNumber: String(offset - 1) } as const
              return [String(partition), { position, drained: false }]
            }),
          )
        },
        async save(partition, { position }) {
          if (position.at !== 'after') return
          const offset = Number(position.sequenceNumber) + 1
          try {
            kafka.commitOffsets(group, [{ topic, partition: Number(partition), offset }], generation)
          } catch (refusal) {
            if (generation === joined && (refusal as KafkaError).code === 'ILLEGAL_GENERATION') onLost()
            throw refusal
          }
        },
      }
    },
  }
}
