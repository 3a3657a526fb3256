/**
 * Writes outputs to a Kafka topic.
 *
 * 1. A key goes where every other producer puts it, so the order of a key is that of its partition. An output without one is placed
 *    by its identity: a repeated one goes where it went before.
 * 2. Each record carries the identity of its output as the header `millrace-output`, so that a consumer can tell a repeat. It begins
 *    with the topology and the sink: several may write to one topic.
 * 3. Headers of the input record go on with its outputs, and the record's timestamp is the output's event time.
 * 4. Null is a tombstone.
 */
import { TerminalError } from '../../core/errors.ts'
import { outputIdentity, type RecordInfo, sharedHeaders } from '../../core/record.ts'
import type { Output, Sink } from '../../runtime/sink.ts'
import { jsonText, notSerialisable } from '../encoding/output-json.ts'
import type { DeliveryPorts } from '../ordered-delivery.ts'
import { bytesOf, deliverToTopic, type KafkaItem, type TopicAddress, topicLimitBytes } from './topic-delivery.ts'

export interface KafkaSinkOptions<T> extends DeliveryPorts, TopicAddress {
  /** Names the sink among all that write to the topic: `<topology>/<sink>`. */
  readonly origin: string
  /** A value as bytes or as text; null is a tombstone. @default JSON, and null for null */
  readonly encode?: (value: T) => Uint8Array | string | null
  /** The topic's `max.message.bytes`. @default 1,048,588, Kafka's own */
  readonly maxMessageBytes?: number
}

const identityHeader = 'millrace-output'

function bytesOfValue(encoded: Uint8Array | string | null): Uint8Array | null {
  if (typeof encoded !== 'string') return encoded
  if (!encoded.isWellFormed()) notSerialisable('the text has half a surrogate pair, which UTF-8 cannot hold')
  return Buffer.from(encoded)
}

function keyBytesOf(key: string): Uint8Array {
  if (key.isWellFormed()) return Buffer.from(key)
  throw new TerminalError("the sink's key has half a surrogate pair, which UTF-8 cannot hold", { code: 'invalid-key' })
}

/** What a broker takes for a time: whole, and from 1970 on. */
function timestampOf({ eventTimeMs, arrivalTimeMs }: RecordInfo): number {
  const timeMs = Math.trunc(eventTimeMs)
  return timeMs >= 0 && Number.isSafeInteger(timeMs) ? timeMs : Math.max(0, Math.trunc(arrivalTimeMs))
}

/**
 * A sink that writes to a Kafka topic, in requests below 1 MB, one in flight. Lost connections, missing replicas and new leaders
 * are waited out until the deadline; a missing topic or permission returns the records to their source.
 *
 * Dead letters by code: `not-serialisable`, `invalid-key`, `missing-key` (of a tombstone), `oversize`, and what a broker refuses of a
 * record: `invalid-timestamp` (its topic limits how far event time may be from the clock), `invalid-record`.
 *
 * @see https://kafka.apache.org/documentation/#topicconfigs (max.message.bytes, message.timestamp.after.max.ms)
 * @example
 * const sink = kafkaSink<Booking>({ producer: openProducer(connection), topic: 'bookings', origin: 'hotels/bookings', clock, logger })
 */
export function kafkaSink<T>(options: KafkaSinkOptions<T>): Sink<T, KafkaItem> {
  const { topic, origin, encode, maxMessageBytes = topicLimitBytes } = options
  const encodedOf = (value: T) => bytesOfValue(encode ? encode(value) : value === null ? null : jsonText(value))
  return {
    prepare({ value, key, record, index }: Output<T>) {
      const identity = `${origin}/${outputIdentity(record, index)}`
      const keyBytes = key === undefined ? undefined : keyBytesOf(key)
      const item = {
        key: keyBytes,
        value: encodedOf(value),
        headers: [
          ...sharedHeaders(record).filter(({ name }) => name !== identityHeader),
          { name: identityHeader, value: Buffer.from(identity) },
        ],
        timestampMs: timestampOf(record),
        placedBy: keyBytes ?? Buffer.from(identity),
      }
      if (item.value === null && keyBytes === undefined) {
        throw new TerminalError(
          'the output is a tombstone without a key, and so deletes nothing: give the sink a `key`',
          {
            code: 'missing-key',
          },
        )
      }
      const bytes = bytesOf(item)
      if (bytes <= maxMessageBytes) return item
      throw new TerminalError(
        `the output takes ${bytes} bytes with its key and headers: topic "${topic}" takes ${maxMessageBytes}`,
        { code: 'oversize' },
      )
    },
    deliver: (items, { signal }) => deliverToTopic(items, options, options, signal),
  }
}
