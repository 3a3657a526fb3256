/**
 * A Kafka topic, read as the shards of a stream are: a partition is a shard that is never closed, an offset its sequence number.
 *
 * What passes by itself, such as a partition that has no leader for a moment, is tried again here; everything else rejects.
 */
import { kafkaPasses } from '../../aws/kafka/kafka-failure.ts'
import type { KafkaReader, KafkaTopic } from '../../aws/kafka/kafka-port.ts'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type {
  ReadPosition,
  ShardDescription,
  ShardRead,
  ShardReader,
} from '../../emulator/event-source-mapping/index.ts'
import { type NamedPosition, offsetAt, partitionsAsShards } from './topic-positions.ts'

export interface TopicReaderOptions {
  readonly reader: KafkaReader
  readonly topic: string
  readonly clock: Clock
}

const answerMs = 10_000
const mostTries = 5
const betweenTriesMs = 200

/**
 * Reads a topic without a consumer group.
 *
 * @example
 * const reader = new TopicReader({ reader: openReader(connection), topic: 'failed', clock: systemClock })
 */
export class TopicReader implements ShardReader {
  readonly #options: TopicReaderOptions

  constructor(options: TopicReaderOptions) {
    this.#options = options
  }

  /** The topic as it is now. Rejects with a ConfigurationError where there is none of that name. */
  async describe(): Promise<KafkaTopic> {
    const { reader, topic } = this.#options
    const found = await this.#try((signal) => reader.topic(topic, signal))
    if (found !== undefined) return found
    throw new ConfigurationError(
      `There is no topic ${topic} that may be seen from here: check its name and the access.`,
    )
  }

  async listShards(): Promise<readonly ShardDescription[]> {
    return partitionsAsShards((await this.describe()).partitions)
  }

  async open(partition: string, position: ReadPosition): Promise<string> {
    return `${partition}:${await this.#offsetOf(Number(partition), position)}`
  }

  /** As many as one answer of the broker holds; `limit` is a bound for streams only. */
  async read(iterator: string, _limit?: number): Promise<ShardRead> {
    const { reader, topic } = this.#options
    const [partition = '', offset = ''] = iterator.split(':')
    const page = await this.#try((signal) => reader.fetch(topic, Number(partition), BigInt(offset), signal, 0))
    return {
      records: page.records.map(({ offset: at, key, value, timestampMs }) => ({
        sequenceNumber: String(at),
        partitionKey: Buffer.from(key ?? []).toString(),
        data: value ?? new Uint8Array(),
        arrivalMs: timestampMs,
      })),
      nextIterator: `${partition}:${page.nextOffset}`,
      // Whether anything is behind is all that is known.
      millisBehindLatest: page.nextOffset < page.endOffset && page.nextOffset > BigInt(offset) ? 1 : 0,
    }
  }

  async #offsetOf(partition: number, position: ReadPosition): Promise<bigint> {
    const { reader, topic } = this.#options
    const offsetIn = (at: NamedPosition): Promise<bigint> =>
      offsetAt(at, (place) => this.#try((signal) => reader.offsetOf(topic, partition, place, signal)))
    if (position.at !== 'after') return await offsetIn(position)
    const [first, next] = [await offsetIn({ at: 'trim-horizon' }), BigInt(position.sequenceNumber) + 1n]
    return next > first ? next : first
  }

  async #try<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, topic } = this.#options
    for (let tries = 1; ; tries++) {
      try {
        return await call(AbortSignal.timeout(answerMs))
      } catch (thrown) {
        if (!kafkaPasses(thrown) || tries >= mostTries) {
          const { name, message } = describeError(thrown)
          throw new Error(`topic ${topic}: ${name}: ${message}`, { cause: thrown })
        }
        await clock.sleep(betweenTriesMs * tries)
      }
    }
  }
}
