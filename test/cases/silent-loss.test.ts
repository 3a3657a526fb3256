/** Copy to test/cases/silent-loss.test.ts: all four fail today. */
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/stream-handler.ts'
import { slotOf } from '../../lib/core/slot.ts'
import { text } from '../../lib/core/format.ts'
import { Topology, operatorState, valueState } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../lib/testing/memory-ports.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'

const schema = z.object({ k: z.string(), n: z.number() })
function release(slots: number, before: readonly string[] = [], keeps = true) {
  const app = new Topology('app')
  const source = app.source('values', schema)
  const count = { init: () => 0, add: (sum: number, { n }: { n: number }) => sum + n, result: (sum: number) => sum }
  for (const name of before) source.keyBy(name, ({ k }) => k).aggregate(`${name}-sum`, count, { emit: 'on-update' }).to(app.sink<number>(`${name}-out`))
  const out = app.sink<number>('out')
  if (keeps) source.keyBy('by-key', ({ k }) => k, { slots }).aggregate('sum', count, { emit: 'on-update' }).to(out)
  return { app, out }
}
async function pump(ports: MemoryPorts, app: Topology, n: number, firstIndex: number, key = 'a', readers = [app]) {
  await streamHandler(app, { ports })(kinesisEvent([{ k: key, n }], { firstIndex }), lambdaContext())
  for (const event of ports.takeFrames('by-key'))
    for (const reader of readers) await streamHandler(reader, { ports })(event, lambdaContext()).catch(() => undefined)
}

test('a keyBy that is added in front of another loses nothing', async () => {
  const ports = memoryPorts()
  const first = release(64)
  for (let i = 0; i < 3; i++) await pump(ports, first.app, 1, i)
  const second = release(64, ['by-new'])
  for (let i = 3; i < 6; i++) await pump(ports, second.app, 1, i)
  expect(ports.received(first.out)).toEqual([1, 2, 3, 4, 5, 6])
})

test('a first keyBy that is removed loses nothing of the other', async () => {
  const ports = memoryPorts()
  const first = release(64, ['by-old'])
  for (let i = 0; i < 3; i++) await pump(ports, first.app, 1, i)
  const second = release(64)
  for (let i = 3; i < 6; i++) await pump(ports, second.app, 1, i)
  expect(ports.received(first.out)).toEqual([1, 2, 3, 4, 5, 6])
})

test('slots that were changed and set back, as the error says, lose nothing', async () => {
  const ports = memoryPorts()
  const key = ['a', 'b', 'c', 'd', 'e', 'f'].find((text) => slotOf(text, 4) >= 2) as string
  const first = release(4)
  for (let i = 0; i < 3; i++) await pump(ports, first.app, 1, i, key)
  // The source goes on with 1 slot; the keyed stage refuses; then the slots are set back.
  await pump(ports, release(1).app, 100, 3, key, [release(1).app, first.app])
  expect([ports.received(first.out).at(-1), ports.deadLettered.length]).not.toEqual([3, 0])
})

test.each(['key', 'operator state'])('an impure %s is refused', async (what) => {
  let calls = 0
  const app = new Topology('app')
  const source = app.source('lines', text())
  source
    .keyBy('by-key', (line) => (what === 'key' ? `${line}${calls++}` : line))
    .process('p', {
      state: { v: valueState<number>(), s: operatorState({ initial: 0, add: (n: number) => n + (what === 'key' ? 1 : calls++) }) },
      step: (_, { state }) => [state.s.get()],
    })
    .to(app.sink<number>('out'))
  await expect(new TestDriver(app).send(source, ['a', 'a'])).rejects.toThrow('pure')
})
