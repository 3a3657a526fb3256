import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { Sink } from '../../runtime/sink.ts'
import { type FittedEntry, fitEntry } from '../dead-letters/entry.ts'
import { type DeadLetterOffload, deliverOffloaded } from '../dead-letters/offload.ts'
import type { DeliveryPorts } from '../ordered-delivery.ts'
import { bytesOf, deliverToTopic, type KafkaItem, type TopicAddress, topicLimitBytes } from './topic-delivery.ts'

export interface KafkaDeadLetterOptions extends DeliveryPorts, TopicAddress {
  /** Takes entries above the topic's limit whole. @default none: such an entry keeps coordinates and reason, and says so */
  readonly offload?: DeadLetterOffload
  /** The topic's `max.message.bytes`. @default 1,048,588, Kafka's own */
  readonly maxMessageBytes?: number
}

function itemOf({ id, text }: FittedEntry): KafkaItem {
  const key = Buffer.from(id)
  return { key, value: Buffer.from(text), placedBy: key }
}

/**
 * Dead letters as records of a Kafka topic, one JSON entry each under its id.
 *
 * @example
 * const deadLetters = kafkaDeadLetters({ producer: openProducer(connection), topic: 'failed', clock, logger })
 */
export function kafkaDeadLetters(options: KafkaDeadLetterOptions): Sink<DeadLetter, FittedEntry> {
  const { offload, maxMessageBytes = topicLimitBytes } = options
  return {
    prepare({ value }) {
      const room = maxMessageBytes - bytesOf({ key: Buffer.from(value.id), value: null })
      return fitEntry(value, room, offload?.bucket)
    },
    deliver: (entries, { signal }) =>
      deliverOffloaded(entries, offload, options, signal, (sent) =>
        deliverToTopic(sent.map(itemOf), options, options, signal),
      ),
  }
}
