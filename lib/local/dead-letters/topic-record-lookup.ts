import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import { kafkaFailureOf } from '../../aws/kafka/kafka-failure.ts'
import type { KafkaReader } from '../../aws/kafka/kafka-port.ts'
import { placeInTopic, type SourceBytes } from './record.ts'

const answerMs = 10_000

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

/**
 * Reads one record of a topic by the coordinates of its dead letter; undefined where the topic no longer holds it. Rejects where another
 * record is there, as offsets of a topic that was made again start over.
 *
 * @example
 * const found = await lookUpTopicRecord(openReader(connection), entry)
 */
export async function lookUpTopicRecord(
  reader: KafkaReader,
  { partition, position, arrivalTimeMs }: Pick<DeadLetterEntry, 'partition' | 'position' | 'arrivalTimeMs'>,
): Promise<SourceBytes | undefined> {
  const { topic, number } = placeInTopic(partition)
  const offset = BigInt(position)
  try {
    const { records } = await reader.fetch(topic, number, offset, AbortSignal.timeout(answerMs), 0)
    const found = records.find((record) => record.offset === offset)
    if (found === undefined) return undefined
    if (found.timestampMs !== arrivalTimeMs) {
      throw new Error(`offset ${position} of ${partition} holds another record: the topic was made again`)
    }
    const { key, value, headers } = found
    return {
      record: {
        key: key === undefined ? null : base64(key),
        payload: value === null ? null : base64(value),
        headers: headers.map((header) => ({ name: header.name, value: base64(header.value) })),
      },
    }
  } catch (error) {
    const { names } = kafkaFailureOf(error)
    if (names.has('OFFSET_OUT_OF_RANGE') || names.has('UNKNOWN_TOPIC_OR_PARTITION')) return undefined
    throw error
  }
}
