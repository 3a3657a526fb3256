import { ChangeMessageVisibilityBatchCommand, type Message, ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import { lookAtQueue, type SqsReadPort } from '../../lib/aws/dead-letter-queue.ts'

/** A standard queue: a received message is hidden until it is given back, and may be delivered twice. */
class Queue implements SqsReadPort {
  readonly visible: Message[]
  readonly hidden = new Map<string, Message>()
  receives = 0
  failAt = Number.POSITIVE_INFINITY

  constructor(count: number) {
    this.visible = Array.from({ length: count }, (_, index) => ({ MessageId: `m${index}`, Body: `body ${index}` }))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the port's two signatures have different answers.
  async send(command: ReceiveMessageCommand | ChangeMessageVisibilityBatchCommand): Promise<any> {
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
