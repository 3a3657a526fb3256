/**
 * What an event source mapping must know of Kafka: the event, the answer and the envelope. What AWS does not say is marked [I] and
 * can be set, or is what asks most of a handler.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-msk.html
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { SourceFormat, SourceRecord, Verdict } from './ports.ts'
import { shown } from './response.ts'

/** One record of a topic. `sequenceNumber` is its offset, `data` its value, and `arrivalMs` its timestamp, by which its age counts [I]. */
export interface KafkaSourceRecord extends SourceRecord {
  readonly partition: number
  readonly offset: number
  readonly timestampType: 'CREATE_TIME' | 'LOG_APPEND_TIME'
  readonly key: Uint8Array | null
  /** Null for a tombstone. */
  readonly value: Uint8Array | null
  readonly headers: readonly { readonly name: string; readonly value: Uint8Array | null }[]
  /** What a schema registry says of key and value: passed through as it is. */
  readonly keySchemaMetadata?: SchemaMetadata
  readonly valueSchemaMetadata?: SchemaMetadata
}

/** @see https://docs.aws.amazon.com/lambda/latest/dg/services-consume-kafka-events.html */
export interface SchemaMetadata {
  readonly dataFormat: string
  readonly schemaId: string
}

export interface KafkaSourceOptions {
  readonly topic: string
  /** `arn:aws:kafka:<region>:<account>:cluster/<name>/<uuid>`. @default none: a self-managed cluster */
  readonly clusterArn?: string
  /** Host and port, several with commas between. */
  readonly bootstrapServers: string
  /**
   * What comes again of a partial answer: the documentation says those items [D], and not whether what lies behind them in their
   * partition does [I]. @default 'reported'
   */
  readonly retriedItems?: 'reported' | 'and-later'
}

/** One record in the event. Without a key, or without a value, as a tombstone is, that field is left out [I]. */
export interface KafkaEventRow {
  topic: string
  partition: number
  offset: number
  timestamp: number
  timestampType: string
  key?: string
  value?: string
  /** Bytes are signed, as Java's are [I]. */
  headers: { [name: string]: number[] }[]
  keySchemaMetadata?: SchemaMetadata
  valueSchemaMetadata?: SchemaMetadata
}

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

function rowOf(record: KafkaSourceRecord, topic: string): KafkaEventRow {
  const { partition, offset, arrivalMs, timestampType, key, value, keySchemaMetadata, valueSchemaMetadata } = record
  return {
    ...{ topic, partition, offset, timestamp: arrivalMs, timestampType },
    ...(key === null ? {} : { key: base64(key) }),
    ...(value === null ? {} : { value: base64(value) }),
    headers: record.headers.map(({ name, value: bytes }) => ({ [name]: [...Int8Array.from(bytes ?? [])] })),
    ...(keySchemaMetadata && { keySchemaMetadata }),
    ...(valueSchemaMetadata && { valueSchemaMetadata }),
  }
}

/** What the format of Kafka adds to that of a source: the mapping asks for all of it. */
export type KafkaFormat = SourceFormat<KafkaSourceRecord> & { readonly topic: string }

/**
 * The format of a topic. Throws a {@link ConfigurationError} for an ARN of something else.
 *
 * @example
 * const format = kafkaFormat({ topic: 'orders', bootstrapServers: 'b-1.test:9098', clusterArn })
 */
export function kafkaFormat(options: KafkaSourceOptions): KafkaFormat {
  const { topic, clusterArn, bootstrapServers, retriedItems = 'reported' } = options
  if (clusterArn !== undefined && !/^arn:[^:]+:kafka:[^:]+:[^:]*:cluster\/.+$/.test(clusterArn)) {
    throw new ConfigurationError(
      `${clusterArn} is not the ARN of an MSK cluster: it reads arn:aws:kafka:<region>:<account>:cluster/<name>/<uuid>.`,
    )
  }
  const source =
    clusterArn === undefined
      ? { eventSource: 'SelfManagedKafka', bootstrapServers }
      : { eventSource: 'aws:kafka', eventSourceArn: clusterArn, bootstrapServers }
  const nameOf = ({ partition }: KafkaSourceRecord): string => `${topic}-${partition}`
  const event = (list: readonly KafkaSourceRecord[]) => {
    const records: { [name: string]: KafkaEventRow[] } = {}
    for (const record of list) {
      const name = nameOf(record)
      records[name] ??= []
      records[name].push(rowOf(record, topic))
    }
    return { ...source, records }
  }
  return {
    topic,
    event,
    emptyEventBytes: Buffer.byteLength(JSON.stringify({ ...source, records: {} })),
    // Each record counts as the first of its partition, whose name then stands before it: a few bytes too many, never one too few.
    eventBytes: (record) =>
      Buffer.byteLength(JSON.stringify(rowOf(record, topic))) + Buffer.byteLength(JSON.stringify(nameOf(record))) + 5,
    filterKey: 'value',
    filterText: ({ value }) => (value === null ? undefined : textOf(value)),
    filterMetadata: () => ({}),
    batchInfo: (records) => ({ KafkaBatchInfo: batchInfo(records, options, event(records)) }),
    failuresIn: (failures, records) => failuresIn(failures, records, nameOf, retriedItems),
    exhausted: 'RetriesExhausted',
    messageKey: (records) => records[0]?.key ?? null,
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** A batch may hold several partitions, and the envelope has room for one record: it is the first [I]. */
function batchInfo(
  records: readonly KafkaSourceRecord[],
  { clusterArn, bootstrapServers }: KafkaSourceOptions,
  event: unknown,
) {
  return {
    batchSize: records.length,
    ...(clusterArn === undefined ? {} : { eventSourceArn: clusterArn }),
    bootstrapServers,
    payloadSize: Buffer.byteLength(JSON.stringify(event)),
    recordInfo: { offset: records[0]?.offset ?? 0, timestamp: records[0]?.arrivalMs ?? 0 },
  }
}

/** [D] A topic-partition or an offset that is not in the event fails the whole batch. */
function failuresIn(
  failures: readonly unknown[],
  records: readonly KafkaSourceRecord[],
  nameOf: (record: KafkaSourceRecord) => string,
  retriedItems: 'reported' | 'and-later',
): Verdict {
  const placed = new Map(records.map((record) => [JSON.stringify([nameOf(record), record.offset]), record]))
  const lowest = new Map<number, number>()
  const reported = new Set<SourceRecord>()
  for (const failure of failures) {
    const identifier: unknown = Object(failure).itemIdentifier
    const { partition, offset } = Object(identifier)
    const record = placed.get(JSON.stringify([partition, offset]))
    if (record === undefined)
      return { kind: 'failure', reason: `itemIdentifier ${shown(identifier)} is not in the batch` }
    reported.add(record)
    lowest.set(record.partition, Math.min(record.offset, lowest.get(record.partition) ?? record.offset))
  }
  const comesAgain = (record: KafkaSourceRecord): boolean =>
    retriedItems === 'reported'
      ? reported.has(record)
      : record.offset >= (lowest.get(record.partition) ?? Number.POSITIVE_INFINITY)
  const left = records.flatMap((record, index) => (comesAgain(record) ? [index] : []))
  const first = records[left[0] ?? 0]
  return {
    kind: 'partial',
    left,
    reason: `the function reported offset ${first?.offset} of partition ${first?.partition} as failed; its log says why`,
  }
}
