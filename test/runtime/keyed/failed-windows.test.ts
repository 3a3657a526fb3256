/** Windows whose firing throws: what else the key holds goes on (timer-steps.ts 2). */
import {
  type Aggregator,
  type CustomAggregation,
  epochMs,
  type Format,
  hopping,
  hours,
  json,
  minutes,
  type SlicedWindows,
  seconds,
  Topology,
  tumbling,
} from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Payment {
  readonly key: string
  readonly at: number
  readonly currency: string
}

const startMs = Date.UTC(2026, 0, 1)
const pay = (key: string, second: number, currency: string): Payment => ({
  key,
  at: startMs + second * 1_000,
  currency,
})

/** The windows of each key; what they put out, as `<key> <end in s>: <value>`. */
function payments<A>(
  windows: SlicedWindows,
  spent: CustomAggregation<Payment, A, string> | Aggregator<Payment, string>,
  emit: 'final' | 'on-close',
  warmKeys = 20_000,
) {
  const app = new Topology('payments')
  const source = app.source('payments', json() as Format<Payment>, {
    eventTime: epochMs((payment: Payment) => payment.at),
    outOfOrderness: minutes(0),
  })
  const out = app.sink<string>('out')
  const { results, late } = source
    .keyBy('by-key', ({ key }) => key)
    .window(windows)
    .aggregate('spent', spent as Aggregator<Payment, string>, { emit })
  results.map(({ key, window, value }) => `${key} ${(window.endMs - startMs) / 1_000}: ${value}`).to(out)
  late.to(app.sink<Payment>('late'))
  const driver = new TestDriver(app, { nowMs: startMs + hours(1).ms, warmKeys })
  return {
    driver,
    send: (...values: Payment[]) => driver.send(source, values),
    received: (key: string) => driver.received(out).filter((result) => result.startsWith(key)),
    reasons: () => driver.deadLetters.map(({ reason }) => [reason.phase, reason.code, reason.message]),
  }
}

const oneCurrency = {
  init: () => [] as string[],
  add: (all: string[], { currency }: Payment) => [...all, currency],
  merge: (a: string[], b: string[]) => {
    if (a[0] !== b[0]) throw new Error('currencies differ')
    return [...a, ...b]
  },
  result: (all: string[]) => all.join(' '),
}

test('parts of windows that cannot be merged fail the windows that need both, and no other of their key', async () => {
  const windows = hopping(seconds(15), { every: seconds(5), grace: seconds(20) })
  const { driver, send, received, reasons } = payments(windows, oneCurrency, 'final')
  await send(pay('a', 7, 'EUR'))
  await send(pay('b', 32, 'EUR'), pay('b', 33, 'EUR'))
  // Too late for the window that ends at 10, and in time for those that end at 15 and 20.
  await send(pay('a', 7, 'USD'))
  await send(pay('a', 34, 'GBP'), pay('b', 61, 'EUR'))
  await driver.advanceEventTime(minutes(5))
  expect(driver.pending('by-key')).toBe(0)
  const failed = ['timer', 'step-failed', 'currencies differ']
  expect(reasons()).toEqual([failed, failed])
  expect(received('a')).toEqual(['a 10: EUR', 'a 35: GBP', 'a 40: GBP', 'a 45: GBP'])
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
})

test('a window whose result throws is lost alone: the later ones of its key are put out', async () => {
  const spent = {
    ...oneCurrency,
    result: (all: string[]) => {
      if (all.includes('XXX')) throw new Error('no such currency')
      return all.join(' ')
    },
  }
  const { driver, send, received, reasons } = payments(tumbling(minutes(1), { grace: minutes(0) }), spent, 'on-close')
  await send(pay('a', 0, 'XXX'), pay('a', 60, 'EUR'), pay('a', 120, 'GBP'))
  await driver.advanceEventTime(minutes(30))
  expect(reasons()).toEqual([['timer', 'step-failed', 'no such currency']])
  expect(received('a')).toEqual(['a 120: EUR', 'a 180: GBP'])
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
})

test('windows that can be read no more are dropped, a dead letter tells it, and the key begins anew', async () => {
  let isBroken = false
  const joined: Aggregator<Payment, string, string> = {
    init: () => '',
    add: (all, { currency }) => `${all}${currency}`,
    merge: (a, b) => a + b,
    result: (all) => all,
    encode: (all) => all,
    decode: (stored) => {
      if (isBroken) throw new Error('this is none of ours')
      return stored as string
    },
  }
  const windows = tumbling(minutes(1), { grace: minutes(0) })
  const { driver, send, received, reasons } = payments(windows, joined as Aggregator<Payment, string>, 'on-close', 0)
  await send(pay('a', 0, 'EUR'), pay('a', 60, 'GBP'))
  isBroken = true
  await send(pay('b', 130, 'EUR'))
  await driver.advanceEventTime(minutes(1))
  await driver.retry()
  expect(driver.pending('by-key')).toBe(0)
  const told = expect.stringMatching(/"spent".*dropped: this is none of ours/)
  // Both keys have windows that are due.
  expect(reasons()).toEqual([
    ['timer', 'state-dropped', told],
    ['timer', 'state-dropped', told],
  ])
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
  isBroken = false
  await send(pay('a', 4_000, 'JPY'))
  await driver.advanceEventTime(minutes(90))
  expect(received('a')).toEqual(['a 60: EUR', 'a 4020: JPY'])
})
