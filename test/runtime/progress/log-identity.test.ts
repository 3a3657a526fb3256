/** A source topic that is made again under its name: rules of lib/runtime/progress/log-identity.ts. */
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { text } from '../../../lib/core/format.ts'
import { resetKeyed } from '../../../lib/runtime/progress/generation.ts'
import { blankKeyedProgress } from '../../../lib/runtime/progress/progress.ts'
import { kafkaEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { sourceLineage } from '../../../lib/testing/memory-streams.ts'
import { Topology } from '../../../lib/topology/topology.ts'

const never = new AbortController().signal

/** A stage that feeds a keyed one, on a topic whose id the test sets. */
function world() {
  const app = new Topology('words')
  const counts = app.sink<number>('counts')
  app
    .source('lines', text())
    .keyBy('by-line', (line) => line)
    .aggregate('count', { init: () => 0, add: (n) => n + 1, result: (n) => n }, { emit: 'on-update' })
    .to(counts)
  const memory = memoryPorts()
  const topic = { id: 'first', asked: 0, isSilent: false }
  const identity = async () => {
    topic.asked += 1
    if (topic.isSilent) throw new Error('no broker answers')
    return topic.id
  }
  const ports = {
    ...memory,
    lineage: (stage: string) => (stage === 'lines' ? { ...sourceLineage, identity } : memory.lineage?.(stage)),
  }
  const container = () => streamHandler(app, { ports })
  const event = (...offsets: number[]) =>
    kafkaEvent({ 'lines-3': offsets.map((offset) => ({ offset, value: `line ${offset}` })) })
  const stored = async () => (await memory.state('lines')?.readProgress('lines/3', never))?.value
  return { container, event, memory, topic, stored }
}

test('progress of a Kafka partition is kept under its number, with the id of its topic', async () => {
  const { container, event, stored } = world()
  await container()(event(0, 1, 5), lambdaContext())
  expect(await stored()).toMatchObject({ completed: '5', number: 3, log: 'first' })
})

test.each(['the same container', 'a fresh container'])(
  'rule 2: %s takes nothing of a topic that was made again for done',
  async (which) => {
    const { container, event, memory, topic, stored } = world()
    const warm = container()
    await warm(event(0, 1, 2), lambdaContext())
    memory.takeFrames('by-line')
    topic.id = 'second'
    const before = await stored()
    const handler = which === 'a fresh container' ? container() : warm
    // All of the first batch would pass for done, of the second a part.
    for (const offsets of [
      [0, 1],
      [2, 3],
    ]) {
      await expect(handler(event(...offsets), lambdaContext())).rejects.toMatchObject({
        code: 'recreated-log',
        message: expect.stringMatching(
          /partition 3 of the topic with the id first up to offset 2.*has the id second now/,
        ),
      })
    }
    expect(memory.takeFrames('by-line')).toEqual([])
    expect(await stored()).toEqual(before)
  },
)

test('rule 1: the topic is asked once by a container, and again where something would be dropped', async () => {
  const { container, event, topic } = world()
  const handler = container()
  await handler(event(0, 1), lambdaContext())
  await handler(event(2), lambdaContext())
  await handler(event(3), lambdaContext())
  expect(topic.asked).toBe(1)
  await handler(event(3, 4), lambdaContext())
  expect(topic.asked).toBe(2)
})

test('rule 1: where the topic cannot be asked nothing is dropped', async () => {
  const { container, event, topic } = world()
  const handler = container()
  await handler(event(0, 1), lambdaContext())
  topic.isSilent = true
  expect(await handler(event(0, 1), lambdaContext())).toEqual({
    batchItemFailures: [0, 1].map((offset) => ({ itemIdentifier: { partition: 'lines-3', offset } })),
  })
})

test('a keyed stage keeps the identity of its own log through a reset, as it keeps its place in it', () => {
  const progress = { ...blankKeyedProgress(4, [0]), completed: '9', number: 4, log: 'first' }
  expect(resetKeyed(progress, { generation: 2 })).toMatchObject({ completed: '9', log: 'first', generation: 2 })
})
