import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs'
import { HeldQueue, type SqsReadPort } from '../../../lib/aws/dead-letters/queue.ts'
import { lookAtQueue } from './look-at-queue.ts'

type QueueCommand = ReceiveMessageCommand | ChangeMessageVisibilityBatchCommand | DeleteMessageBatchCommand

/** A standard queue: a received message is hidden until it is given back, and may be delivered twice. */
class Queue implements SqsReadPort {
  readonly visible: Message[]
  readonly hidden = new Map<string, Message>()
  receives = 0
  /** Ids of messages that it does not delete. */
  refused: readonly string[] = []
  failAt = Number.POSITIVE_INFINITY

  constructor(count: number) {
    this.visible = Array.from({ length: count }, (_, index) => ({ MessageId: `m${index}`, Body: `body ${index}` }))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the port's signatures have different answers.
  async send(command: QueueCommand): Promise<any> {
    if (command instanceof ReceiveMessageCommand) {
      this.receives += 1
      if (this.receives === this.failAt) throw new Error('connection lost')
      const Messages = this.visible.splice(0, command.input.MaxNumberOfMessages)
      for (const message of Messages) {
        message.ReceiptHandle = `${message.MessageId} at ${this.receives}`
        this.hidden.set(message.ReceiptHandle, message)
      }
      return Messages.length === 0 ? {} : { Messages }
    }
    if (command instanceof DeleteMessageBatchCommand) {
      const Entries = command.input.Entries ?? []
      const Failed = Entries.filter(({ ReceiptHandle = '' }) =>
        this.refused.some((id) => ReceiptHandle.startsWith(`${id} `)),
      )
      for (const entry of Entries) if (!Failed.includes(entry)) this.hidden.delete(entry.ReceiptHandle ?? '')
      return { Failed: Failed.map(({ Id }) => ({ Id })) }
    }
    if (!(command instanceof ChangeMessageVisibilityBatchCommand)) throw new Error('nothing else may be asked')
    for (const { ReceiptHandle = '', VisibilityTimeout } of command.input.Entries ?? []) {
      expect(VisibilityTimeout).toBe(0)
      this.visible.push(this.hidden.get(ReceiptHandle) as Message)
      this.hidden.delete(ReceiptHandle)
    }
    return {}
  }
}

const queueUrl = 'https://sqs.example/q'

test('every message is seen once, and all are visible again afterwards', async () => {
  const client = new Queue(23)
  const messages = await lookAtQueue({ client, queueUrl })
  expect(new Set(messages.map(({ body }) => body)).size).toBe(23)
  expect(messages).toHaveLength(23)
  expect([client.visible.length, client.hidden.size]).toEqual([23, 0])
})

test('a look that fails gives back what it had', async () => {
  const client = new Queue(23)
  client.failAt = 3
  await expect(lookAtQueue({ client, queueUrl })).rejects.toThrow('connection lost')
  expect([client.visible.length, client.hidden.size]).toEqual([23, 0])
})

test('a look ends at its limit', async () => {
  const client = new Queue(50)
  expect((await lookAtQueue({ client, queueUrl, limit: 20 })).length).toBe(20)
  expect(client.hidden.size).toBe(0)
})

test('messages that come back while the queue is read do not keep it going for ever', async () => {
  const client = new Queue(5)
  const receive = client.send.bind(client)
  client.send = async (command) => {
    const answer = await receive(command)
    // Hidden for no time at all.
    if (command instanceof ReceiveMessageCommand) client.visible.push(...(answer.Messages ?? []))
    return answer
  }
  expect(await lookAtQueue({ client, queueUrl })).toHaveLength(5)
})

test('of held messages, those that are deleted are gone and the others are visible again', async () => {
  const client = new Queue(23)
  client.refused = ['m3']
  const queue = new HeldQueue({ client, queueUrl })
  const messages = await queue.receive()
  const left = await queue.delete(messages.slice(0, 12).map(({ messageId }) => messageId))
  expect([left, client.visible.length, client.hidden.size]).toEqual([1, 0, 12])
  await queue.release()
  const expected = ['m3', ...messages.slice(12).map(({ messageId }) => messageId)]
  expect(client.visible.map(({ MessageId }) => MessageId)).toEqual(expected)
})

test('held messages that SQS shows again hide no new one, and are deleted by their last handle', async () => {
  const client = new Queue(23)
  const queue = new HeldQueue({ client, queueUrl })
  await queue.receive()
  client.visible.push(...client.hidden.values())
  client.hidden.clear()
  client.visible.push({ MessageId: 'new', Body: 'new body' })
  expect(await queue.receive()).toEqual([{ messageId: 'new', body: 'new body' }])
  expect(await queue.delete(['m0', 'm22', 'new'])).toBe(0)
  expect([client.visible.length, client.hidden.size]).toEqual([0, 21])
})
