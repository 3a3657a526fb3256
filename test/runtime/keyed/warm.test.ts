/** Invariant 6 of keyed-runner.ts (docs/guarantees.md 9): warm drafts. */
import { once, until } from '../stage-world.ts'
import { adder, value } from './keyed-world.ts'

const reads = (calls: readonly string[]) => calls.filter((call) => call.startsWith('read-keys'))

test('a container reads a key once while nobody else writes', async () => {
  const { world } = adder()
  const container = world.container()
  for (const n of [1, 2, 3]) {
    world.frame([value('a', n), value('b', n)])
    await world.run(container, world.log.length - 1)
  }
  expect(reads(world.calls)).toEqual(['read-keys a,b'])
  expect(world.memory.counted('keys-cached')).toBe(4)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 6 })
})

test('a container whose progress another has written since reads again', async () => {
  const { world } = adder()
  const [one, two] = [world.container(), world.container()]
  for (const [n, container] of [one, two, one, two, two].entries()) {
    world.frame([value('a', 10 ** n)])
    await world.run(container, n)
  }
  expect(reads(world.calls)).toHaveLength(4)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 11111 })
})

test('a container whose batch failed ahead of its commits starts cold', async () => {
  const { world, received } = adder()
  const container = world.container()
  world.frame([value('a', 1)])
  await world.run(container)
  world.frame([value('a', 10)])
  world.before = once(
    ({ name }) => name === 'commit',
    () => Promise.reject(new Error('throttled')),
  )
  expect(await world.run(container, 1)).toBe(1)
  expect(await world.run(container, 1)).toBe(2)
  expect(reads(world.calls)).toHaveLength(2)
  expect(received()).toEqual([
    { key: 'a', n: 1, sum: 1 },
    { key: 'a', n: 10, sum: 11 },
  ])
})

test('a zombie that committed beyond the progress of a warm container is found by its conflict', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1)])
  world.frame([value('a', 10)])
  // The zombie has both frames, and sleeps until the other container has done the first.
  world.before = once(({ name }) => name === 'commit', world.sleep)
  const zombie = world.run(world.container(), 0, 2)
  await until(() => world.sleeping > 0)
  const container = world.container()
  expect(await world.run(container, 0, 1)).toBe(1)
  world.wake()
  expect(await zombie).toBe(1)
  expect(await world.positionOf('a')).toBe(2)
  expect(await world.run(container, 1, 2)).toBe(2)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 11 })
  expect(received()).toHaveLength(2)
  expect(world.taken()).toEqual(received())
})

test('without a cache every batch reads', async () => {
  const { world } = adder()
  const container = world.container({ warmKeys: 0 })
  for (const n of [0, 1]) {
    world.frame([value('a', n)])
    await world.run(container, n)
  }
  expect(reads(world.calls)).toHaveLength(2)
})

test('a full cache keeps the keys of the last batches', async () => {
  const { world } = adder()
  const container = world.container({ warmKeys: 2 })
  for (const [n, key] of ['a', 'b', 'c', 'c', 'a'].entries()) {
    world.frame([value(key, 1)])
    await world.run(container, n)
  }
  expect(reads(world.calls)).toEqual(['read-keys a', 'read-keys b', 'read-keys c', 'read-keys a'])
})

test('keys that a failing record was behind stay warm', async () => {
  const { world } = adder((given, { state }) => {
    if (given.n === 13) throw new Error('unlucky')
    state.sum.set((state.sum.get() ?? 0) + given.n)
  })
  const container = world.container({ attempts: 1 })
  world.frame([value('a', 1), value('b', 13)])
  expect(await world.run(container)).toBe(0)
  expect(await world.run(container)).toBe(1)
  expect(reads(world.calls)).toEqual(['read-keys a,b'])
})
