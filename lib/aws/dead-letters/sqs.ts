import { SendMessageBatchCommand, type SendMessageBatchCommandOutput } from '@aws-sdk/client-sqs'
import { ConfigurationError, RetryableError } from '../../core/errors.ts'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import { delivered, type Sink } from '../../runtime/sink.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'
import { type FittedEntry, fitEntry } from './entry.ts'
import { type DeadLetterOffload, deliverOffloaded } from './offload.ts'

/** What is needed of an `SQSClient`. */
export interface SqsPort {
  send(command: SendMessageBatchCommand): Promise<SendMessageBatchCommandOutput>
}

export interface SqsDeadLetterOptions extends DeliveryPorts {
  /** An `SQSClient`, such as {@link createSQSClient} makes: without retries of its own. */
  readonly client: SqsPort
  /** A standard queue: dead letters need no order, and a FIFO queue would drop the repeat of one it never kept. */
  readonly queueUrl: string
  /** Takes entries above 1 MiB whole. @default none: such an entry keeps coordinates and reason, and says so */
  readonly offload?: DeadLetterOffload
}

/** @see https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html */
const messagesPerRequest = 10
/** The limit of a message, and of all messages of one request together. */
const messageLimitBytes = 1_048_576

function answers(entries: readonly FittedEntry[], { Successful, Failed }: SendMessageBatchCommandOutput): Answer[] {
  const taken = new Set(Successful?.map(({ Id }) => Id))
  const failures = new Map(Failed?.map((failure) => [failure.Id, failure]))
  return entries.map((_, index) => {
    if (taken.has(String(index))) return delivered
    const failure = failures.get(String(index))
    const what = failure ? `${failure.Code}: ${failure.Message ?? ''}` : 'no answer for the message'
    const error = new RetryableError(`SQS did not take a dead letter (${what})`, { code: 'sink-refused' })
    return failure?.SenderFault ? { status: 'retry', error } : { status: 'refused', error }
  })
}

/**
 * Dead letters as messages of an SQS queue, one JSON entry each. Throws a {@link ConfigurationError} for a FIFO queue.
 *
 * @example
 * const deadLetters = sqsDeadLetters({ client: createSQSClient(), queueUrl, clock, logger })
 */
export function sqsDeadLetters(options: SqsDeadLetterOptions): Sink<DeadLetter, FittedEntry> {
  const { client, queueUrl, offload } = options
  if (queueUrl.endsWith('.fifo')) {
    throw new ConfigurationError(`${queueUrl} is a FIFO queue: bind the dead letters to a standard one.`)
  }
  const destination: Destination<FittedEntry> = {
    label: `queue ${queueUrl}`,
    maxItemsPerRequest: messagesPerRequest,
    maxBytesPerRequest: messageLimitBytes,
    maxRequests: 4,
    sizeOf: ({ text }) => Buffer.byteLength(text),
    orderKeyOf: undefined,
    async send(entries) {
      const messages = entries.map(({ text }, index) => ({ Id: String(index), MessageBody: text }))
      return answers(entries, await client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: messages })))
    },
  }
  return {
    prepare: ({ value }) => fitEntry(value, messageLimitBytes, offload?.bucket),
    deliver: (entries, { signal }) =>
      deliverOffloaded(entries, offload, options, signal, (sent) => deliverInOrder(sent, destination, options, signal)),
  }
}
