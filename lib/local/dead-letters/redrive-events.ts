/**
 * The events that carry a dead letter of an SQS queue or of a table's stream to its function again. Each makes the same position and
 * partition of the record as it had, and so the same identity of every output.
 */
import type { DynamoDbStreamEvent } from '../../aws/events/dynamodb-stream-records.ts'
import { messageIdIn, type SqsEvent, type SqsEventRecord } from '../../aws/events/sqs-records.ts'

/** What is needed of a record; bytes are base64. */
interface Original {
  readonly partition: string
  readonly position: string
  readonly arrivalTimeMs: number
  readonly key: string | null
  readonly payload: string | null
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

const textOf = (base64: string | null): string => Buffer.from(base64 ?? '', 'base64').toString()

/** The name of the queue that a record came from. */
export const queueOf = ({ partition }: Pick<Original, 'partition'>): string => partition.split('/')[1] ?? ''

/** The label of the table's stream that a record came from. */
export const tableStreamOf = queueOf

/** The message of a dead letter. A receipt is missing: nobody deletes it from a queue again. */
export function queueEvent(record: Original, queueArn: string): SqsEvent {
  const isFifo = queueArn.endsWith('.fifo')
  const row: SqsEventRecord = {
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    messageId: messageIdIn(record.position),
    body: textOf(record.payload),
    attributes: {
      SentTimestamp: String(record.arrivalTimeMs),
      ...(isFifo ? { MessageGroupId: textOf(record.key), SequenceNumber: record.position } : {}),
    },
    messageAttributes: Object.fromEntries(
      record.headers.map(({ name, value }) => [name, { dataType: 'Binary', binaryValue: value }]),
    ),
  }
  return { Records: [row] }
}

/** The change of a dead letter, whose payload is the record of the stream but for what all records have. */
export function tableStreamEvent({ payload }: Original, streamArn: string): DynamoDbStreamEvent {
  const change = JSON.parse(textOf(payload))
  return { Records: [{ ...change, eventSource: 'aws:dynamodb', eventSourceARN: streamArn }] }
}
