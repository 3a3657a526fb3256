/**
 * Kafka as the service of a run: topics with the broker's time, whose partitions are only ever added, and those of the source alone.
 * Here and there a transaction has ended, and taken an offset.
 */
import { partitionOf } from '../../core/kafka-partitioner.ts'
import type { KafkaSourceRecord, ReadPosition, ShardRead } from '../../emulator/event-source-mapping/index.ts'
import { KafkaModel } from '../../emulator/kafka/index.ts'
import type { Random } from './random.ts'
import type { Change, ListedShard, NewEntry, StreamService } from './stream-service.ts'

export interface KafkaServiceOptions {
  readonly clock: { nowMs(): number }
  readonly random: Random
  readonly count: (name: string) => void
}

/** More than so many partitions a source does not get. */
const mostPartitions = 5
/** Of records, behind how many a transaction ends. */
const controlRecords = 0.1

export class KafkaService implements StreamService {
  readonly #model: KafkaModel
  readonly #random: Random
  readonly #count: (name: string) => void

  constructor({ clock, random, count }: KafkaServiceOptions) {
    this.#model = new KafkaModel({ clock })
    this.#random = random
    this.#count = count
  }

  create(name: string, partitions: number): void {
    this.#model.createTopic(name, { partitions, timestampType: 'LogAppendTime', retentionMs: -1 })
  }

  list(name: string): readonly ListedShard[] {
    const { partitions } = this.#model.describeTopic(name)
    return Array.from({ length: partitions }, (_, remainder) => ({
      id: String(remainder),
      parents: [],
      place: { remainder, partitions },
      isClosed: false,
    }))
  }

  put(
    name: string,
    { partitionKey, data, slot }: NewEntry,
  ): { readonly shard: string; readonly sequenceNumber: string } {
    const { partitions } = this.#model.describeTopic(name)
    const key = Buffer.from(partitionKey)
    const partition = slot === undefined ? partitionOf(key, partitions) : slot.slot % partitions
    const { offset } = this.#model.produce({ topic: name, partition, records: [{ key, value: data }] })
    if (this.#random.chance(controlRecords)) {
      this.#model.appendControl(name, partition)
      this.#count('gap in the offsets')
    }
    return { shard: String(partition), sequenceNumber: String(offset) }
  }

  open(name: string, shard: string, position: ReadPosition): string {
    const offset = position.at === 'after' ? Number(position.sequenceNumber) + 1 : 0
    return JSON.stringify([this.#model.describeTopic(name).topicId, Number(shard), offset])
  }

  read(iterator: string, limit: number): ShardRead {
    const [topicId, partition, offset] = JSON.parse(iterator) as [string, number, number]
    const page = this.#model.fetch({ topicId, partition, offset, maxRecords: limit })
    const records = page.records.map(
      ({ key, value, headers, timestampMs, offset: at }): KafkaSourceRecord => ({
        sequenceNumber: String(at),
        partitionKey: Buffer.from(key ?? []).toString(),
        data: value ?? new Uint8Array(),
        arrivalMs: timestampMs,
        offset: at,
        timestampType: 'LOG_APPEND_TIME',
        ...{ partition, key, value, headers },
      }),
    )
    return {
      records,
      nextIterator: JSON.stringify([topicId, partition, page.nextOffset]),
      millisBehindLatest: page.nextOffset < page.endOffset ? 1 : 0,
    }
  }

  change(name: string, isSource: boolean): Change | undefined {
    const { partitions } = this.#model.describeTopic(name)
    if (!isSource || partitions >= mostPartitions) return undefined
    this.#model.createPartitions(name, partitions + 1)
    return { what: `partition ${partitions} is added to ${name}`, kind: 'partition added to the source' }
  }

  identity(name: string): string {
    return this.#model.describeTopic(name).topicId
  }
}
