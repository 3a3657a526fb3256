/** Steps that are not pure are refused by name, wherever they stand. */
import { z } from 'zod'
import { ConfigurationError, mapState, RetryableError, Topology, valueState } from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const schema = z.object({ key: z.string(), n: z.number() })
type Value = z.infer<typeof schema>

interface Steps {
  readonly map?: (value: Value) => Value
  readonly filter?: (value: Value) => boolean
  readonly key?: (value: Value) => string
  readonly output?: (sum: number) => number | undefined
  readonly kept?: (sum: number) => number
  readonly entry?: (value: Value) => string
}

function driverOf({
  map = (value) => value,
  filter = () => true,
  key = (value) => value.key,
  output = (sum) => sum,
  kept = (sum) => sum,
  entry = (value) => String(value.n),
}: Steps = {}) {
  const app = new Topology('pure-app')
  const source = app.source('values', schema)
  const out = app.sink<unknown>('out')
  source
    .map(map)
    .filter(filter)
    .keyBy('by-key', key)
    .process('adder', {
      state: { sum: valueState<number>(), byEntry: mapState<number>() },
      step: (given, { state }) => {
        const sum = (state.sum.get() ?? 0) + given.n
        state.sum.set(kept(sum))
        state.byEntry.set(entry(given), sum)
        const put = output(sum)
        return put === undefined ? [] : [{ sum: put }]
      },
    })
    .to(out)
  return { driver: new TestDriver(app), source, out }
}

let calls = 0
beforeEach(() => {
  calls = 0
})

test.each<[string, Steps, string]>([
  ['a map', { map: (value) => ({ ...value, n: calls++ }) }, 'map'],
  ['a filter', { filter: () => calls++ % 2 === 0 }, 'filter'],
  ['a keyed step by its outputs', { output: () => calls++ }, 'process "adder"'],
  ['a keyed step by how many it has', { output: () => (calls++ % 2 === 0 ? 1 : undefined) }, 'process "adder"'],
  ['a keyed step by its state', { kept: () => calls++ }, 'adder.sum'],
  ['a keyed step by its entries', { entry: () => `entry-${calls++}` }, 'adder.byEntry'],
  [
    'a step that throws the second time',
    {
      map: (value) => {
        if (calls++ % 2 === 1) throw new Error('boom')
        return value
      },
    },
    'map answered one and the same record in two ways (it threw the second time)',
  ],
  [
    'a keyed step that throws the second time',
    {
      output: () => {
        if (calls++ % 2 === 1) throw new Error('boom')
        return 1
      },
    },
    'process "adder" answered one and the same record in two ways (it threw the second time)',
  ],
])('%s is refused by name', async (_, steps, named) => {
  const { driver, source, out } = driverOf(steps)
  const sent = driver.send(source, [{ key: 'a', n: 1 }])
  await expect(sent).rejects.toThrow(ConfigurationError)
  await expect(sent).rejects.toThrow(named)
  await expect(sent).rejects.toMatchObject({ code: 'impure-step' })
  expect(driver.received(out)).toEqual([])
  expect(driver.deadLetters).toEqual([])
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
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
