/**
 * What an event source mapping asks of the world. The mapping has no timers, no randomness and no I/O of its own:
 * under a virtual clock and scripted ports the same script gives the same run.
 */

/** One record of a shard, as the source holds it. */
export interface SourceRecord {
  /** A decimal integer of up to about 56 digits, comparable within its shard only. */
  readonly sequenceNumber: string
  readonly partitionKey: string
  readonly data: Uint8Array
  /** When the source received it, milliseconds since 1970. */
  readonly arrivalMs: number
}

/** Where reading begins. `after` is exclusive. */
export type ReadPosition =
  | { readonly at: 'trim-horizon' }
  | { readonly at: 'latest' }
  | { readonly at: 'timestamp'; readonly timestampMs: number }
  | { readonly at: 'after'; readonly sequenceNumber: string }

/** A shard and the shards that it came from: none at first, one after a split, two after a merge. */
export interface ShardDescription {
  readonly shardId: string
  readonly parentIds: readonly string[]
}

/** The answer to one read. */
export interface ShardRead {
  readonly records: readonly SourceRecord[]
  /** The iterator of the next read; `null` says that the shard is closed and has been read to its end. */
  readonly nextIterator: string | null
  /** How far the read is behind the tip of the shard; 0 means caught up. */
  readonly millisBehindLatest: number
}

/** Reads the shards of one stream. Any method may reject: the mapping shows the reason and tries again, for ever. */
export interface ShardReader {
  /** Every shard that the stream still holds, closed ones included. */
  listShards(): Promise<readonly ShardDescription[]>
  /** An iterator at a position of a shard. */
  open(shardId: string, position: ReadPosition): Promise<string>
  /** At most `limit` records from an iterator on. */
  read(iterator: string, limit: number): Promise<ShardRead>
}

/** Tells an invoker what it is invoking for. */
export interface InvocationInfo {
  /** Unique per attempt, in the form of a UUID. */
  readonly requestId: string
  readonly functionArn: string
  /** The shard; of Kafka the topic, as a batch may hold records of several partitions. */
  readonly shardId: string
  /** From 0; always 0 with a parallelization factor of 1. Of Kafka the poller. */
  readonly lane: number
  /** From 1: which attempt at this batch it is. */
  readonly attempt: number
}

/**
 * What became of an invocation. A function error (throw, crash, exit, time-out) counts as an attempt; `not-run` (throttle,
 * no environment, service error) does not.
 */
export type InvocationOutcome =
  | { readonly kind: 'answered'; readonly payload: unknown }
  | { readonly kind: 'function-error'; readonly reason: string }
  | { readonly kind: 'not-run'; readonly reason: string }

/** Runs the function, synchronously from the mapping's view. A rejection counts as `not-run`. */
export interface Invoker {
  /** `event` is what JSON can carry; `payload` in the outcome is the answer after JSON, `null` for none. */
  invoke(event: unknown, info: InvocationInfo): Promise<InvocationOutcome>
}

/** How far a shard is done: everything up to `position` was delivered, filtered out or reported as failed. */
export interface Checkpoint {
  readonly position: Exclude<ReadPosition, { at: 'latest' }>
  /** The shard is closed and all of it is done, so its children may be read. */
  readonly drained: boolean
}

/** Keeps the checkpoints of one mapping. */
export interface CheckpointStore {
  /** All checkpoints by shard; empty at the very first start. Rejects with a ConfigurationError when they are unreadable. */
  load(): Promise<ReadonlyMap<string, Checkpoint>>
  /** Resolves once the checkpoint would survive a crash of the process. A rejection is shown and tried again. */
  save(shardId: string, checkpoint: Checkpoint): Promise<void>
}

/** Where batches go that are given up. */
export interface FailureDestination {
  /** S3 receives the whole event, SQS and SNS only where it was. */
  readonly carriesPayload: boolean
  /** One attempt: when it rejects, the failure is counted and the stream moves on, as on AWS. */
  send(message: FailureMessage): Promise<void>
}

/** What an answered invocation means for its batch. */
export type Verdict =
  | { readonly kind: 'success'; readonly unrecognised?: string }
  | { readonly kind: 'failure'; readonly reason: string }
  /** `left` are the indexes, ascending, of what is retried; everything else is done. */
  | { readonly kind: 'partial'; readonly left: readonly number[]; readonly reason: string }

/** Why a batch was given up, as the envelope says it. */
export type FailureCondition = 'RetryAttemptsExhausted' | 'RetriesExhausted' | 'RecordAgeExceeded'

export interface FailureMessage {
  /** The SQS body, SNS message or S3 object, to be serialised as JSON. */
  readonly envelope: Readonly<Record<string, unknown>>
  /** Only for S3: `aws/lambda/<uuid>/<shardId>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<uuid>`. */
  readonly objectKey: string
  /** Only of Kafka: the key of the batch's first record, which a topic as destination places it by; null where that has none. */
  readonly key?: Uint8Array | null
}

/**
 * What differs between sources that are read by shards or partitions: Kinesis, DynamoDB Streams and Kafka. Everything else of a
 * batch is the same for them. A source whose records hold more than a shard's takes its own kind of them.
 */
export interface SourceFormat<R extends SourceRecord = SourceRecord> {
  /** The event that the function receives. */
  event(records: readonly R[], shardId: string): unknown
  /** Bytes of the event's JSON with no record in it. */
  readonly emptyEventBytes: number
  /** Bytes that the record adds to the event's JSON, with the comma before it. */
  eventBytes(record: R, shardId: string): number
  /** The key of the filter pattern that stands for the record's own content: `data` for Kinesis. */
  readonly filterKey: string
  /** JSON text of the record's content, or `undefined` where its bytes are no text. */
  filterText(record: R): string | undefined
  /** What filters see of the record beside its content. */
  filterMetadata(record: R): Readonly<Record<string, string | Readonly<Record<string, string>>>>
  /** Name and form of the envelope's batch information. */
  batchInfo(records: readonly R[], shardId: string): Readonly<Record<string, unknown>>
  /** What a list of failures means that is not empty. @default as of a shard: the lowest one and all that lies behind it */
  failuresIn?(failures: readonly unknown[], records: readonly R[]): Verdict
  /** How the envelope says that retries are spent. @default 'RetryAttemptsExhausted' */
  readonly exhausted?: FailureCondition
  /** The key under which the envelope goes to a topic. @default none */
  messageKey?(records: readonly R[]): Uint8Array | null
}
