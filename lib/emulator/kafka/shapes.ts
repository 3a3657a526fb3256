/** What goes into the Kafka model and what comes out. Offsets are whole numbers below 2^53; times are ms since 1970 UTC. */

export interface TopicSettings {
  /** @default 1 */
  readonly partitions?: number
  /**
   * Whose clock the records' timestamps are of: the producer's, or the broker's at the append (`message.timestamp.type`).
   * @default 'CreateTime'
   */
  readonly timestampType?: TimestampType
  /** When records are let go of, in ms; -1 for never (`retention.ms`). @default 604,800,000: seven days */
  readonly retentionMs?: number
  /** The most bytes of one batch (`max.message.bytes`). @default 1,048,588 */
  readonly maxMessageBytes?: number
  /** Whether {@link KafkaModel.compact} may keep the last record of each key alone, and records must have one. @default false */
  readonly isCompacted?: boolean
  /** For how long compaction keeps a tombstone, in ms (`delete.retention.ms`). @default 86,400,000: a day */
  readonly deleteRetentionMs?: number
}

export type TimestampType = 'CreateTime' | 'LogAppendTime'

export interface TopicDescription {
  readonly topic: string
  /** A UUID. A topic that is deleted and made again has another. */
  readonly topicId: string
  readonly partitions: number
  readonly timestampType: TimestampType
}

/** A header: a name may occur more than once, and its value may be null. */
export interface KafkaHeader {
  readonly name: string
  readonly value: Uint8Array | null
}

/** What a producer gives. The model keeps the bytes as they are: they must not change. */
export interface NewRecord {
  readonly key?: Uint8Array | null
  /** Null or left out for a tombstone; empty bytes are a value. */
  readonly value?: Uint8Array | null
  readonly headers?: readonly KafkaHeader[]
  /** Counts with CreateTime only. @default the time of the append */
  readonly timestampMs?: number
}

/** A record as the log has it. */
export interface LogRecord {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly KafkaHeader[]
}

/** An idempotent producer, and the sequence number of the first record of its batch in that partition. */
export interface BatchProducer {
  readonly producerId: number
  readonly epoch: number
  readonly sequence: number
}

export interface ProduceInput {
  readonly topic: string
  readonly partition: number
  /** One batch: it is appended as a whole or refused as a whole. */
  readonly records: readonly NewRecord[]
  /** @default none: what is sent twice is appended twice */
  readonly producer?: BatchProducer
}

export interface Produced {
  /** The offset of the batch's first record. */
  readonly offset: number
  /** The batch had been appended before, and was not again. */
  readonly isDuplicate: boolean
}

export interface FetchInput {
  /** By its id, so that a topic of the same name is never taken for it. */
  readonly topicId: string
  readonly partition: number
  /** The least offset that may be answered. */
  readonly offset: number
  readonly maxRecords: number
}

export interface Fetched {
  /** Ascending, not always without gaps: compaction and control records take offsets. */
  readonly records: readonly LogRecord[]
  /** Where the next fetch goes on: behind whatever was read, gaps included. */
  readonly nextOffset: number
  /** The least offset that the partition still has. */
  readonly logStartOffset: number
  /** The offset that the next record will have. */
  readonly endOffset: number
}

/** Where to look for an offset; a time gives the first record with that timestamp or a later one. */
export type OffsetSpec = 'earliest' | 'latest' | { readonly timestampMs: number }

export interface PartitionOffset {
  readonly topic: string
  readonly partition: number
  /** Of a committed offset: the next record to read. */
  readonly offset: number
}
