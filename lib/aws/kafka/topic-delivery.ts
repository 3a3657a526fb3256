/**
 * Gets messages to one topic in their order.
 *
 * 1. They go in requests that no topic's limit refuses, one after the other. A broker takes what a request has for a partition as a
 *    whole or not at all, so nothing overtakes in it, and the next request waits for this one.
 * 2. What passes by itself is tried again until the signal aborts; what needs a person returns everything that was not taken.
 * 3. Where a broker refuses records for what they are, the request is halved until it is known which: that one is rejected, the
 *    others go on. Those of other partitions may come twice then.
 */

import { TerminalError } from '../../core/errors.ts'
import { partitionOf } from '../../core/kafka-partitioner.ts'
import { deliverInOrder } from '../../runtime/ordered-delivery.ts'
import { delivered, type Outcome } from '../../runtime/sink.ts'
import { type DeliveryPorts, enginePorts } from '../ordered-delivery.ts'
import type { KafkaFailure } from './kafka-failure.ts'
import { kafkaPasses } from './kafka-failure.ts'
import type { KafkaMessage, KafkaProducer } from './kafka-port.ts'

export interface TopicAddress {
  /** Such as {@link openProducer} makes. */
  readonly producer: KafkaProducer
  readonly topic: string
}

/** One message, before it is known how many partitions there are. */
export interface KafkaItem extends Omit<KafkaMessage, 'partition'> {
  /** Decides the partition, as a key of any other producer would. */
  readonly placedBy: Uint8Array
}

/** What a topic takes unless it says otherwise: all that one request has for a partition. */
export const topicLimitBytes = 1_048_588
/** The most that a lone record takes beside key, value and headers: the head of its batch, its lengths and its offsets. */
const ownBytes = 84
const ownHeaderBytes = 10
/** Below the limit of a partition, although all messages may be for one. */
const bytesPerRequest = 1_000_000
const messagesPerRequest = 5_000

/** An upper bound of what a lone record takes of a topic's limit. */
export function bytesOf({ key, value, headers = [] }: Pick<KafkaMessage, 'key' | 'value' | 'headers'>): number {
  const named = headers.reduce((sum, { name, value: header }) => {
    return sum + Buffer.byteLength(name) + header.byteLength + ownHeaderBytes
  }, 0)
  return ownBytes + (key?.byteLength ?? 0) + (value?.byteLength ?? 0) + named
}

/** Refusals of what a record is: the same record will never be taken. */
const refusals: Readonly<Record<string, string>> = {
  MESSAGE_TOO_LARGE: 'oversize',
  RECORD_LIST_TOO_LARGE: 'oversize',
  INVALID_TIMESTAMP: 'invalid-timestamp',
  INVALID_RECORD: 'invalid-record',
}

const refusalIn = (thrown: unknown): string | undefined =>
  [...((thrown as Partial<KafkaFailure>)?.names ?? [])].find((name) => refusals[name] !== undefined)

/** A run of items, by the indexes of its first and behind its last. */
interface Run {
  readonly from: number
  readonly to: number
}

function runsOf(items: readonly KafkaItem[]): readonly Run[] {
  const runs: Run[] = []
  let from = 0
  let bytes = 0
  for (const [index, item] of items.entries()) {
    const own = bytesOf(item)
    if (index > from && (bytes + own > bytesPerRequest || index - from >= messagesPerRequest)) {
      runs.push({ from, to: index })
      from = index
      bytes = 0
    }
    bytes += own
  }
  return items.length > from ? [...runs, { from, to: items.length }] : runs
}

/**
 * Delivers items to a topic by the rules above and answers for each by index.
 *
 * @example
 * const outcomes = await deliverToTopic(items, { producer, topic: 'orders' }, { clock, logger }, signal)
 */
export async function deliverToTopic(
  items: readonly KafkaItem[],
  { producer, topic }: TopicAddress,
  ports: DeliveryPorts,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  const rejected = new Map<number, Outcome>()
  const send = async ({ from, to }: Run, partitions: number): Promise<void> => {
    try {
      const messages = items
        .slice(from, to)
        .map((item) => ({ ...item, partition: partitionOf(item.placedBy, partitions) }))
      await producer.send(topic, messages, signal)
    } catch (thrown) {
      const refusal = refusalIn(thrown)
      if (refusal === undefined) throw thrown
      if (to - from === 1) {
        const error = new TerminalError(`topic "${topic}" takes no such record (${refusal})`, {
          code: refusals[refusal] as string,
          cause: thrown,
        })
        rejected.set(from, { status: 'rejected', error })
        return
      }
      const half = (from + to) >> 1
      await send({ from, to: half }, partitions)
      await send({ from: half, to }, partitions)
    }
  }
  const runs = runsOf(items)
  const outcomes = await deliverInOrder(
    runs,
    {
      label: `topic "${topic}"`,
      maxItemsPerRequest: 1,
      maxBytesPerRequest: bytesPerRequest,
      maxRequests: 1,
      sizeOf: () => 0,
      orderKeyOf: () => topic,
      async send([run]) {
        const { partitions } = await producer.topic(topic, signal)
        await send(run as Run, partitions)
        return [delivered]
      },
    },
    { ...enginePorts(ports), passesByItself: kafkaPasses },
    signal,
  )
  return runs.flatMap(({ from, to }, place) =>
    Array.from({ length: to - from }, (_, i) => rejected.get(from + i) ?? (outcomes[place] as Outcome)),
  )
}
