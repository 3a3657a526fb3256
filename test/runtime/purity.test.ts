/** Steps that are not pure are refused by name, wherever they stand. */
import { z } from 'zod'
import {
  ConfigurationError,
  epochMs,
  eventTimer,
  type Format,
  json,
  mapState,
  operatorState,
  RetryableError,
  type Stream,
  streamHandler,
  Topology,
  valueState,
} from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, type MemoryPorts, memoryPorts, TestDriver } from '../../lib/testing/index.ts'

const schema = z.object({ key: z.string(), n: z.number() })
type Value = z.infer<typeof schema>

interface Steps {
  readonly format?: Format<unknown>
  readonly transform?: (value: Value) => Value
  readonly eventTime?: (value: Value) => number
  readonly map?: (value: Value) => Value
  readonly filter?: (value: Value) => boolean
  readonly key?: (value: Value) => string
  readonly inSlot?: (n: number) => number
  readonly output?: (sum: number) => number | undefined
  readonly kept?: (sum: number) => number
  readonly entry?: (value: Value) => string
  readonly timer?: (outputs: { sum: number }[]) => { sum: number }[]
  readonly sinkKey?: () => string
}

const startMs = Date.UTC(2026, 0, 1)

function driverOf({
  format = json(),
  transform = (value) => value,
  eventTime = () => startMs,
  map = (value) => value,
  filter = () => true,
  key = (value) => value.key,
  inSlot = (n) => n + 1,
  output = (sum) => sum,
  kept = (sum) => sum,
  entry = (value) => String(value.n),
  timer = (outputs) => outputs,
  sinkKey = () => 'out',
}: Steps = {}) {
  const app = new Topology('pure-app')
  const source = app.source('values', schema.transform(transform), {
    format: format as Format<Value>,
    eventTime: epochMs(eventTime),
  })
  const out = app.sink<unknown>('out', { key: sinkKey })
  source
    .map(map)
    .filter(filter)
    .keyBy('by-key', key)
    .process('adder', {
      state: {
        sum: valueState<number>(),
        byEntry: mapState<number>(),
        inSlot: operatorState({ initial: 0, add: inSlot }),
      },
      timers: { soon: eventTimer() },
      step: (given, { state, timers, record }) => {
        const sum = (state.sum.get() ?? 0) + given.n
        state.sum.set(kept(sum))
        state.byEntry.set(entry(given), sum)
        timers.soon.set(record.eventTimeMs)
        const put = output(sum)
        return put === undefined ? [] : [{ sum: put }]
      },
      onTimer: { soon: () => timer([]) },
    })
    .to(out)
  return { driver: new TestDriver(app), source, out }
}

let calls = 0
beforeEach(() => {
  calls = 0
})

/** Throws the first time that it is called, or only the second. */
const throwing =
  <T>(time: 'first' | 'second') =>
  (given: T): T => {
    calls += 1
    if (calls === (time === 'first' ? 1 : 2)) throw new Error('boom')
    return given
  }

test.each<[string, Steps, string]>([
  ['a format', { format: { name: 'own', decode: () => ({ key: 'a', n: calls++ }) } }, 'the format of source "values"'],
  ['a schema', { transform: (value) => ({ ...value, n: calls++ }) }, 'the schema of source "values"'],
  ['an event time', { eventTime: () => startMs + calls++ }, 'the event time of source "values"'],
  ['a map', { map: (value) => ({ ...value, n: calls++ }) }, 'map'],
  ['a filter', { filter: () => calls++ % 2 === 0 }, 'filter'],
  ['a key function', { key: () => `key-${calls++}` }, 'the key function of keyBy "by-key"'],
  ['an operator state', { inSlot: () => calls++ }, 'operatorState "adder.inSlot"'],
  ['a keyed step by its outputs', { output: () => calls++ }, 'process "adder"'],
  ['a keyed step by how many it has', { output: () => (calls++ % 2 === 0 ? 1 : undefined) }, 'process "adder"'],
  ['a keyed step by its state', { kept: () => calls++ }, 'adder.sum'],
  ['a keyed step by its entries', { entry: () => `entry-${calls++}` }, 'adder.byEntry'],
  ['a key function of a sink', { sinkKey: () => `key-${calls++}` }, 'the key function of sink "out"'],
])('%s is refused by name', (_, steps, named) => refuses(steps, named))

describe.each(['first', 'second'] as const)('what throws the %s time and not the other is refused by name:', (time) => {
  test.each<[string, Steps, string]>([
    ['a format', { format: { name: 'own', decode: throwing(time) } }, 'the format of source "values"'],
    ['a schema', { transform: throwing(time) }, 'the schema of source "values"'],
    ['an event time', { eventTime: () => throwing<number>(time)(startMs) }, 'the event time of source "values"'],
    ['a map', { map: throwing(time) }, 'map'],
    ['a filter', { filter: () => throwing<boolean>(time)(true) }, 'filter'],
    ['a key function', { key: () => throwing<string>(time)('a') }, 'the key function of keyBy "by-key"'],
    ['an operator state', { inSlot: throwing(time) }, 'operatorState "adder.inSlot"'],
    ['a keyed step', { output: throwing(time) }, 'process "adder"'],
    ['a key function of a sink', { sinkKey: () => throwing<string>(time)('out') }, 'the key function of sink "out"'],
  ])('%s', (_, steps, named) =>
    refuses(steps, `${named} answered one and the same record in two ways (it threw the ${time} time)`),
  )
})

test.each<[string, Steps['timer'], string]>([
  ['by its outputs', () => [{ sum: calls++ }], 'process "adder"'],
  ['by how many it has', () => (calls++ % 2 === 0 ? [{ sum: 1 }] : []), 'the timer "adder.soon"'],
  ['that throws the first time', throwing('first'), 'the timer "adder.soon"'],
  ['that throws the second time', throwing('second'), 'the timer "adder.soon"'],
])('a timer %s is refused by name, and is no dead letter', async (_, timer, named) => {
  const { driver, source, out } = driverOf({ timer })
  await expect(driver.send(source, [{ key: 'a', n: 1 }])).rejects.toThrow(`${named} answered`)
  expect([driver.received(out), driver.deadLetters]).toEqual([[{ sum: 1 }], []])
  expect(await driver.stateOf('by-key', 'a')).toMatchObject({ 'adder.sum': 1 })
})

async function refuses(steps: Steps, named: string): Promise<void> {
  const { driver, source, out } = driverOf(steps)
  const sent = driver.send(source, [{ key: 'a', n: 1 }])
  await expect(sent).rejects.toThrow(ConfigurationError)
  await expect(sent).rejects.toThrow(named)
  await expect(sent).rejects.toMatchObject({ code: 'impure-step' })
  expect(driver.received(out)).toEqual([])
  expect(driver.deadLetters).toEqual([])
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
}

test('an impure meaning of a delete is refused by name', async () => {
  const app = new Topology('pure-app')
  const source = app.source('values', json() as Format<number>, { onDelete: () => calls++ })
  source.to(app.sink<number>('out'))
  await expect(new TestDriver(app).sendRaw(source, [null])).rejects.toThrow('onDelete of source "values" answered')
})

test.each<[string, () => number]>([
  ['by its values', () => calls++],
  ['that throws the first time', () => throwing<number>('first')(0)],
  ['that throws the second time', () => throwing<number>('second')(0)],
])('an upcaster %s is refused by the keyBy that has it', async (_, upcast) => {
  const handlerOf = (version: 1 | 2, ports: MemoryPorts) => {
    const app = new Topology('pure-app')
    app
      .source('values', json() as Format<number>)
      .keyBy('by-key', () => 'a', version === 1 ? {} : { version, upcast: { 1: upcast } })
      .process('last', { state: { last: valueState<number>() }, step: (n, { state }) => state.last.set(n) })
    return streamHandler(app, { ports })
  }
  const ports = memoryPorts()
  await handlerOf(1, ports)(kinesisEvent([1]), lambdaContext())
  const [frames] = ports.takeFrames('by-key')
  const upcasts = handlerOf(2, memoryPorts())(frames, lambdaContext())
  await expect(upcasts).rejects.toThrow('keyBy "by-key" answered one and the same record in two ways')
})

test.each(['first', 'second'] as const)(
  'a RetryableError the %s time is no answer: the record comes again',
  async (time) => {
    for (const where of ['eventTime', 'map', 'inSlot', 'output'] as const) {
      calls = 0
      const later = <T>(given: T): T => {
        calls += 1
        if (calls === (time === 'first' ? 1 : 2)) throw new RetryableError('later')
        return given
      }
      const { driver, source, out } = driverOf({ [where]: where === 'eventTime' ? () => later(startMs) : later })
      await driver.send(source, [{ key: 'a', n: 1 }])
      await driver.retry()
      expect([driver.received(out), driver.deadLetters]).toEqual([[{ sum: 1 }], []])
    }
  },
)

test('a step that threw its way past what differs is found by what it handed on', async () => {
  const { driver, source } = driverOf({
    map: (value) => ({ ...value, n: calls++ }),
    filter: () => {
      throw new Error('boom')
    },
  })
  await expect(driver.send(source, [{ key: 'a', n: 1 }])).rejects.toThrow('map answered')
})

test('values that hold functions are told apart by what is made of them', async () => {
  class Amount {
    readonly #n: number
    readonly doubled = () => this.#n * 2
    constructor(n: number) {
      this.#n = n
    }
  }
  const app = new Topology('pure-app')
  const amounts = z.number().transform((n) => ({ plain: () => n, amount: new Amount(n) }))
  const source = app.source('values', amounts as never as Format<number>)
  const out = app.sink<number>('out')
  ;(source as never as Stream<{ plain(): number; amount: Amount }>)
    .map(({ plain, amount }) => plain() + amount.doubled())
    .to(out)
  const driver = new TestDriver(app)
  await driver.send(source, [1, 2])
  expect(driver.received(out)).toEqual([3, 6])
})

test('pure steps keep what one run makes', async () => {
  const { driver, source, out } = driverOf()
  await driver.send(source, [
    { key: 'a', n: 1 },
    { key: 'a', n: 2 },
  ])
  expect(driver.received(out)).toEqual([{ sum: 1 }, { sum: 3 }])
  expect(await driver.stateOf('by-key', 'a')).toEqual({ 'adder.sum': 3, 'adder.byEntry': { 1: 1, 2: 3 } })
})

test('a step that throws each time fails its record, and one that waits goes back', async () => {
  const failing = driverOf({
    output: () => {
      throw new Error('boom')
    },
  })
  await failing.driver.send(failing.source, [{ key: 'a', n: 1 }])
  expect(failing.driver.deadLetters).toMatchObject([{ reason: { message: 'boom' } }])
  const waiting = driverOf({
    output: () => {
      throw new RetryableError('later')
    },
  })
  await waiting.driver.send(waiting.source, [{ key: 'a', n: 1 }])
  expect(waiting.driver.pending('by-key')).toBeGreaterThan(0)
  expect(waiting.driver.deadLetters).toEqual([])
})
