import fc from 'fast-check'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../../lib/core/errors.ts'
import { text } from '../../../lib/core/format.ts'
import { memoryPorts } from '../../../lib/testing/index.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { QueueModel } from './queue-model.ts'

/** Each message fails so often as its body says before it is done: `7:2` fails twice; `7:dead` always, for good. */
function failing() {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  const failures = new Map<string, number>()
  app
    .source('lines', text())
    .map((body) => {
      const [, times] = body.split(':')
      if (times === 'dead') throw new Error('never')
      const before = failures.get(body) ?? 0
      if (before < Number(times)) {
        failures.set(body, before + 1)
        throw new RetryableError('later')
      }
      return body
    })
    .to(out)
  // Steps run once: each failure is to count once.
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports: { ...ports, checksPurity: false } })
  return { ports, handler, received: () => ports.received(out) }
}

const messages = fc
  .array(fc.constantFrom('0', '0', '0', '1', '2', 'dead'), { minLength: 1, maxLength: 25 })
  .map((times) => times.map((time, index) => `${index}:${time}`))
const batchSize = fc.integer({ min: 1, max: 10 })
const groupOf = (body: string) => Number(body.split(':')[0]) % 3

async function drained(queue: QueueModel, { handler }: ReturnType<typeof failing>) {
  for (let invocation = 0; queue.left.length > 0; invocation++) {
    if (invocation > 500) throw new Error('the queue never drains')
    await queue.invoke(handler)
  }
}

const isDead = (body: string) => body.endsWith(':dead')

test('a standard queue: every message is done, or a dead letter, and none comes again once it is', async () => {
  await fc.assert(
    fc.asyncProperty(messages, batchSize, fc.infiniteStream(fc.nat()), async (bodies, size, picks) => {
      const world = failing()
      const pick = (count: number) => (picks.next().value as number) % count
      const queue = new QueueModel({ bodies, batchSize: size, pick })
      await drained(queue, world)
      expect([...world.received()].sort()).toEqual(bodies.filter((body) => !isDead(body)).sort())
      expect(world.ports.deadLettered).toHaveLength(bodies.filter(isDead).length)
      // As often as it failed, and once more: nobody else's failure brings a message back.
      const deliveries = Map.groupBy(queue.batches.flat(), (body) => body)
      for (const body of bodies) {
        expect(deliveries.get(body)).toHaveLength(isDead(body) ? 1 : Number(body.split(':')[1]) + 1)
      }
    }),
  )
})

test('a FIFO queue: the messages of a group are done in their order, whatever fails', async () => {
  await fc.assert(
    fc.asyncProperty(messages, batchSize, fc.infiniteStream(fc.nat()), async (bodies, size, picks) => {
      const world = failing()
      const pick = (count: number) => (picks.next().value as number) % count
      const group = (index: number) => `g${groupOf(bodies[index] as string)}`
      await drained(new QueueModel({ bodies, group, batchSize: size, pick }), world)
      for (const one of [0, 1, 2]) {
        const ofGroup = (all: readonly string[]) => all.filter((body) => groupOf(body) === one && !isDead(body))
        expect(ofGroup(world.received())).toEqual(ofGroup(bodies))
      }
      expect(world.ports.deadLettered).toHaveLength(bodies.filter(isDead).length)
    }),
  )
})
