/** Outputs of a keyed stage that a sink refuses for good: each has a dead letter that says whose it is and what it held. */
import * as z from 'zod'
import { count, epochMs, minutes, TerminalError, Topology, tumbling, valueState } from '../../../lib/index.ts'
import type { DeadLetter } from '../../../lib/runtime/dead-letter.ts'
import type { Outcome } from '../../../lib/runtime/sink.ts'
import type { MemorySink } from '../../../lib/testing/memory-ports.ts'
import { TestDriver } from '../../../lib/testing/test-driver.ts'

const startMs = Date.UTC(2026, 0, 1)
const visit = z.object({ key: z.string(), at: z.number() })
const rejected: Outcome = { status: 'rejected', error: new TerminalError('too large for the sink') }

const textOf = (base64: string | null | undefined): unknown =>
  JSON.parse(Buffer.from(base64 ?? '', 'base64').toString())

/** Of each window as many outputs as told. */
function windowsOf(times = 1) {
  const app = new Topology('visits-app')
  const source = app.source('visits', visit, { eventTime: epochMs(({ at }) => at), outOfOrderness: minutes(0) })
  const out = app.sink<{ key: string; n: number }>('out')
  const windows = source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .window(tumbling(minutes(1), { grace: minutes(0) }))
    .aggregate('per-minute', { n: count() }, { emit: 'on-close' })
  windows.results.flatMap(({ key, value: { n } }) => Array.from({ length: times }, () => ({ key, n }))).to(out)
  windows.late.to(app.sink('late'))
  return { source, out, driver: new TestDriver(app, { nowMs: startMs }) }
}

const whatOf = ({ key, payload, output }: DeadLetter) => [
  Buffer.from(key ?? '', 'base64').toString(),
  textOf(payload),
  output && { ...output, value: textOf(output.value) },
]

test('the results of windows that close together each have one, with their key, window and value', async () => {
  const { source, out, driver } = windowsOf()
  driver.ports.refuse(out, () => rejected)
  const visits = ['a', 'b', 'c', 'b'].map((key) => ({ key, at: startMs }))
  await driver.send(source, visits)
  await driver.advanceEventTime(minutes(5))
  const timer = { domain: 'event-time', name: 'per-minute', timeMs: startMs + 60_000 }
  const whole = (key: string, n: number) => [
    key,
    { key, timer: timer.name, domain: timer.domain, timeMs: timer.timeMs },
    { sink: 'out', index: 0, value: { key, n }, timer },
  ]
  expect(driver.deadLetters.map(whatOf).toSorted()).toEqual([whole('a', 1), whole('b', 2), whole('c', 1)])
  expect(driver.deadLetters).toMatchObject(Array(3).fill({ source: 'by-key', reason: { phase: 'sink' } }))
  expect(new Set(driver.deadLetters.map(({ id }) => id)).size).toBe(3)
  for (const { id } of driver.deadLetters) expect(id).toMatch(/^by-key\/slot-\d+\/\d+\/1\/out\/0$/)
  expect(driver.ports.counted('dead-letters')).toBe(3)
})

test('of several outputs of one firing each has its key and its timer, as these are no record that one could hold for all', async () => {
  const { source, out, driver } = windowsOf(2)
  driver.ports.refuse(out, () => rejected)
  await driver.send(source, [{ key: 'a', at: startMs }])
  await driver.advanceEventTime(minutes(5))
  expect(driver.deadLetters.map(({ output }) => [output?.sink, output?.index])).toEqual([
    ['out', 0],
    ['out', 1],
  ])
  for (const { key, payload, recordIn } of driver.deadLetters) {
    expect([key, textOf(payload), recordIn]).toEqual([
      Buffer.from('a').toString('base64'),
      expect.objectContaining({ key: 'a', timer: 'per-minute' }),
      undefined,
    ])
  }
})

test('an attempt that is repeated gives each the same identity and content', async () => {
  const { source, out, driver } = windowsOf()
  const sent: DeadLetter[] = []
  ;(driver.ports.deadLetters as unknown as MemorySink).refuse = (letter) => {
    sent.push(letter as DeadLetter)
    return undefined
  }
  let answers = 0
  driver.ports.refuse(out, () => (++answers === 3 ? { status: 'retry', error: new Error('down') } : rejected))
  await driver.send(
    source,
    ['a', 'b', 'c'].map((key) => ({ key, at: startMs })),
  )
  await driver.advanceEventTime(minutes(5))
  driver.ports.refuse(out, () => rejected)
  driver.clock.advance(minutes(1).ms)
  await driver.retry()
  expect(sent).toHaveLength(5)
  const contents = new Map<string, string>()
  for (const { failedAtMs, ...letter } of sent) {
    const text = JSON.stringify(letter)
    expect(contents.get(letter.id) ?? text).toBe(text)
    contents.set(letter.id, text)
  }
  expect(contents.size).toBe(3)
})

function splitting() {
  const app = new Topology('visits-app')
  const source = app.source('visits', visit, { eventTime: epochMs(({ at }) => at) })
  const out = app.sink<string>('out')
  source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('split', { state: { last: valueState<string>() }, step: ({ key }) => [`${key}0`, `${key}1`, `${key}2`] })
    .to(out)
  return { source, out, driver: new TestDriver(app, { nowMs: startMs }) }
}

test('each has an identity of its own, and the first of its record holds what the record was', async () => {
  const { source, out, driver } = splitting()
  driver.ports.refuse(out, (text) => (text === 'a1' || text.startsWith('b') ? rejected : undefined))
  await driver.send(source, [
    { key: 'a', at: startMs },
    { key: 'b', at: startMs },
  ])
  const { deadLetters } = driver
  expect(deadLetters.map(({ id, output }) => [id, textOf(output?.value)])).toEqual([
    ['by-key/slot-0/1/out/1', 'a1'],
    ['by-key/slot-0/2/out/0', 'b0'],
    ['by-key/slot-0/2/out/1', 'b1'],
    ['by-key/slot-0/2/out/2', 'b2'],
  ])
  const [a, b0, ...others] = deadLetters
  expect([a, b0].map((letter) => textOf(letter?.payload))).toMatchObject([{ key: 'a' }, { key: 'b' }])
  expect(others.map(({ payload, key, recordIn }) => [payload, key, recordIn])).toEqual(
    Array(2).fill([null, null, 'by-key/slot-0/2/out/0']),
  )
  expect(driver.received(out)).toEqual(['a0', 'a2'])
})

test('the value is what the sink refused, whatever the step made of it afterwards', async () => {
  const app = new Topology('visits-app')
  const source = app.source('visits', visit, { eventTime: epochMs(({ at }) => at) })
  const out = app.sink<{ n: number }>('out')
  const step = function* () {
    const row = { n: 1 }
    yield row
    row.n = 2
    yield row
  }
  source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('split', { state: { last: valueState<string>() }, step })
    .to(out)
  const driver = new TestDriver(app, { nowMs: startMs })
  const refused: unknown[] = []
  driver.ports.refuse(out, (value) => {
    refused.push(structuredClone(value))
    return rejected
  })
  await driver.send(source, [{ key: 'a', at: startMs }])
  expect(driver.deadLetters.map(({ output }) => textOf(output?.value))).toEqual(refused)
  expect(refused).toEqual([{ n: 1 }, { n: 2 }])
})
