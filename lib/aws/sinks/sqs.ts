/**
 * Sends outputs to an SQS queue.
 *
 * 1. Each message carries the identity of its output as the attribute `millrace-output`, so that a consumer can tell a repeat. It
 *    begins with the topology and the sink: several may write to one queue.
 * 2. In a FIFO queue the sink's key is the group, and the identity is the id by which SQS drops a repeat, within five minutes.
 * 3. Of one key at most one message is unacknowledged, so a FIFO queue gets a group in order; a standard queue promises no order, and
 *    with ordering 'none' it gets none.
 * 4. What SQS could never take of a message fails that message alone: too large, or with text that it does not carry.
 *
 * @see https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
 */
import { hash } from 'node:crypto'
import {
  type BatchResultErrorEntry,
  SendMessageBatchCommand,
  type SendMessageBatchCommandOutput,
  type SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs'
import { RetryableError, TerminalError } from '../../core/errors.ts'
import { outputIdentity } from '../../core/record.ts'
import { delivered, type Sink } from '../../runtime/sink.ts'
import { passesByItself } from '../aws-failure.ts'
import { jsonText } from '../encoding/output-json.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'

/** What is needed of an `SQSClient`. */
export interface SqsPort {
  send(command: SendMessageBatchCommand): Promise<SendMessageBatchCommandOutput>
}

export interface SqsSinkOptions extends DeliveryPorts {
  /** An `SQSClient`, such as {@link createSQSClient} makes: without retries of its own. */
  readonly client: SqsPort
  readonly queueUrl: string
  /** Names the sink among all that write to the queue: `<topology>/<sink>`. */
  readonly origin: string
  /** A FIFO queue needs a sink with a key function. */
  readonly fifo: boolean
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although a standard queue promises no order; 'none' fills
   * every request.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
  /** The queue's own limit for a message with its attributes, in bytes, 1,024 to 1,048,576. @default 1,048,576 */
  readonly maxMessageBytes?: number
}

/** One message on its way to SQS. */
export interface SqsItem {
  /** What it must not overtake another of. */
  readonly orderKey: string
  readonly bytes: number
  readonly entry: Omit<SendMessageBatchRequestEntry, 'Id'>
}

const messagesPerRequest = 10
/** The limit of a message, and of all messages of one request together. */
const requestLimitBytes = 1_048_576
const identityAttribute = 'millrace-output'
const attributeType = 'String'
/** What groups and deduplication ids may be made of. */
const plainId = /^[\w!"#$%&'()*+,\-./:;<=>?@[\\\]^`{|}~]{1,128}$/

/** JSON may hold these two, and SQS takes no message with them. JSON escapes all others that SQS refuses. */
const escaped = (json: string): string =>
  json.replace(/[\ufffe\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16)}`)

const idOf = (text: string): string => (plainId.test(text) ? text : hash('sha256', text, 'hex'))

function groupOf(key: string | undefined): string {
  if (key === undefined || key === '') {
    throw new TerminalError('the output has no key, which would be its group in the FIFO queue', {
      code: 'missing-key',
    })
  }
  return idOf(key)
}

/** What SQS says of a message that it could never take. */
const refusals: readonly { readonly told: RegExp; readonly code: string }[] = [
  { told: /must be shorter than|too long|size/i, code: 'oversize' },
  { told: /^InvalidMessageContents/, code: 'unsupported-value' },
]

function answerTo({ Code = 'Unknown', Message = '', SenderFault }: BatchResultErrorEntry): Answer {
  const told = `${Code}: ${Message}`
  if (!SenderFault || passesByItself({ name: Code })) {
    return { status: 'refused', error: Object.assign(new Error(told), { name: Code }) }
  }
  const refusal = refusals.find((candidate) => candidate.told.test(told))
  if (refusal) {
    return { status: 'rejected', error: new TerminalError(`the queue takes no such message (${told})`, refusal) }
  }
  return {
    status: 'retry',
    error: new RetryableError(`the queue did not take a message (${Code}): check its settings and its key`, {
      code: 'sink-misconfigured',
    }),
  }
}

function answers(items: readonly SqsItem[], { Successful, Failed = [] }: SendMessageBatchCommandOutput) {
  if (Successful?.length === items.length) return undefined
  const taken = new Set(Successful?.map(({ Id }) => Id))
  const failures = new Map(Failed.map((failure) => [failure.Id, failure]))
  return items.map((_, index): Answer => {
    if (taken.has(String(index))) return delivered
    const failure = failures.get(String(index))
    return failure ? answerTo(failure) : { status: 'refused', error: new Error('no answer for the message') }
  })
}

/**
 * A sink that sends each value as a JSON message. Throttles, failures of single messages and lost connections are retried until
 * the deadline; a missing queue, permission or key returns the records to their source.
 *
 * Dead letters by code: `not-serialisable`, `oversize`, `missing-key` (FIFO), `unsupported-value`.
 *
 * @example
 * const sink = sqsSink({ client: createSQSClient(), queueUrl, origin: 'shop/orders', fifo: false, clock, logger })
 */
export function sqsSink(options: SqsSinkOptions): Sink<unknown, SqsItem> {
  const { client, queueUrl, origin, fifo, ordering, maxMessageBytes = requestLimitBytes } = options
  const destination: Destination<SqsItem> = {
    label: `queue ${queueUrl}`,
    maxItemsPerRequest: messagesPerRequest,
    maxBytesPerRequest: requestLimitBytes,
    maxRequests: 4,
    sizeOf: ({ bytes }) => bytes,
    orderKeyOf: ordering === 'none' && !fifo ? undefined : ({ orderKey }) => orderKey,
    async send(items) {
      const entries = items.map(({ entry }, index) => ({ Id: String(index), ...entry }))
      return answers(items, await client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries })))
    },
  }
  return {
    prepare({ value, key, record, index }) {
      const identity = `${origin}/${outputIdentity(record, index)}`
      const body = escaped(jsonText(value))
      const bytes =
        Buffer.byteLength(body) + Buffer.byteLength(identity) + identityAttribute.length + attributeType.length
      if (bytes > maxMessageBytes) {
        throw new TerminalError(
          `the output has ${bytes} bytes as a message: ${destination.label} takes ${maxMessageBytes}`,
          {
            code: 'oversize',
          },
        )
      }
      const entry = {
        MessageBody: body,
        MessageAttributes: { [identityAttribute]: { DataType: attributeType, StringValue: identity } },
        ...(fifo ? { MessageGroupId: groupOf(key), MessageDeduplicationId: idOf(identity) } : {}),
      }
      return { orderKey: key ?? identity, bytes, entry }
    },
    deliver: (items, { signal }) => deliverInOrder(items, destination, options, signal),
  }
}
