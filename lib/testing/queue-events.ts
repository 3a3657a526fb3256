/** Builders of the events that Lambda sends for SQS queues and for the streams of tables. */
import type { DynamoDBRecord, DynamoDBStreamEvent, SQSEvent, SQSRecord } from 'aws-lambda'
import { changeRecord, type PartialTableChange } from '../core/table-change.ts'
import type { SourceHandle } from '../topology/handles.ts'
import { account, defaultStream, payloadBytes, region } from './events.ts'

interface Whose {
  /** Whose records they are. @default the topology's only source */
  readonly source?: SourceHandle<never> | { readonly name: string }
  /** Index of the first record, so that a later event goes on with the numbers of an earlier one. @default 0 */
  readonly firstIndex?: number
}

export interface SqsEventOptions extends Whose {
  /** Makes it the event of a FIFO queue: the group of each message. @default a standard queue */
  readonly group?: (index: number) => string
  /** When the messages were sent, in ms since 1970 UTC. @default 2026-01-01T00:00:00Z, each a millisecond after the one before */
  readonly sentAtMs?: (index: number) => number
  /** Text attributes of each message. @default none */
  readonly attributes?: Readonly<Record<string, string>>
}

/** The id of the message at `index` in an event of {@link sqsEvent}, from 0. */
export function messageId(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
}

/**
 * The event that Lambda sends for messages of an SQS queue. Values become JSON; strings are sent as they are.
 *
 * @example
 * const answer = await handler(sqsEvent([order, '{"cut":']), lambdaContext())
 * expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: messageId(1) }] })
 */
export function sqsEvent(payloads: readonly unknown[], options: SqsEventOptions = {}): SQSEvent {
  const { source, group, firstIndex = 0, sentAtMs = (index) => Date.UTC(2026, 0, 1) + index, attributes = {} } = options
  const queue = `${source?.name ?? defaultStream}${group ? '.fifo' : ''}`
  const Records = payloads.map((payload, i): SQSRecord => {
    const index = i + firstIndex
    const sent = String(sentAtMs(index))
    return {
      messageId: messageId(index),
      receiptHandle: `receipt-${index}`,
      body: payloadBytes(payload).toString(),
      attributes: {
        ApproximateReceiveCount: '1',
        SentTimestamp: sent,
        SenderId: account,
        ApproximateFirstReceiveTimestamp: sent,
        ...(group
          ? { MessageGroupId: group(index), SequenceNumber: String(18_849_496_460_467_696_128n + BigInt(index)) }
          : {}),
      },
      messageAttributes: Object.fromEntries(
        Object.entries(attributes).map(([name, stringValue]) => [name, { dataType: 'String', stringValue }]),
      ),
      md5OfBody: '',
      eventSource: 'aws:sqs',
      eventSourceARN: `arn:aws:sqs:${region}:${account}:${queue}`,
      awsRegion: region,
    }
  })
  return { Records }
}

/** The sequence number of the change at `index` in an event of {@link dynamoDbStreamEvent}, from 0. */
export function changeNumber(index: number): string {
  return String(100_000_000_000_000_000_001n + BigInt(index))
}

/**
 * The event that Lambda sends for changes of a table, from its stream.
 *
 * @example
 * await handler(dynamoDbStreamEvent([{ type: 'insert', key: { id: 'o-1' }, after: { id: 'o-1' }, changedAtMs: 0 }]), lambdaContext())
 */
export function dynamoDbStreamEvent(
  changes: readonly PartialTableChange<unknown, unknown>[],
  { source, firstIndex = 0 }: Whose = {},
): DynamoDBStreamEvent {
  const table = source?.name ?? defaultStream
  const Records = changes.map((change, i): DynamoDBRecord => {
    const { dynamodb, ...rest } = changeRecord(change)
    const number = changeNumber(i + firstIndex)
    const fields = { ...dynamodb, SequenceNumber: number, StreamViewType: 'NEW_AND_OLD_IMAGES' }
    return {
      eventID: number,
      ...rest,
      eventVersion: '1.1',
      eventSource: 'aws:dynamodb',
      awsRegion: region,
      dynamodb: fields,
      eventSourceARN: `arn:aws:dynamodb:${region}:${account}:table/${table}/stream/2026-01-01T00:00:00.000`,
    } as DynamoDBRecord
  })
  return { Records }
}
