/** What the adapters need of a Kafka cluster. `kafka-client.ts` has it from a client; tests may have their own. */
import type { RecordHeader } from '../../core/record.ts'

/** A topic as the cluster describes it. */
export interface KafkaTopic {
  /** Given when the topic is made: another topic of the same name has another. Brokers older than Kafka 2.8 give none. */
  readonly id: string
  readonly partitions: number
}

/** One record on its way to a topic. */
export interface KafkaMessage {
  /** From 0; it must exist. */
  readonly partition: number
  readonly key: Uint8Array | undefined
  /** Null is a tombstone. */
  readonly value: Uint8Array | null
  /** In order; names may come more than once. @default none */
  readonly headers?: readonly RecordHeader[]
  /** In ms since 1970 UTC. @default now */
  readonly timestampMs?: number | undefined
}

/** One record of a topic. A topic with LogAppendTime has the broker's time as `timestampMs`. */
export interface KafkaRecord {
  readonly partition: number
  readonly offset: bigint
  readonly key: Uint8Array | undefined
  readonly value: Uint8Array | null
  readonly headers: readonly RecordHeader[]
  readonly timestampMs: number
  /** Whose clock the time is of: the producer's or the broker's. @default 'CREATE_TIME' */
  readonly timestampType?: 'CREATE_TIME' | 'LOG_APPEND_TIME'
}

/** Writes to topics. Whatever it rejects with is a `KafkaFailure`, or a `ConfigurationError` where a topic has no id. */
export interface KafkaProducer {
  /** The topic, as it is now or was at most half a minute ago. @default 'lately' */
  topic(name: string, signal: AbortSignal, asOf?: 'now' | 'lately'): Promise<KafkaTopic>
  /**
   * Resolves when every in-sync replica has all messages. One call at a time is at work, the others wait. Of a call that rejects
   * some partitions may have their messages.
   */
  send(topic: string, messages: readonly KafkaMessage[], signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** What one read of a partition found. */
export interface KafkaPage {
  /** Ascending by offset; none of an aborted or an open transaction. */
  readonly records: readonly KafkaRecord[]
  /** Where to read on: behind all that was looked at, whether it is among the records or not. */
  readonly nextOffset: bigint
  /** The offset behind the last that may be read now. */
  readonly endOffset: bigint
}

/**
 * A place in a partition: its first record, behind its last, or its first record of that time (in ms since 1970 UTC) or later. Records of
 * a transaction that is open count.
 */
export type KafkaPlace = 'earliest' | 'latest' | number

/** Reads topics, without a consumer group. Whatever it rejects with is a `KafkaFailure`, or a `ConfigurationError` where a topic has no id. */
export interface KafkaReader {
  /** The topic as it is now; undefined where there is none of that name. */
  topic(name: string, signal: AbortSignal): Promise<KafkaTopic | undefined>
  /** The offset of a place; undefined where no record is of that time or later. */
  offsetOf(topic: string, partition: number, place: KafkaPlace, signal: AbortSignal): Promise<bigint | undefined>
  /** The records from `offset` on, as many as one answer holds, or none after `waitMs`. */
  fetch(topic: string, partition: number, offset: bigint, signal: AbortSignal, waitMs?: number): Promise<KafkaPage>
  close(): Promise<void>
}

/** A consumer group that reads one topic by a single member. Whatever it rejects with is a `KafkaFailure`. */
export interface KafkaGroup {
  /**
   * Joins, which begins a generation of the group and ends the one before. `onLost` is told, once a commit is refused for it, that the
   * group has begun another: as when somebody else joined, or the broker heard nothing of the member for too long.
   */
  join(onLost: () => void): Promise<KafkaMembership>
  /** Leaves the group. */
  close(): Promise<void>
}

/** A member in one generation of its group. */
export interface KafkaMembership {
  /** By partition, the offset that the group reads next; partitions without one are left out. */
  committed(): Promise<ReadonlyMap<number, bigint>>
  /** Commits what the group reads next of a partition. Refused by the broker once another generation has begun. */
  commit(partition: number, offset: bigint): Promise<void>
}

/** Makes and changes topics. Whatever it rejects with is a `KafkaFailure`, or a `ConfigurationError` where a topic has no id. */
export interface KafkaAdmin {
  /** Makes a topic and waits until each of its partitions has a leader: until then writing to it fails. One that is there is left. */
  createTopic(name: string, settings: NewTopic, signal: AbortSignal): Promise<KafkaTopic>
  /** The topic as it is now; undefined where there is none of that name. */
  topic(name: string, signal: AbortSignal): Promise<KafkaTopic | undefined>
  /** The settings that hold for a topic, those that it has from the cluster among them. */
  settingsOf(name: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>>
  /** Sets these settings of a topic, and leaves its others as they are. */
  changeSettings(name: string, settings: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>
  /** Raises the number of partitions, and waits for their leaders. */
  addPartitions(name: string, partitions: number, signal: AbortSignal): Promise<KafkaTopic>
  /** Deletes a topic with all that it holds; one that is not there is as good. */
  deleteTopic(name: string, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface NewTopic {
  readonly partitions: number
  /** @default the cluster's own number */
  readonly replicas?: number
  /** Such as `{ 'max.message.bytes': '2097152' }`. @default the cluster's own */
  readonly configs?: Readonly<Record<string, string>>
}
