/**
 * The record behind a dead letter, and the event that carries it to its function again.
 *
 * Invariants:
 * 1. Source, partition, position, sub-position and arrival time are the original ones, and so is the identity of every output.
 * 2. A record of an aggregate travels alone: its neighbours are not sent.
 * 3. The event says that it is a redrive, with the record's own mark and whether it has done to keyed state what it was to do: a
 *    stage that keeps progress is past the record, and would take it for done.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import { deadLetterHandle } from '../../aws/dead-letters/reading.ts'
import type { KafkaEvent, KafkaEventRecord } from '../../aws/events/kafka-records.ts'
import { deaggregate, isAggregate } from '../../aws/events/kpl-aggregate.ts'
import type { RedriveMark } from '../../aws/handler/stream-handler.ts'
import { describeError } from '../../core/errors.ts'
import { buildKinesisEvent } from '../../emulator/event-source-mapping/index.ts'
import type { SourceBinding } from '../../plan/stage-bindings.ts'
import { type Redrive, redriveOf } from '../../runtime/dead-letter.ts'
import { queueEvent, queueOf, tableStreamEvent, tableStreamOf } from './redrive-events.ts'

/** A record as its source held it. Bytes are base64. */
export interface OriginalRecord {
  readonly kind: SourceBinding['kind']
  readonly source: string
  /** Shard id, `<topic>-<partition>`, or what `sqs-records.ts` and `dynamodb-stream-records.ts` say. */
  readonly partition: string
  /** Sequence number or offset. */
  readonly position: string
  /** Undefined for what may have to be taken apart: an aggregate that could not be. */
  readonly subPosition: number | undefined
  readonly arrivalTimeMs: number
  readonly key: string | null
  readonly payload: string | null
  readonly headers: DeadLetterEntry['headers']
  readonly redrive: Redrive
}

/** What a source still holds of a record: a Kinesis stream, or a Kafka topic. */
export type SourceBytes = { readonly partitionKey: string; readonly data: Buffer } | { readonly record: Bytes }

/** How bytes are had that the entry itself does not hold. */
export interface RecordReading {
  readonly topology: string
  readonly sources: readonly string[]
  readonly readSource: (entry: DeadLetterEntry) => Promise<SourceBytes | undefined>
  readonly readObject: (entry: DeadLetterEntry) => Promise<DeadLetterEntry>
}

const shardId = /^shardId-\d{12}$/

/** The record of an entry, or why there is none to be redriven. */
export async function originalRecord(
  entry: DeadLetterEntry,
  reading: RecordReading,
): Promise<OriginalRecord | { readonly reason: string }> {
  const reason = whyNot(entry, reading)
  if (reason !== undefined) return { reason }
  const { source, partition, position, subPosition, arrivalTimeMs } = entry
  const bytes = await bytesOf(entry, reading)
  if ('reason' in bytes) return bytes
  const kind = kindOf(partition)
  const whole = entry.reason.code === 'aggregate-corrupt' ? undefined : subPosition
  return { kind, source, partition, position, subPosition: whole, arrivalTimeMs, ...bytes, redrive: redriveOf(entry) }
}

/** Topics have no "/" in their names. */
function kindOf(partition: string): SourceBinding['kind'] {
  if (partition.startsWith('queue/')) return 'sqs'
  if (partition.startsWith('table/')) return 'dynamodb-stream'
  return shardId.test(partition) ? 'kinesis' : 'kafka'
}

/** Reasons that only an entry of the stream of a keyed stage can have. */
const frameCodes = ['not-a-frame', 'frame-corrupt', 'frame-older', 'foreign-slot']

function whyNot({ topology, source, reason, output }: DeadLetterEntry, own: RecordReading): string | undefined {
  if (topology !== own.topology) return `it is a dead letter of topology "${topology}", not of "${own.topology}"`
  if (reason.phase === 'timer') {
    return `it is a timer of the keyed stage "${source}" and no record, and timers are not redriven`
  }
  if (reason.phase === 'sink' && output?.timer !== undefined) {
    return `it is what a timer or a window of the keyed stage "${source}" put out and a sink refused: no record stands for it, and the state that it was made of has gone on, so send its value from the dead letter yourself`
  }
  if (reason.phase === 'decode' && frameCodes.includes(reason.code)) {
    return `it is an entry of the stream of the keyed stage "${source}" that could not be read as a frame, so it is not known what records it had`
  }
  if (!own.sources.includes(source)) {
    return `the function of topology "${topology}" takes no source "${source}": it takes ${own.sources.join(', ')}`
  }
  if (reason.code === 'kafka-record-malformed') {
    return 'Lambda delivered it in a form that could not be read, so its original bytes are not known: have its producer send it once more'
  }
  return undefined
}

/** What a record held. */
export type Bytes = Pick<OriginalRecord, 'key' | 'payload' | 'headers'>

async function bytesOf(entry: DeadLetterEntry, reading: RecordReading): Promise<Bytes | { readonly reason: string }> {
  const { recordIn, omitted } = entry
  if (recordIn !== undefined) {
    const where = `the dead letter ${deadLetterHandle(recordIn)}, which has its record, is not here any more, and`
    return bytesAtSource(entry, reading, where)
  }
  if (omitted) return bytesAtSource(entry, reading, 'its bytes were too large for where dead letters go, and')
  return bytesKept(entry, reading)
}

/** The bytes of an entry that left none out: its own, or those of the object that it names. */
export async function bytesKept(
  entry: DeadLetterEntry,
  { readObject }: Pick<RecordReading, 'readObject'>,
): Promise<Bytes | { readonly reason: string }> {
  if (!entry.offloaded) return kept(entry)
  const { bucket, key } = entry.offloaded
  try {
    return kept(await readObject(entry))
  } catch (error) {
    return { reason: `its bytes are in s3://${bucket}/${key} only, and ${describeError(error).message.split('\n')[0]}` }
  }
}

const kept = ({ key, payload, headers }: DeadLetterEntry): Bytes => ({ key, payload, headers })

const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes as Uint8Array).toString('base64')

/** An entry may hold no bytes, `gone` says why, but a stream or a topic may have the record still. */
async function bytesAtSource(
  entry: DeadLetterEntry,
  { readSource }: RecordReading,
  gone: string,
): Promise<Bytes | { readonly reason: string }> {
  const kind = kindOf(entry.partition)
  if (kind !== 'kinesis' && kind !== 'kafka') return { reason: `${gone} redrive does not read ${nameOf[kind]}` }
  try {
    const found = await readSource(entry)
    if (found === undefined) return { reason: `${gone} the source no longer holds the record` }
    if ('record' in found) return found.record
    const isWhole = !isAggregate(found.data) || entry.reason.code === 'aggregate-corrupt'
    const record = isWhole ? found : deaggregate(found.data)[entry.subPosition]
    if (record === undefined)
      return { reason: `${gone} the aggregate at the source has no record ${entry.subPosition}` }
    return { key: base64(record.partitionKey), payload: base64(record.data), headers: [] }
  } catch (error) {
    return { reason: `${gone} the source cannot be read: ${describeError(error).message}` }
  }
}

/** Why an event of this source cannot carry the record; undefined where it can. */
export function misfit(record: OriginalRecord, binding: SourceBinding | undefined): string | undefined {
  if (binding === undefined) return `the function takes no source "${record.source}"`
  if (binding.kind !== record.kind)
    return `it came from ${nameOf[record.kind]}, and "${binding.name}" is bound to ${nameOf[binding.kind]} now`
  const [was, is] = placesOf(record, binding)
  return was === is ? undefined : `it came from ${was}, and "${binding.name}" is bound to ${is} now`
}

const nameOf = { kinesis: 'Kinesis', kafka: 'Kafka', 'dynamodb-stream': 'a DynamoDB stream', sqs: 'SQS' } as const

/** Where the record came from, and where its source reads now; of Kinesis streams the record does not say. */
function placesOf(record: OriginalRecord, binding: SourceBinding): readonly [was: string, is: string] {
  switch (binding.kind) {
    case 'kinesis':
      return ['', '']
    case 'kafka':
      return [`topic "${placeInTopic(record.partition).topic}"`, `topic "${binding.topic}"`]
    case 'sqs':
      return [`queue "${queueOf(record)}"`, `queue "${binding.queueArn.split(':').at(-1)}"`]
    case 'dynamodb-stream':
      return [`the stream "${tableStreamOf(record)}"`, `the stream "${binding.streamArn.split('/stream/').at(-1)}"`]
  }
}

/** The parts of `<topic>-<partition>`: topics may contain "-". */
export function placeInTopic(partition: string): { readonly topic: string; readonly number: number } {
  const at = partition.lastIndexOf('-')
  return { topic: partition.slice(0, at), number: Number(partition.slice(at + 1)) }
}

/**
 * The event of one record, such as its event source mapping would send, marked as a redrive. A Kinesis record also says where it stood in its aggregate.
 *
 * @example
 * const event = redriveEvent(record, { name: 'orders', kind: 'kinesis', streamArn })
 */
export function redriveEvent(record: OriginalRecord, binding: SourceBinding): object & RedriveMark {
  return { ...sourceEvent(record, binding), millrace: { redrive: record.redrive } }
}

function sourceEvent(record: OriginalRecord, binding: SourceBinding): object {
  switch (binding.kind) {
    case 'kinesis':
      return kinesisEvent(record, binding.streamArn)
    case 'kafka':
      return kafkaEvent(record, binding.clusterArn)
    case 'sqs':
      return queueEvent(record, binding.queueArn)
    case 'dynamodb-stream':
      return tableStreamEvent(record, binding.streamArn)
  }
}

function kinesisEvent(record: OriginalRecord, streamArn: string) {
  const { partition, position, subPosition, key, payload, arrivalTimeMs } = record
  const source = {
    sequenceNumber: position,
    partitionKey: Buffer.from(key ?? '', 'base64').toString(),
    data: Buffer.from(payload ?? '', 'base64'),
    arrivalMs: arrivalTimeMs,
  }
  const { Records } = buildKinesisEvent([source], partition, { streamArn })
  return { Records: Records.map((row) => (subPosition === undefined ? row : { ...row, millrace: { subPosition } })) }
}

function kafkaEvent(record: OriginalRecord, clusterArn: string | undefined): KafkaEvent {
  const { partition, position, arrivalTimeMs, key, payload, headers } = record
  const { topic, number } = placeInTopic(partition)
  const row: KafkaEventRecord & Readonly<Record<string, unknown>> = {
    topic,
    partition: number,
    offset: Number(position),
    timestamp: arrivalTimeMs,
    timestampType: 'CREATE_TIME',
    key,
    value: payload,
    headers: headers.map(({ name, value }) => ({ [name]: [...Buffer.from(value, 'base64')] })),
  }
  const records = { [partition]: [row] }
  if (clusterArn === undefined) return { eventSource: 'SelfManagedKafka', records }
  return { eventSource: 'aws:kafka', eventSourceArn: clusterArn, records }
}
