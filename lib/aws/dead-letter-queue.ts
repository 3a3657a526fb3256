/**
 * Looks at the dead letters of an SQS queue without taking any.
 *
 * SQS has no way to look: a message is received, hidden from others for a while, and comes back. So every message that is read here is made
 * visible again at the end, also behind a failure, and none is ever deleted. Each look counts as a receive: a queue with a redrive policy of
 * its own moves messages away after `maxReceiveCount` of them.
 */
import {
  ChangeMessageVisibilityBatchCommand,
  type Message,
  ReceiveMessageCommand,
  type ReceiveMessageCommandOutput,
} from '@aws-sdk/client-sqs'

/** What is needed of an `SQSClient`. */
export interface SqsReadPort {
  send(command: ReceiveMessageCommand): Promise<ReceiveMessageCommandOutput>
  send(command: ChangeMessageVisibilityBatchCommand): Promise<unknown>
}

export interface QueueLookOptions {
  /** An `SQSClient`, such as {@link createSQSClient} makes. */
  readonly client: SqsReadPort
  readonly queueUrl: string
  /** Messages to look at, at most. @default 10,000 */
  readonly limit?: number
}

/** A message of the queue. */
export interface QueuedMessage {
  readonly messageId: string
  readonly body: string
}

const messagesPerRequest = 10
/** Long enough to receive the whole queue before its first message comes back. */
const hiddenSeconds = 120
/** A long poll asks every server of the queue; a short one may answer nothing although there is something. */
const waitSeconds = 1

/**
 * Reads the queue until it is empty, each message once, and gives all back.
 *
 * @see https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
 * @example
 * const messages = await lookAtQueue({ client: createSQSClient(), queueUrl })
 */
export async function lookAtQueue(options: QueueLookOptions): Promise<readonly QueuedMessage[]> {
  const { client, queueUrl, limit = 10_000 } = options
  const received = new Map<string, Message>()
  try {
    while (received.size < limit) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: messagesPerRequest,
          VisibilityTimeout: hiddenSeconds,
          WaitTimeSeconds: waitSeconds,
        }),
      )
      const known = received.size
      for (const message of Messages) received.set(message.MessageId ?? '', message)
      // Nothing, or only what was here before: the first ones are visible again.
      if (received.size === known) break
    }
  } finally {
    await giveBack(options, [...received.values()])
  }
  return [...received.values()].map(({ MessageId = '', Body = '' }) => ({ messageId: MessageId, body: Body }))
}

/** Makes messages visible at once. One that cannot be is visible when its time is up. */
async function giveBack({ client, queueUrl }: QueueLookOptions, messages: readonly Message[]): Promise<void> {
  for (let from = 0; from < messages.length; from += messagesPerRequest) {
    const Entries = messages.slice(from, from + messagesPerRequest).map(({ ReceiptHandle }, index) => ({
      Id: String(index),
      ReceiptHandle,
      VisibilityTimeout: 0,
    }))
    await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: queueUrl, Entries }))
  }
}
