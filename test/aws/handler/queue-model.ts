/** A queue with the mapping that reads it, as far as a handler can tell: what it answers for is deleted, the rest comes again. */
import type { SQSRecord } from 'aws-lambda'
import type { StreamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { lambdaContext, sqsEvent } from '../../../lib/testing/index.ts'

export interface QueueModelOptions {
  readonly bodies: readonly string[]
  /** Makes it a FIFO queue. */
  readonly group?: (index: number) => string
  /** How many messages a batch has at most. */
  readonly batchSize: number
  /** Which of the messages that may be received is taken next; a number from 0 below `count`. */
  readonly pick: (count: number) => number
}

export class QueueModel {
  readonly #options: QueueModelOptions
  #messages: readonly SQSRecord[]
  /** Bodies in the order in which the handler got them, batch by batch. */
  readonly batches: string[][] = []

  constructor(options: QueueModelOptions) {
    this.#options = options
    const { group } = options
    this.#messages = sqsEvent(options.bodies, group ? { group } : {}).Records
  }

  get left(): readonly string[] {
    return this.#messages.map(({ body }) => body)
  }

  /** One invocation. An answer that names a message that was not in the batch brings all of it back, as Lambda does. */
  async invoke(handler: StreamHandler): Promise<void> {
    const batch = this.#receive()
    this.batches.push(batch.map(({ body }) => body))
    const { batchItemFailures } = await handler({ Records: batch }, lambdaContext())
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
    const ids = new Set(batch.map(({ messageId }) => messageId))
    if ([...failed].some((id) => typeof id !== 'string' || !ids.has(id))) return
    this.#messages = this.#messages.filter(({ messageId }) => !ids.has(messageId) || failed.has(messageId))
  }

  /** A FIFO queue gives the messages of a group in order only. */
  #receive(): SQSRecord[] {
    const taken: SQSRecord[] = []
    while (taken.length < this.#options.batchSize) {
      const groups = new Set<string | undefined>()
      const available = this.#messages.filter((message) => {
        if (taken.includes(message)) return false
        const { MessageGroupId } = message.attributes
        const isFirst = MessageGroupId === undefined || !groups.has(MessageGroupId)
        groups.add(MessageGroupId)
        return isFirst
      })
      if (available.length === 0) break
      taken.push(available[this.#options.pick(available.length)] as SQSRecord)
    }
    return taken
  }
}
