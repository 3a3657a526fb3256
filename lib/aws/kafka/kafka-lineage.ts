/**
 * The partitions of a Kafka topic, as a lineage. They are never split, merged or closed, so none has parents or is drained; one that is
 * added is a partition without a parent.
 *
 * 1. The cluster is asked each time for the topic's id and for what is behind a position: both decide what is taken for done.
 * 2. A partition is caught up where no record is behind the position. Offsets alone do not say so: control records and aborted
 *    transactions take some, so where the end is further on it is read what is there.
 * 3. A topic that ends before the position is another one, or lost records: nothing is said of it.
 * 4. Where reading begins at a time, what lies before it is read by nobody.
 * 5. What passes by itself is tried again until the signal aborts; everything else is a RetryableError.
 */
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, RetryableError } from '../../core/errors.ts'
import type { ListedPartition, PartitionDescription, PartitionLineage } from '../../runtime/progress/lineage.ts'
import { backoffMs } from '../ordered-delivery.ts'
import { type KafkaFailure, kafkaFailureOf } from './kafka-failure.ts'
import type { KafkaReader, KafkaTopic } from './kafka-port.ts'
import { checkTopic, type TopicIdentity } from './topic-identity.ts'

export interface KafkaLineageOptions extends TopicIdentity {
  /** Such as {@link openReader} makes. */
  readonly reader: KafkaReader
  readonly clock: Clock
  /** When the mapping's starting position is, in ms since 1970 UTC. @default the oldest record of each partition */
  readonly startingAtMs?: number | undefined
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number
}

class KafkaLineage implements PartitionLineage {
  readonly #options: KafkaLineageOptions
  #topic: KafkaTopic | undefined

  constructor(options: KafkaLineageOptions) {
    this.#options = options
  }

  async identity(signal: AbortSignal): Promise<string> {
    return (await this.#ask(signal)).id
  }

  async list(signal: AbortSignal): Promise<readonly ListedPartition[]> {
    const { partitions } = await this.#ask(signal)
    return Array.from({ length: partitions }, (_, number) => ({
      partition: String(number),
      parents: [],
      remainder: number,
      partitions,
      isClosed: false,
    }))
  }

  async describe(partition: string, signal: AbortSignal): Promise<PartitionDescription | undefined> {
    const remainder = Number(partition)
    const known = this.#topic && remainder < this.#topic.partitions ? this.#topic : await this.#ask(signal)
    return remainder < known.partitions ? { parents: [], remainder, partitions: known.partitions } : undefined
  }

  async isDrained(): Promise<boolean> {
    return false
  }

  async isCaughtUp(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs?: number | undefined,
  ): Promise<boolean> {
    const { reader, topic } = this.#options
    const number = Number(partition)
    const end = (await this.#call(() => reader.offsetOf(topic, number, 'latest', signal), signal)) ?? 0n
    let next = await this.#beginning(number, after, signal, startsAtMs)
    if (next !== undefined && next > end) {
      throw new RetryableError(
        `partition ${partition} of topic "${topic}" ends before offset ${next}, up to which it was read: it was made again, or lost records; nothing is said of it until it is known which`,
        { code: 'topic-shrunk' },
      )
    }
    while (next !== undefined && next < end) {
      const from: bigint = next
      const page = await this.#call(() => reader.fetch(topic, number, from, signal, 0), signal)
      if (page.records.length > 0) return false
      // Nothing came although something is there: a transaction that is open still.
      if (page.nextOffset === from) return false
      next = page.nextOffset
    }
    return true
  }

  /** The offset behind what is done; undefined where nothing is there to be done. */
  async #beginning(
    partition: number,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs: number | undefined,
  ): Promise<bigint | undefined> {
    const { reader, topic, startingAtMs } = this.#options
    if (after !== undefined) {
      const first = (await this.#call(() => reader.offsetOf(topic, partition, 'earliest', signal), signal)) ?? 0n
      const behind = BigInt(after) + 1n
      // What retention took can be missed by nobody.
      return behind > first ? behind : first
    }
    // What the mapping is to begin with and what counts since a reset: the later.
    const begins = [startingAtMs, startsAtMs].filter((time) => time !== undefined)
    const place = begins.length === 0 ? 'earliest' : Math.max(...begins)
    return await this.#call(() => reader.offsetOf(topic, partition, place, signal), signal)
  }

  async #ask(signal: AbortSignal): Promise<KafkaTopic> {
    const { reader, topic } = this.#options
    const found = await this.#call(() => reader.topic(topic, signal), signal)
    if (found === undefined) {
      throw new ConfigurationError(
        `there is no topic "${topic}" that the function may see: check its name, its cluster, and that the function may describe it.`,
        { code: 'unknown-topic' },
      )
    }
    checkTopic(this.#options, found)
    this.#topic = found
    return found
  }

  async #call<Answer>(ask: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    const { clock, random = Math.random, topic } = this.#options
    let last: KafkaFailure | undefined
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await ask()
      } catch (thrown) {
        if (thrown instanceof ConfigurationError) throw thrown
        last = kafkaFailureOf(thrown)
        if (!last.passes) {
          throw new RetryableError(
            `topic "${topic}" cannot be read (${last.name}: ${last.message}): check its name, and that the function may describe and read it`,
            { code: 'lineage-unusable', cause: last },
          )
        }
      }
      await clock.sleep(backoffMs(attempt, random), signal)
    }
    throw new RetryableError(
      `topic "${topic}" could not be asked for its partitions before the deadline${last ? ` (${last.message})` : ''}`,
      { code: 'lineage-deadline', cause: last },
    )
  }
}

/**
 * The lineage of a Kafka topic. With IAM the function needs `kafka-cluster:Connect`, `DescribeTopic` and `ReadData`.
 *
 * @example
 * const lineage = kafkaLineage({ reader: openReader(connection), topic: 'orders', clock: systemClock })
 */
export function kafkaLineage(options: KafkaLineageOptions): PartitionLineage {
  return new KafkaLineage(options)
}
