import { seconds } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { operatorState, valueState } from '../../lib/state/states.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { type Ride, rides } from './rides.ts'

const rideOf = (driver: string, city: string, km = 1): Ride => ({ driver, city, km })

function world() {
  const parts = rides()
  return { ...parts, faults: parts.world, driver: new TestDriver(parts.app) }
}

test('one send runs every stage that it reaches, over several shards, to the sinks', async () => {
  const { driver, source, drivers, cities } = world()
  const many = Array.from({ length: 40 }, (_, i) => rideOf(`driver-${i}`, i % 2 === 0 ? 'Bern' : 'Chur'))
  await driver.send(source, many)
  expect(driver.received(drivers)).toHaveLength(40)
  expect(driver.received(cities).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 40 }, (_, i) => Math.floor(i / 2) + 1),
  )
  await driver.send(source, [rideOf('driver-7', 'Chur', 4)])
  expect(driver.received(drivers).at(-1)).toEqual({ driver: 'driver-7', city: 'Chur', km: 5 })
  expect(driver.received(cities).at(-1)).toBe(21)
})

test("shows a key's state by stored name, maps by entry, without the attributes of the runner", async () => {
  const { driver, source } = world()
  await driver.send(source, [rideOf('ann', 'Bern', 2), rideOf('ann', 'Chur', 3), rideOf('ann', 'Bern', 5)])
  expect(await driver.stateOf('by-driver', 'ann')).toEqual({
    'driver-state.last': 'Bern',
    'driver-state.kmByCity': { Bern: 7, Chur: 3 },
  })
  expect(await driver.stateOf('by-city', 'Bern')).toEqual({ 'rides-per-city': 2 })
  expect(await driver.stateOf('by-driver', 'nobody')).toEqual({})
})

test('refuses to show the state of a stage that has no keys', async () => {
  const { driver } = world()
  await expect(driver.stateOf('rides', 'ann')).rejects.toThrow(
    'stage "rides" of topology "rides-app" keeps no keys: ask for a stage of "by-driver", "by-city".',
  )
  await expect(driver.stateOf('by-town', 'ann')).rejects.toThrow(ConfigurationError)
})

test('what goes back stays pending with what is behind it, in its shard of the keyed stage', async () => {
  const { driver, source, drivers, faults, later } = world()
  faults.fault = later()
  for (const city of ['Bern', 'Trouble', 'Chur']) await driver.send(source, [rideOf('ann', city)])
  expect([driver.pending(source), driver.pending('by-driver')]).toEqual([0, 2])
  expect(driver.received(drivers).map(({ city }) => city)).toEqual(['Bern'])
  faults.fault = undefined
  await driver.retry()
  expect(driver.pending('by-driver')).toBe(0)
  expect(driver.received(drivers).map(({ city }) => city)).toEqual(['Bern', 'Trouble', 'Chur'])
  expect(driver.deadLetters).toEqual([])
})

test('a keyed step that keeps throwing is tried as Lambda would, until the record is a dead letter', async () => {
  const { driver, source, drivers, faults } = world()
  faults.fault = new Error('no such city')
  await driver.send(source, [rideOf('ann', 'Bern'), rideOf('ann', 'Trouble'), rideOf('ann', 'Chur')])
  expect(driver.deadLetters).toMatchObject([{ reason: { message: 'no such city', attempts: 3 } }])
  expect(driver.received(drivers).map(({ city }) => city)).toEqual(['Bern', 'Chur'])
  expect(driver.pending('by-driver')).toBe(0)
  expect(await driver.stateOf('by-driver', 'ann')).toEqual({
    'driver-state.last': 'Chur',
    'driver-state.kmByCity': { Bern: 1, Chur: 1 },
  })
})

test('a step that throws in its first attempt is done in the second, without a dead letter', async () => {
  const { driver, source, drivers, faults } = world()
  faults.fault = new Error('once')
  // Each attempt runs the step twice.
  faults.times = 2
  await driver.send(source, [rideOf('ann', 'Trouble')])
  expect(driver.deadLetters).toEqual([])
  expect(driver.received(drivers).map(({ city }) => city)).toEqual(['Trouble'])
})

test('an impure keyed step is refused by name', async () => {
  const app = new Topology('impure')
  const source = app.source('lines', text())
  const out = app.sink<number>('out')
  let calls = 0
  source
    .keyBy('by-line', (line) => line)
    .process('counting', {
      state: { seen: valueState<boolean>() },
      step(_, { state }) {
        state.seen.set(true)
        calls += 1
        return [calls]
      },
    })
    .to(out)
  await expect(new TestDriver(app).send(source, ['a'])).rejects.toThrow(/"counting" answered one and the same record/)
})

test('a state of the slot counts the records of all its keys, and time is moved as before', async () => {
  const app = new Topology('slots')
  const source = app.source('lines', text())
  const out = app.sink<string>('out')
  source
    .keyBy('by-line', (line) => line, { slots: 1 })
    .process('counting', {
      state: { last: valueState<number>(), inSlot: operatorState({ initial: 0, add: (count: number) => count + 1 }) },
      step(line, { state, record }) {
        state.last.set(record.arrivalTimeMs)
        return [`${line} ${state.inSlot.get()}`]
      },
    })
    .to(out)
  const driver = new TestDriver(app, { nowMs: 1_000 })
  await driver.send(source, ['a', 'b', 'a'])
  await driver.advanceProcessingTime(seconds(5))
  await driver.send(source, ['b'])
  expect(driver.received(out)).toEqual(['a 1', 'b 2', 'a 3', 'b 4'])
  expect(await driver.stateOf('by-line', 'a')).toEqual({ 'counting.last': 1_000 })
  expect(await driver.stateOf('by-line', 'b')).toEqual({ 'counting.last': 6_000 })
})
