/** A step that throws can be found: its dead letter and the log name it, and the log says where, but never with which value. */
import {
  epochMs,
  eventTimer,
  type Format,
  json,
  minutes,
  otherwise,
  RetryableError,
  type Stream,
  staticTable,
  sum,
  Topology,
  tumbling,
  valueState,
} from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'

interface Order {
  readonly id: string
  readonly atMs: number
}

const startMs = Date.UTC(2026, 0, 1)
const order = { id: 'secret-7', atMs: startMs }

/** Throws a message that quotes what was processed, and looks like a frame as well. */
const fail = ({ id }: Order): never => {
  throw new TypeError(`cannot read ${id}\n    at ${id} (/secret/file.ts:1:1)`)
}

/** A driver of a topology with the steps of a test between its source and its sink. */
function driverOf(steps: (orders: Stream<Order>) => Stream<unknown>, key?: (value: unknown) => string) {
  const app = new Topology('app')
  const orders = app.source('orders', json() as Format<Order>, { eventTime: epochMs((o: Order) => o.atMs) })
  steps(orders).to(app.sink('out', key && { key }))
  const driver = new TestDriver(app)
  return { driver, send: (...values: Order[]) => driver.send(orders, values) }
}

const ofAllArms = ({ large, rest }: { large: Stream<Order>; rest: Stream<Order> }) => large.merge(rest)

const table = staticTable('countries', () => new Map<string, string>())
const keyed = (orders: Stream<Order>) => orders.keyBy('by-id', ({ id }) => id)

test.each<[string, (orders: Stream<Order>) => Stream<unknown>, string]>([
  ['map', (orders) => orders.map((o) => o).map(fail), 'source "orders" > map > map'],
  ['filter', (orders) => orders.filter(fail).map((o) => o), 'source "orders" > filter'],
  [
    'flatMap, between two outputs',
    (orders) =>
      orders
        .flatMap(function* (o) {
          yield o
          yield fail(o)
        })
        .map((o) => o),
    'source "orders" > flatMap',
  ],
  ['branch', (orders) => ofAllArms(orders.branch({ large: fail, rest: otherwise })), 'source "orders" > branch'],
  ['behind an arm', (orders) => orders.branch({ all: otherwise }).all.map(fail), 'source "orders" > arm "all" > map'],
  [
    'enrich',
    (orders) => orders.enrich({ from: table, key: () => 'DE', join: fail }),
    'source "orders" > enrich from "countries"',
  ],
  [
    'the key of a keyBy',
    (orders) =>
      orders.keyBy('by-id', fail).deduplicate('once', { by: () => '', ttl: { by: 'event-time', after: minutes(1) } }),
    'source "orders" > keyBy "by-id"',
  ],
  [
    'process',
    (orders) => keyed(orders).process('count', { state: { n: valueState<number>() }, step: fail }),
    'source "orders" > keyBy "by-id" > process "count"',
  ],
  [
    'behind a process',
    (orders) =>
      keyed(orders)
        .process('count', { state: { n: valueState<number>() }, step: (o) => [o] })
        .map(fail),
    'source "orders" > keyBy "by-id" > process "count" > map',
  ],
  [
    'a timer',
    (orders) =>
      keyed(orders).process('count', {
        state: { last: valueState<Order>() },
        timers: { wake: eventTimer() },
        step(o, { state, timers }): unknown[] {
          state.last.set(o)
          timers.wake.set(o.atMs)
          return []
        },
        onTimer: { wake: (_timeMs, { state }) => fail(state.last.get() as Order) },
      }),
    'source "orders" > keyBy "by-id" > process "count" > timer "count.wake"',
  ],
])('%s', async (_what, steps, step) => {
  const { driver, send } = driverOf(steps)
  await send(order, order)
  expect(driver.deadLetters.length).toBeGreaterThan(0)
  expect(driver.deadLetters[0]?.reason).toMatchObject({ name: 'TypeError', code: 'step-failed', step })
  const lines = driver.ports.lines.filter(({ message }) => message === 'a record became a dead letter')
  expect(lines[0]?.fields).toMatchObject({ error: 'TypeError', code: 'step-failed', step })
  expect(lines[0]?.fields.frames).toEqual(
    expect.arrayContaining([expect.stringMatching(/failing-step\.test\.ts:\d+:\d+$/)]),
  )
  expect(JSON.stringify(driver.ports.lines)).not.toContain('secret')
})

test('an aggregator', async () => {
  const app = new Topology('app')
  const orders = app.source('orders', json() as Format<Order>, { eventTime: epochMs((o: Order) => o.atMs) })
  const { results, late } = keyed(orders)
    .window(tumbling(minutes(5), { grace: minutes(0) }))
    .aggregate('total', { cents: sum((o) => fail(o) as number) }, { emit: 'final' })
  results.to(app.sink('totals'))
  late.to(app.sink('late'))
  const driver = new TestDriver(app)
  await driver.send(orders, [order])
  expect(driver.deadLetters[0]?.reason.step).toBe('source "orders" > keyBy "by-id" > window "total"')
})

test('the key of a sink', async () => {
  const { driver, send } = driverOf(
    (orders) => orders,
    (o) => fail(o as Order),
  )
  await send(order)
  expect(driver.deadLetters[0]?.reason.step).toBe('source "orders" > sink "out"')
})

test('a record that goes back says where it failed', async () => {
  const { driver, send } = driverOf((orders) =>
    orders.map(() => {
      throw new RetryableError('not yet, secret-7', { code: 'not-yet' })
    }),
  )
  await send(order)
  expect(driver.pending('orders')).toBe(1)
  expect(driver.ports.lines[0]).toMatchObject({
    message: 'a partition goes back to its source from here',
    fields: {
      error: 'RetryableError',
      code: 'not-yet',
      step: 'source "orders" > map',
      frames: expect.arrayContaining([expect.stringContaining('failing-step.test.ts')]),
    },
  })
  expect(JSON.stringify(driver.ports.lines)).not.toContain('secret')
})

test('what is no error is a dead letter without the name of its step', async () => {
  const { driver, send } = driverOf((orders) =>
    orders.map(() => {
      throw 'oops'
    }),
  )
  await send(order)
  expect(driver.deadLetters[0]?.reason).toMatchObject({ name: 'NonError', code: 'step-failed' })
  expect(driver.deadLetters[0]?.reason.step).toBeUndefined()
})
