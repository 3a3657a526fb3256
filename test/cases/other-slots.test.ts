/** A stage that sends was deployed with other slots than the state was made with: nothing of it may vanish in silence. */
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { slotOf } from '../../lib/core/slot.ts'
import { Topology } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../lib/testing/memory-ports.ts'

function release(slots: number) {
  const app = new Topology('app')
  const out = app.sink<number>('out')
  app
    .source('values', z.object({ k: z.string(), n: z.number() }))
    .keyBy('by-key', ({ k }) => k, { slots })
    .aggregate(
      'sum',
      { init: () => 0, add: (sum: number, { n }) => sum + n, result: (sum) => sum },
      { emit: 'on-update' },
    )
    .to(out)
  return { app, out }
}

async function send(
  ports: MemoryPorts,
  app: Topology,
  value: { readonly k: string; readonly n: number },
  index: number,
) {
  await streamHandler(app, { ports })(kinesisEvent([value], { firstIndex: index }), lambdaContext())
}

test('records of the release with other slots are dead letters that say so, once the slots are set back', async () => {
  const ports = memoryPorts()
  const k = ['a', 'b', 'c', 'd', 'e', 'f'].find((text) => slotOf(text, 4) >= 2) as string
  const first = release(4)
  const other = release(1)
  for (let i = 0; i < 3; i++) await send(ports, first.app, { k, n: 1 }, i)
  for (const event of ports.takeFrames('by-key')) await streamHandler(first.app, { ports })(event, lambdaContext())
  await send(ports, other.app, { k, n: 100 }, 3)
  const [event] = ports.takeFrames('by-key')
  await expect(streamHandler(other.app, { ports })(event, lambdaContext())).rejects.toThrow('4')
  await streamHandler(first.app, { ports })(event, lambdaContext())
  expect(ports.received(first.out)).toEqual([1, 2, 3])
  expect(ports.deadLettered).toMatchObject([{ reason: { code: 'foreign-slot' } }])
})
