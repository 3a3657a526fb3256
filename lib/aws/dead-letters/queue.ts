/**
 * Looks at the dead letters of an SQS queue, and holds them for a redrive.
 *
 * SQS has no way to look: a message is received, hidden from others for a while, and comes back. So every message that is read here is made
 * visible again at the end, also behind a failure. A look deletes none; a redrive deletes those that it settled. Each look counts as a receive: a queue with a redrive policy of
 * its own moves messages away after `maxReceiveCount` of them.
 */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type DeleteMessageBatchCommandOutput,
  type Message,
  ReceiveMessageCommand,
  type ReceiveMessageCommandOutput,
} from '@aws-sdk/client-sqs'

/** What is needed of an `SQSClient`. */
export interface SqsReadPort {
  send(command: ReceiveMessageCommand): Promise<ReceiveMessageCommandOutput>
  send(command: ChangeMessageVisibilityBatchCommand): Promise<unknown>
  send(command: DeleteMessageBatchCommand): Promise<DeleteMessageBatchCommandOutput>
}

export interface QueueLookOptions {
  /** An `SQSClient`, such as {@link createSQSClient} makes. */
  readonly client: SqsReadPort
  readonly queueUrl: string
  /** Messages to look at, at most, give or take one request. @default 10,000 */
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
 * The messages of a queue while this process holds them. They are hidden from others until `release`; where the process dies first, or holds
 * them for longer than two minutes, SQS shows them again by itself.
 *
 * @see https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
 */
export class HeldQueue {
  readonly #options: QueueLookOptions
  readonly #held = new Map<string, Message>()
  readonly #deleted = new Set<string>()

  constructor(options: QueueLookOptions) {
    this.#options = options
  }

  /** Receives until nothing comes but what this call has had already, and returns what was never received before. */
  async receive(): Promise<readonly QueuedMessage[]> {
    const { limit = 10_000 } = this.#options
    const received = new Set<string>()
    const found: QueuedMessage[] = []
    while (found.length < limit) {
      const messages = await this.#receiveSome()
      const known = received.size
      for (const message of messages) {
        const { MessageId = '', Body = '' } = message
        received.add(MessageId)
        if (!this.#held.has(MessageId) && !this.#deleted.has(MessageId))
          found.push({ messageId: MessageId, body: Body })
        // Of several handles of a message only the last one is sure to work.
        this.#held.set(MessageId, message)
      }
      if (received.size === known) break
    }
    return found
  }

  async #receiveSome(): Promise<readonly Message[]> {
    const { client, queueUrl } = this.#options
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: messagesPerRequest,
        VisibilityTimeout: hiddenSeconds,
        WaitTimeSeconds: waitSeconds,
      }),
    )
    return Messages
  }

  /** Deletes messages for ever, and returns how many SQS did not delete. Rejects where it cannot be reached. */
  async delete(messageIds: readonly string[]): Promise<number> {
    let left = 0
    for (const messages of this.#requests(messageIds)) {
      const { Failed = [] } = await this.#options.client.send(
        new DeleteMessageBatchCommand({ QueueUrl: this.#options.queueUrl, Entries: messages.map(entryOf) }),
      )
      const failed = new Set(Failed.map(({ Id }) => Id))
      left += failed.size
      for (const [index, { MessageId = '' }] of messages.entries()) {
        if (failed.has(String(index))) continue
        this.#held.delete(MessageId)
        this.#deleted.add(MessageId)
      }
    }
    return left
  }

  /** Makes what is still held visible at once. A message that cannot be is visible when its time is up. */
  async release(): Promise<void> {
    for (const messages of this.#requests([...this.#held.keys()])) {
      const Entries = messages.map((message, index) => ({ ...entryOf(message, index), VisibilityTimeout: 0 }))
      await this.#options.client.send(
        new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#options.queueUrl, Entries }),
      )
    }
    this.#held.clear()
  }

  /** The held ones of these messages, as many as one request takes. */
  *#requests(messageIds: readonly string[]): Generator<readonly Message[]> {
    const messages = messageIds.flatMap((id) => this.#held.get(id) ?? [])
    for (let from = 0; from < messages.length; from += messagesPerRequest) {
      yield messages.slice(from, from + messagesPerRequest)
    }
  }
}

const entryOf = ({ ReceiptHandle }: Message, index: number) => ({ Id: String(index), ReceiptHandle })
