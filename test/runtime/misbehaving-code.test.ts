/** What user code and user sinks may do that they should not, and what becomes of it. */
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { minutes } from '../../lib/core/duration.ts'
import { lookup } from '../../lib/operators/enrich/table.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import { kinesisEvent, lambdaContext, sequenceNumber } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { Topology } from '../../lib/topology/topology.ts'

const Order = z.object({ id: z.string(), total: z.number() })

function orders(step: (order: z.infer<typeof Order>) => unknown) {
  const app = new Topology('misbehaving')
  const source = app.source('orders', Order)
  const out = app.sink<unknown>('out')
  source.map(step as (order: z.infer<typeof Order>) => { id: string }).to(out)
  return { app, source, out }
}

test('a step that changes its value fails in tests, where it does so', async () => {
  const { app, source, out } = orders((order) => {
    order.total += 1
    return order
  })
  const driver = new TestDriver(app)
  await driver.send(source, [{ id: 'a', total: 0 }])
  expect(driver.received(out)).toEqual([])
  expect(driver.deadLetters.map(({ reason }) => [reason.code, reason.name])).toEqual([['step-failed', 'TypeError']])
})

test('a step that changes its value counts once in production, with or without a lookup behind it', async () => {
  const app = new Topology('mutating')
  const source = app.source('orders', Order)
  const out = app.sink<{ total: number }>('out')
  const names = lookup('names', { load: async (keys) => new Map(keys.map((key) => [key, key])), ttl: minutes(1) })
  source
    .map((order) => {
      order.total += 1
      return order
    })
    .enrich({ from: names, key: (order) => order.id, join: (order) => ({ total: order.total }) })
    .to(out)
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports: { ...ports, freezesValues: false, checksPurity: false } })
  await handler(kinesisEvent([{ id: 'a', total: 0 }]), lambdaContext())
  expect(ports.received(out)).toEqual([{ total: 1 }])
})

test.each([
  ['a Map', () => ({ seen: new Map() })],
  ['NaN', () => ({ rate: Number.NaN })],
  ['nothing', () => undefined],
])('an output of %s is a dead letter in memory, as it is at a real sink', async (_, step) => {
  const { app, source, out } = orders(step)
  const driver = new TestDriver(app)
  await driver.send(source, [{ id: 'a', total: 0 }])
  expect(driver.received(out)).toEqual([])
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['not-serialisable'])
})

test('a record with more outputs than may wait is a dead letter, and its neighbours go on', async () => {
  const app = new Topology('exploding')
  const source = app.source('orders', Order)
  const out = app.sink<number>('out')
  source.flatMap(({ total }) => Array.from({ length: total }, (_, i) => i)).to(out)
  const driver = new TestDriver(app, { maxOutputsPerRecord: 5 })
  await driver.send(source, [
    { id: 'a', total: 5 },
    { id: 'b', total: 6 },
    { id: 'c', total: 1 },
  ])
  expect(driver.received(out)).toEqual([0, 1, 2, 3, 4, 0])
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['too-many-outputs'])
})

test('a key of an enrichment that is a number is a dead letter, not a row that is not found', async () => {
  const app = new Topology('number-key')
  const source = app.source('orders', Order)
  const out = app.sink<{ id: string }>('out')
  const names = lookup('names', { load: async () => new Map(), ttl: minutes(1) })
  source.enrich({ from: names, key: ({ total }) => total as unknown as string, join: ({ id }) => ({ id }) }).to(out)
  const driver = new TestDriver(app)
  await driver.send(source, [{ id: 'a', total: 7 }])
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['key-not-text'])
})

test('an error of another copy of this package decides as our own', async () => {
  // GIVEN errors as a second copy of lib/core/errors.ts makes them, which are no instances of this copy's classes
  jest.resetModules()
  const foreign = (await import('../../lib/core/errors.ts')) as typeof import('../../lib/core/errors.ts')
  const { app, source, out } = orders((order) => {
    if (order.id === 'never') throw new foreign.TerminalError('never')
    if (order.id === 'later') throw new foreign.RetryableError('later')
    return order
  })
  const driver = new TestDriver(app)
  // WHEN
  await driver.send(
    source,
    ['a', 'never', 'later', 'b'].map((id) => ({ id, total: 0 })),
  )
  // THEN
  expect(driver.received(out)).toEqual([{ id: 'a', total: 0 }])
  expect(driver.deadLetters.map(({ reason }) => [reason.code, reason.attempts])).toEqual([['terminal', 1]])
  expect(driver.pending(source)).toBe(2)
})

test('a sink that never answers is answered for before the deadline: what it was given comes again', async () => {
  const { app } = orders((order) => order)
  const clock = new VirtualClock()
  const asked: string[] = []
  const silent: Sink = {
    prepare: ({ value }) => value,
    deliver: () => {
      asked.push('deliver')
      return new Promise(() => undefined)
    },
  }
  const ports = { ...memoryPorts({ clock }), sink: () => silent }
  const answer = streamHandler(app, { ports })(
    kinesisEvent([{ id: 'a', total: 1 }]),
    lambdaContext({ remainingMs: 3_000 }),
  )
  while (asked.length === 0) await Promise.resolve()
  clock.advance(2_000)
  for (let i = 0; i < 100; i++) await Promise.resolve()
  clock.advance(500)
  expect(await answer).toEqual({ batchItemFailures: [{ itemIdentifier: sequenceNumber(0) }] })
  expect(clock.nowMs()).toBeLessThan(Date.UTC(2026, 0, 1) + 3_000)
})

test('metrics count what is done, what was taken by a sink, and what comes again', async () => {
  const { app } = orders((order) => {
    if (order.id === 'poison') throw new Error('poison')
    return order
  })
  const ports = memoryPorts()
  ports.refuse({ type: 'sink', name: 'out' } as never, (value) =>
    (value as { id: string }).id === 'c' ? { status: 'retry', error: new Error('full') } : delivered,
  )
  await streamHandler(app, { ports })(
    kinesisEvent(['a', 'poison', 'c', 'd'].map((id) => ({ id, total: 0 }))),
    lambdaContext(),
  )
  expect(ports.counted('records-in')).toBe(2)
  expect(ports.counted('records-returned')).toBe(2)
  expect(ports.counted('dead-letters')).toBe(1)
})
