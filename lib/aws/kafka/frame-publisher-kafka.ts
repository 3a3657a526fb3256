import { ConfigurationError, errorOf } from '../../core/errors.ts'
import { leastMessageBytes } from '../../plan/topic-request.ts'
import { type FramePublisher, framePublisher } from '../../runtime/frames/publisher.ts'
import { type DeliveryPorts, enginePorts } from '../ordered-delivery.ts'
import { frameKey } from '../trace.ts'
import { kafkaFailureOf, kafkaPasses } from './kafka-failure.ts'
import type { TopicAddress } from './topic-delivery.ts'
import { checkTopic, type TopicIdentity } from './topic-identity.ts'

export interface KafkaFramePublisherOptions extends DeliveryPorts, TopicAddress, TopicIdentity {
  /** How many partitions the topic was made with: a power of two, at most the stage's slots. */
  readonly partitions: number
  /** The trace of the invocation at hand, for whoever reads the frames. @default none */
  readonly trace?: () => string | undefined
}

/** What a request has for one partition must be below the topic's limit, and all its frames may be for one. */
const bytesPerRequest = 1_000_000

/**
 * Publishes frames to the topic of a keyed stage, each in the partition slot mod partitions. The key is the slot's number, with the
 * writer's trace where it is sampled, and decides nothing.
 *
 * The largest frame has 1,048,560 bytes, so the topic needs a `max.message.bytes` above Kafka's own: 1,048,704 will do. With
 * `message.timestamp.type` LogAppendTime its records carry the broker's time, as those of Kinesis do.
 *
 * Rejects with a {@link ConfigurationError} where the topic is not the one that it was made for, or takes smaller messages than frames.
 * It looks at the topic behind each request: what another of its name took is not published, and comes again with its records.
 *
 * @example
 * const publisher = kafkaFramePublisher({ producer, topic: 'orders-by-customer', partitions: 8, clock, logger })
 */
export function kafkaFramePublisher(options: KafkaFramePublisherOptions): FramePublisher {
  const { producer, topic, partitions, trace } = options
  const ports = { ...enginePorts(options), passesByItself: kafkaPasses }
  return {
    async publish(frames, signal) {
      const stream = {
        label: `topic "${topic}"`,
        maxBytesPerRequest: bytesPerRequest,
        maxRequests: 1,
        async put(put: typeof frames) {
          checkTopic(options, await producer.topic(topic, signal))
          const messages = put.map(({ slot, bytes }) => ({
            partition: slot % partitions,
            key: Buffer.from(frameKey(slot, trace?.())),
            value: bytes,
          }))
          try {
            await producer.send(topic, messages, signal)
          } catch (thrown) {
            throw kafkaFailureOf(thrown).names.has('MESSAGE_TOO_LARGE') ? tooSmall(topic) : thrown
          }
          // Ids never come again, so one look behind the send says which topic took it.
          checkTopic(options, await producer.topic(topic, signal, 'now'))
          return undefined
        },
      }
      try {
        await framePublisher(stream, ports).publish(frames, signal)
      } catch (thrown) {
        const { cause } = errorOf(thrown)
        throw cause instanceof ConfigurationError ? cause : thrown
      }
    },
  }
}

const tooSmall = (topic: string): ConfigurationError =>
  new ConfigurationError(
    `topic "${topic}" refused a frame as too large: its max.message.bytes, which a deployment had found to suffice, is less than the ${leastMessageBytes} that the largest frame takes; set it to ${leastMessageBytes}.`,
    { code: 'topic-settings' },
  )
