/**
 * Kafka as a state machine: the topics and consumer groups of one cluster, in memory.
 *
 * 1. Time comes from the clock alone and nothing is random: the same calls at the same times give the same answers.
 * 2. A call that throws has changed nothing.
 * 3. A batch of records is appended as a whole or not at all, and what an idempotent producer sends again is not appended again.
 *
 * It is the log, not the protocol: there are no brokers, leaders or connections, so nothing is ever unavailable here; who wants
 * that puts faults before and after the calls. Records are let go of one by one, where Kafka takes whole segments, some time later.
 */
import type { Clock } from '../../core/clock.ts'
import { stableUuid } from '../stable-uuid.ts'
import { KafkaError } from './errors.ts'
import { ConsumerGroups } from './groups.ts'
import { PartitionLog } from './partition-log.ts'
import type {
  Fetched,
  FetchInput,
  LogRecord,
  NewRecord,
  OffsetSpec,
  PartitionOffset,
  Produced,
  ProduceInput,
  TopicDescription,
  TopicSettings,
} from './shapes.ts'

export interface KafkaModelOptions {
  readonly clock: Pick<Clock, 'nowMs'>
}

const settingsDefaults: Required<TopicSettings> = {
  partitions: 1,
  timestampType: 'CreateTime',
  retentionMs: 604_800_000,
  maxMessageBytes: 1_048_588,
  isCompacted: false,
  deleteRetentionMs: 86_400_000,
}

interface Topic {
  readonly name: string
  readonly id: string
  readonly settings: Required<TopicSettings>
  readonly partitions: PartitionLog[]
}

/** The head of a batch, and about what each record of it takes beside its own bytes. */
const batchBytes = 61
const recordBytes = 10

/**
 * One cluster. Every refusal is a {@link KafkaError}, named as in Kafka's protocol.
 *
 * @example
 * const kafka = new KafkaModel({ clock })
 * const { topicId } = kafka.createTopic('orders', { partitions: 4 })
 * kafka.produce({ topic: 'orders', partition: 0, records: [{ key: Buffer.from('o-1'), value: Buffer.from('{}') }] })
 * const { records } = kafka.fetch({ topicId, partition: 0, offset: 0, maxRecords: 100 })
 */
export class KafkaModel {
  readonly #clock: KafkaModelOptions['clock']
  readonly #topics = new Map<string, Topic>()
  readonly #groups = new ConsumerGroups()
  #topicsMade = 0
  #producers = 0

  constructor({ clock }: KafkaModelOptions) {
    this.#clock = clock
  }

  createTopic(name: string, settings: TopicSettings = {}): TopicDescription {
    if (this.#topics.has(name)) throw new KafkaError('TOPIC_ALREADY_EXISTS', `Topic ${name} exists already.`)
    const all = { ...settingsDefaults, ...settings }
    if (!Number.isInteger(all.partitions) || all.partitions < 1)
      throw new KafkaError('INVALID_PARTITIONS', `Topic ${name} cannot have ${all.partitions} partitions.`)
    this.#topicsMade += 1
    const id = stableUuid('topic', name, String(this.#topicsMade))
    const partitions = Array.from({ length: all.partitions }, () => new PartitionLog())
    this.#topics.set(name, { name, id, settings: all, partitions })
    return this.describeTopic(name)
  }

  /** Deletes the topic with its records and with what groups had committed of it. */
  deleteTopic(name: string): void {
    this.#topic(name)
    this.#topics.delete(name)
    this.#groups.forgetTopic(name)
  }

  /** Adds empty partitions up to `total`. What is there stays where it is, whatever its key. */
  createPartitions(name: string, total: number): void {
    const { partitions } = this.#topic(name)
    if (!Number.isInteger(total) || total <= partitions.length) {
      throw new KafkaError(
        'INVALID_PARTITIONS',
        `Topic ${name} has ${partitions.length} partitions already, and ${total} were asked for: they can only become more.`,
      )
    }
    while (partitions.length < total) partitions.push(new PartitionLog())
  }

  describeTopic(name: string): TopicDescription {
    const { id, partitions, settings } = this.#topic(name)
    return { topic: name, topicId: id, partitions: partitions.length, timestampType: settings.timestampType }
  }

  /** A producer id that nobody has; its epoch is 0. */
  initProducer(): number {
    this.#producers += 1
    return this.#producers
  }

  produce({ topic, partition, records, producer }: ProduceInput): Produced {
    const { settings } = this.#topic(topic)
    const log = this.#log(topic, partition)
    const batch = this.#checked(topic, records)
    const known = producer && log.producers.offsetOf(producer, records.length)
    if (known !== undefined) return { offset: known, isDuplicate: true }
    const nowMs = this.#nowMs()
    const isStamped = settings.timestampType === 'LogAppendTime'
    const stamped = batch.map(
      ({ key = null, value = null, headers = [], timestampMs = nowMs }): Omit<LogRecord, 'offset'> => ({
        timestampMs: isStamped ? nowMs : timestampMs,
        key,
        value,
        headers,
      }),
    )
    const offset = log.append(stamped)
    if (producer) log.producers.appended(producer, records.length, offset)
    return { offset, isDuplicate: false }
  }

  /** Ends a transaction in a partition: that takes an offset, at which nobody ever reads a record. */
  appendControl(topic: string, partition: number): void {
    this.#log(topic, partition).appendControl()
  }

  fetch({ topicId, partition, offset, maxRecords }: FetchInput): Fetched {
    const topic = [...this.#topics.values()].find(({ id }) => id === topicId)
    if (topic === undefined) throw new KafkaError('UNKNOWN_TOPIC_ID', `There is no topic with the id ${topicId}.`)
    const log = this.#log(topic.name, partition)
    const { records, nextOffset } = log.read(offset, maxRecords)
    return { records, nextOffset, logStartOffset: log.startOffset, endOffset: log.endOffset }
  }

  /** An offset of a partition; undefined where no record has the timestamp or a later one. */
  offsetAt(topic: string, partition: number, spec: OffsetSpec): number | undefined {
    return this.#log(topic, partition).offsetAt(spec)
  }

  /** Deletes what lies before an offset, as DeleteRecords does. */
  deleteRecords(topic: string, partition: number, before: number): void {
    this.#log(topic, partition).trimBefore(before)
  }

  /** One round of the log cleaner. Throws where the topic is not compacted. */
  compact(name: string): void {
    const { settings, partitions } = this.#topic(name)
    if (!settings.isCompacted) throw new KafkaError('INVALID_RECORD', `Topic ${name} is not compacted.`)
    for (const log of partitions) log.compact(this.#nowMs() - settings.deleteRetentionMs)
  }

  /** Begins a new generation of a consumer group: what members of the one before commit is refused from now on. */
  rebalanceGroup(group: string): number {
    return this.#groups.rebalance(group)
  }

  /** Commits what a group reads next. Without a generation it is set by hand. */
  commitOffsets(group: string, offsets: readonly PartitionOffset[], generation?: number): void {
    for (const { topic, partition } of offsets) this.#log(topic, partition)
    this.#groups.commit(group, offsets, generation)
  }

  /** By partition, what a group reads next of a topic; partitions without a committed offset are left out. */
  committedOffsets(group: string, topic: string): ReadonlyMap<number, number> {
    return this.#groups.committed(group, topic)
  }

  #checked(topic: string, records: readonly NewRecord[]): readonly NewRecord[] {
    const { settings } = this.#topic(topic)
    if (records.length === 0) throw new KafkaError('INVALID_RECORD', `A batch for topic ${topic} holds no record.`)
    if (settings.isCompacted && records.some(({ key }) => key === undefined || key === null))
      throw new KafkaError('INVALID_RECORD', `Topic ${topic} is compacted: a record of it has a key.`)
    const bytes = records.reduce((sum, record) => sum + bytesOf(record), batchBytes)
    if (bytes <= settings.maxMessageBytes) return records
    throw new KafkaError(
      'MESSAGE_TOO_LARGE',
      `A batch of about ${bytes} bytes is above the limit of topic ${topic}, ${settings.maxMessageBytes}.`,
    )
  }

  #nowMs(): number {
    return Math.floor(this.#clock.nowMs())
  }

  #topic(name: string): Topic {
    const topic = this.#topics.get(name)
    if (topic === undefined) throw new KafkaError('UNKNOWN_TOPIC_OR_PARTITION', `There is no topic ${name}.`)
    return topic
  }

  /** A partition's log, without what its retention has taken by now. */
  #log(name: string, partition: number): PartitionLog {
    const { partitions, settings } = this.#topic(name)
    const log = partitions[partition]
    if (log === undefined) {
      throw new KafkaError(
        'UNKNOWN_TOPIC_OR_PARTITION',
        `Topic ${name} has no partition ${partition}: it has ${partitions.length}.`,
      )
    }
    if (settings.retentionMs !== -1) log.expireBefore(this.#nowMs() - settings.retentionMs)
    return log
  }
}

function bytesOf({ key, value, headers = [] }: NewRecord): number {
  const headerBytes = headers.map(({ name, value: bytes }) => Buffer.byteLength(name) + (bytes?.byteLength ?? 0) + 2)
  return headerBytes.reduce(
    (sum, bytes) => sum + bytes,
    recordBytes + (key?.byteLength ?? 0) + (value?.byteLength ?? 0),
  )
}
