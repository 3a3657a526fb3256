/**
 * From the event of an MSK or self-managed Kafka event source mapping to source records.
 *
 * 1. Records are grouped by topic-partition and keep the order of the event; one event may hold several partitions.
 * 2. Offsets become decimal text. They are comparable, and name a record, within their partition only.
 * 3. A value that is null or left out is a tombstone; an empty one is an empty payload, never a delete.
 * 4. A record that cannot be read but has an offset is one unreadable record; its neighbours go on.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-msk.html
 */
import { MillraceError } from '../../core/errors.ts'
import { type RecordFields, type RecordHeader, SourceRecord } from '../../core/record.ts'
import { EventError } from './event-error.ts'

/** One record of the event, as far as it is read. */
export interface KafkaEventRecord {
  readonly offset: number
  /** Milliseconds since 1970 UTC. */
  readonly timestamp: number
  /** Base64; null or absent where the record has no key. */
  readonly key?: string | null
  /** Base64; null or absent for a tombstone. */
  readonly value?: string | null
  /** Objects of one name each; the bytes may be signed, as Java's are. */
  readonly headers?: readonly Readonly<Record<string, readonly number[] | null>>[] | null
}

/** What Lambda invokes a function with for Kafka. Self-managed clusters have no ARN. */
export interface KafkaEvent {
  readonly eventSource: 'aws:kafka' | 'SelfManagedKafka'
  readonly eventSourceArn?: string
  readonly bootstrapServers?: string
  /** By `<topic>-<partition>`. */
  readonly records: Readonly<Record<string, readonly KafkaEventRecord[]>>
}

/** The records of one topic-partition. */
export interface KafkaBatch {
  /** `<topic>-<partition>`, as the answer to Lambda and the records name it. */
  readonly partition: string
  /** The partition's number in decimal digits: its name in progress, in frames and in the lineage of the topic. */
  readonly number: string
  readonly topic: string
  readonly records: readonly SourceRecord[]
}

const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function unreadable(what: string): never {
  throw new MillraceError('kafka-record-malformed', `the record that Lambda delivered ${what}`)
}

function fromBase64(text: unknown, what: string): Buffer {
  if (typeof text !== 'string' || !base64Text.test(text)) unreadable(`has a ${what} that is not base64 text`)
  return Buffer.from(text, 'base64')
}

const isByte = (byte: unknown): boolean => Number.isInteger(byte) && Number(byte) >= -128 && Number(byte) <= 255

/** Kafka has headers without a value; they read as empty. */
function headerValue(name: string, bytes: unknown): Uint8Array {
  if (bytes === null) return new Uint8Array()
  if (Array.isArray(bytes) && bytes.every(isByte)) return Uint8Array.from(bytes)
  return unreadable(`has a header "${name}" that is not bytes`)
}

function headersOf(headers: unknown): RecordHeader[] {
  if (headers === undefined || headers === null) return []
  if (!Array.isArray(headers)) return unreadable('has headers that are not a list')
  return headers.flatMap((header: unknown) =>
    Object.entries(header ?? {}).map(([name, bytes]) => ({ name, value: headerValue(name, bytes) })),
  )
}

function arrivalTimeOf(timestamp: unknown): number {
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp)) {
    return unreadable(`has the timestamp ${JSON.stringify(timestamp)}, not a whole number of milliseconds`)
  }
  return timestamp
}

/** What names the record. Without it nothing can be said of the record, neither to Lambda nor in a dead letter. */
function offsetOf(row: KafkaEventRecord | null, partition: string, index: number): string {
  const offset = row?.offset
  if (Number.isSafeInteger(offset) && Number(offset) >= 0) return String(offset)
  throw new EventError(
    'malformed-event',
    `record ${index} of ${partition} has the offset ${JSON.stringify(offset)}, not a whole number: it did not come from Lambda`,
  )
}

/** What can be kept of a record that cannot be read: the bytes where they are base64, else the text that came instead. */
function originalBytes(value: unknown): Buffer | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') return Buffer.from(JSON.stringify(value))
  return Buffer.from(value, base64Text.test(value) ? 'base64' : 'utf8')
}

function readRecord(
  row: KafkaEventRecord,
  where: Pick<RecordFields, 'source' | 'partition' | 'position'>,
): SourceRecord {
  try {
    const key = row.key ?? undefined
    const value = row.value ?? null
    return new SourceRecord({
      ...where,
      arrivalTimeMs: arrivalTimeOf(row.timestamp),
      key: key === undefined ? undefined : fromBase64(key, 'key'),
      payload: value === null ? null : fromBase64(value, 'value'),
      headers: headersOf(row.headers),
    })
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return new SourceRecord({
      ...where,
      arrivalTimeMs: Number.isSafeInteger(row.timestamp) ? row.timestamp : 0,
      key: originalBytes(row.key) ?? undefined,
      payload: originalBytes(row.value),
      unreadable: { code: error.code, message: error.message },
    })
  }
}

/** Topics may contain "-": the partition is what follows the last one. */
function partsOf(partition: string): Pick<KafkaBatch, 'topic' | 'number'> {
  const [, topic, number] = /^(.+)-(\d+)$/.exec(partition) ?? []
  if (topic !== undefined && number !== undefined) return { topic, number }
  throw new EventError(
    'malformed-event',
    `the Kafka event holds records of ${JSON.stringify(partition)}, not of a "<topic>-<partition>": it did not come from Lambda`,
  )
}

/**
 * Reads the event of an MSK or self-managed Kafka event source mapping. `sourceOf` says which declared source a topic is.
 *
 * A record with a key or value that is not base64 text, headers that are not bytes or no timestamp gets `unreadable`
 * (code `kafka-record-malformed`) and its original bytes.
 *
 * Throws an {@link EventError} (code `malformed-event`) for an event without records by topic-partition and for a
 * record without an offset, as nothing could name it.
 *
 * @example
 * for (const { partition, records } of kafkaRecords(event, () => 'orders')) console.log(partition, records.length)
 */
export function kafkaRecords(event: KafkaEvent, sourceOf: (topic: string) => string): KafkaBatch[] {
  if (typeof event.records !== 'object' || event.records === null) {
    throw new EventError('malformed-event', 'the Kafka event has no `records`: it did not come from Lambda')
  }
  return Object.entries(event.records).map(([partition, rows]) => {
    const { topic, number } = partsOf(partition)
    const source = sourceOf(topic)
    if (!Array.isArray(rows)) throw new EventError('malformed-event', `the records of ${partition} are not a list`)
    const records = (rows as readonly KafkaEventRecord[]).map((row, index) =>
      readRecord(row, { source, partition, position: offsetOf(row, partition, index) }),
    )
    return { partition, number, topic, records }
  })
}
