/**
 * The queue of dead letters on MiniStack, an SQS that others wrote. `.ci/ministack run npx jest test/aws/dead-letters/queue-service` installs
 * and starts MiniStack; without it this is skipped.
 */
import { CreateQueueCommand, DeleteQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { clientSettings } from '../../../lib/aws/clients/settings.ts'
import { HeldQueue } from '../../../lib/aws/dead-letters/queue.ts'
import { sqsDeadLetters } from '../../../lib/aws/dead-letters/sqs.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { lookAtQueue } from './look-at-queue.ts'

const url = process.env.MILLRACE_MINISTACK_URL
if (url === undefined) {
  // Said aloud, as a comparison that nobody misses is never run.
  test.skip('SKIPPED: the queue of dead letters on MiniStack, as MILLRACE_MINISTACK_URL is not set', () => {})
}
const describeOnService = url === undefined ? describe.skip : describe

describeOnService('the queue of dead letters on MiniStack', () => {
  const client = new SQSClient({
    ...clientSettings({ endpoint: url ?? '', region: 'us-east-1' }),
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  })
  afterAll(() => client.destroy())

  test('letters are held, deleted and given back, and a look takes none', async () => {
    const { QueueUrl: queueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName: 'failed' }))
    const logger = { debug() {}, info() {}, warn() {}, error() {} }
    const sink = sqsDeadLetters({ client, queueUrl, clock: systemClock, logger })
    const items = Array.from({ length: 23 }, (_, index) => ({
      id: `${index}`,
      text: `body ${index}`,
      object: undefined,
    }))
    try {
      await sink.deliver(items, { signal: new AbortController().signal })
      const bodies = async () => (await lookAtQueue({ client, queueUrl })).map(({ body }) => body).toSorted()
      expect(await bodies()).toEqual(items.map(({ text }) => text).toSorted())
      const queue = new HeldQueue({ client, queueUrl })
      const held = await queue.receive()
      expect([held.length, await bodies()]).toEqual([23, []])
      expect(await queue.receive()).toEqual([])
      const [kept, ...done] = held
      expect(await queue.delete(done.map(({ messageId }) => messageId))).toBe(0)
      await queue.release()
      expect(await bodies()).toEqual([kept?.body])
    } finally {
      await client.send(new DeleteQueueCommand({ QueueUrl: queueUrl }))
    }
  }, 60_000)
})
