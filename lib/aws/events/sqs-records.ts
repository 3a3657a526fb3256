/**
 * From the event of an SQS event source mapping to source records.
 *
 * 1. A message of a standard queue is a batch of its own: what becomes of it holds no other message up.
 * 2. The messages of one group of a FIFO queue are one batch, in their order: it ends at its first failure, and everything of the
 *    group behind that goes back to the queue, so that nothing overtakes it.
 * 3. The position of a message of a standard queue is made of the time at which it was sent and its id, so that it is the same
 *    whenever the message comes, and an idempotent sink keeps what was sent last. In a FIFO queue it is the sequence number.
 * 4. The partition of a message is its queue, `queue/<name>`, in a FIFO queue its group, `queue/<name>/<hash>`: group ids stay
 *    out of logs.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
 */
import { hash } from 'node:crypto'
import { type RecordHeader, SourceRecord } from '../../core/record.ts'
import type { PartitionBatch } from '../../runtime/batch.ts'
import { EventError } from './event-error.ts'

interface MessageAttribute {
  readonly dataType: string
  readonly stringValue?: string
  /** Base64. */
  readonly binaryValue?: string
}

/** One message of the event, as far as it is read. */
export interface SqsEventRecord {
  readonly eventSource: 'aws:sqs'
  readonly eventSourceARN: string
  readonly messageId: string
  readonly body: string
  readonly attributes: {
    /** Milliseconds since 1970 UTC, as text. */
    readonly SentTimestamp: string
    /** FIFO queues, and standard ones whose producers name groups for fair sharing. */
    readonly MessageGroupId?: string
    /** FIFO queues only. */
    readonly SequenceNumber?: string
  }
  readonly messageAttributes?: Readonly<Record<string, MessageAttribute>>
}

/** What Lambda invokes a function with for messages of one queue. */
export interface SqsEvent {
  readonly Records: readonly SqsEventRecord[]
}

/** Messages that stand and fall together, and how the answer to Lambda names each. */
export interface SqsBatch extends PartitionBatch {
  readonly messageIds: readonly string[]
}

function malformed(index: number, what: string): never {
  throw new EventError('malformed-event', `message ${index} of the SQS event ${what}: it did not come from Lambda`)
}

const idBits = 128n
const uuid = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/** A message id as a number of 128 bits; SQS makes UUIDs. */
function idNumber(messageId: string): bigint {
  const hex = uuid.test(messageId) ? messageId.replaceAll('-', '') : hash('sha256', messageId, 'hex').slice(0, 32)
  return BigInt(`0x${hex}`)
}

/** The position of a message of a standard queue, by which messages are in the order in which they were sent. */
function standardPosition(sentAtMs: number, messageId: string): string {
  return ((BigInt(sentAtMs) << idBits) | idNumber(messageId)).toString()
}

/** The id in a position of {@link standardPosition}. */
export function messageIdIn(position: string): string {
  const hex = BigInt.asUintN(Number(idBits), BigInt(position)).toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The partition of a FIFO queue's messages of one group. */
const groupPartition = (queue: string, group: string): string =>
  `queue/${queue}/${hash('sha256', group, 'hex').slice(0, 32)}`

function headersOf(attributes: SqsEventRecord['messageAttributes']): RecordHeader[] {
  return Object.entries(attributes ?? {}).map(([name, { stringValue, binaryValue }]) => ({
    name,
    value: binaryValue === undefined ? Buffer.from(stringValue ?? '') : Buffer.from(binaryValue, 'base64'),
  }))
}

function checkMessage(row: SqsEventRecord, index: number): void {
  if (typeof row.messageId !== 'string' || row.messageId === '') malformed(index, 'has no messageId')
  if (typeof row.body !== 'string') malformed(index, 'has no body')
  if (!/^\d{1,15}$/.test(row.attributes?.SentTimestamp)) malformed(index, 'has no SentTimestamp in milliseconds')
}

function recordOf(row: SqsEventRecord, index: number, source: string, queue: string, isFifo: boolean): SourceRecord {
  checkMessage(row, index)
  const { SentTimestamp, MessageGroupId, SequenceNumber } = row.attributes
  const sentAtMs = Number(SentTimestamp)
  const common = {
    source,
    arrivalTimeMs: sentAtMs,
    payload: Buffer.from(row.body),
    headers: headersOf(row.messageAttributes),
  }
  if (!isFifo) {
    return new SourceRecord({
      ...common,
      partition: `queue/${queue}`,
      position: standardPosition(sentAtMs, row.messageId),
    })
  }
  if (MessageGroupId === undefined || SequenceNumber === undefined || !/^\d+$/.test(SequenceNumber)) {
    malformed(index, 'comes from a FIFO queue and has no MessageGroupId or no SequenceNumber')
  }
  const partition = groupPartition(queue, MessageGroupId)
  return new SourceRecord({ ...common, key: MessageGroupId, partition, position: SequenceNumber })
}

/**
 * Reads the event of an SQS event source mapping. Message attributes become headers; the group of a FIFO queue becomes the
 * record's key. Throws an {@link EventError} (code `malformed-event`) for anything that Lambda does not send.
 *
 * @example
 * for (const { records, messageIds } of sqsRecords(event, 'orders')) console.log(messageIds[0], records.at(0)?.position)
 */
export function sqsRecords(event: SqsEvent, source: string): SqsBatch[] {
  const queue = String(event.Records[0]?.eventSourceARN).split(':').at(-1) as string
  const isFifo = queue.endsWith('.fifo')
  const batches = new Map<string, { records: SourceRecord[]; messageIds: string[] }>()
  for (const [index, row] of event.Records.entries()) {
    const record = recordOf(row, index, source, queue, isFifo)
    const name = isFifo ? record.partition : row.messageId
    const batch = batches.get(name) ?? { records: [], messageIds: [] }
    batches.set(name, batch)
    batch.records.push(record)
    batch.messageIds.push(row.messageId)
  }
  return [...batches].map(([partition, batch]) => ({ partition, ...batch }))
}
