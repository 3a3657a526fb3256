/**
 * Invariants 1, 2 and 5 of keyed-runner.ts (docs/guarantees.md 1, 2 and 6): what is seen at the ports, wherever an attempt
 * ends.
 */
import { once, until } from '../stage-world.ts'
import { adder, value } from './keyed-world.ts'

function twoFrames() {
  const made = adder((given, context) => {
    context.state.byEntry.set(String(given.n), (context.state.byEntry.get(String(given.n)) ?? 0) + 1)
    const sum = (context.state.sum.get() ?? 0) + given.n
    context.state.sum.set(sum)
    return [{ key: context.key, n: given.n, sum }]
  })
  made.world.frame([value('a', 1), value('b', 2), value('a', 3)])
  made.world.frame([value('b', 4), value('c', 5), value('a', 6)])
  return made
}

const expected = [
  { key: 'a', n: 1, sum: 1 },
  { key: 'b', n: 2, sum: 2 },
  { key: 'a', n: 3, sum: 4 },
  { key: 'b', n: 4, sum: 6 },
  { key: 'c', n: 5, sum: 5 },
  { key: 'a', n: 6, sum: 10 },
]

test('a batch is published and delivered, then committed, then progress is written', async () => {
  const { world, received } = twoFrames()
  expect(await world.run(world.container())).toBe(2)
  const effects = world.calls.filter((call) => !call.includes('read'))
  expect(effects.slice(0, 2).toSorted()).toEqual(['publish by-parity', 'sink out'])
  expect(effects.slice(2, 5).toSorted()).toEqual(['commit a@6', 'commit b@4', 'commit c@5'])
  expect(effects.slice(5)).toEqual(['write-progress'])
  expect(received()).toEqual(expected)
  expect(await world.progress()).toMatchObject({ completed: '101', number: 6 })
})

test('an attempt that is killed at any port call, and wakes when another has done its work, changes nothing', async () => {
  let killed = 0
  for (const side of ['before', 'after'] as const) {
    for (let at = 0; at < 100; at++) {
      const { world, received } = twoFrames()
      let calls = 0
      const isOver = () => calls <= at
      world[side] = () => (calls++ === at ? world.sleep() : undefined)
      const options = { mostKeysPerCommit: 2, warmKeys: 0 }
      const attempt = world.run(world.container(options))
      const ended = attempt.then(() => true)
      await Promise.race([ended, until(() => world.sleeping > 0)])
      if (world.sleeping === 0 && isOver()) break
      killed++
      expect(await world.drain(options)).toBe(1)
      world.wake()
      expect(await attempt).toBe(2)
      expect({ side, at, received: received() }).toEqual({ side, at, received: expected })
      expect(world.taken()).toEqual(expected)
      expect([await world.stateOf('a'), await world.stateOf('b'), await world.stateOf('c')]).toEqual([
        { 'adder.sum': 10 },
        { 'adder.sum': 6 },
        { 'adder.sum': 5 },
      ])
    }
  }
  expect(killed).toBeGreaterThan(20)
})

test('a sink that refuses holds back the commits of its batch, and the records come again', async () => {
  const { world, received } = twoFrames()
  let isDown = true
  world.refuse = (sink, given) =>
    sink === 'out' && isDown && (given as { sum: number }).sum === 4
      ? { status: 'retry', error: new Error('the sink is down') }
      : undefined
  expect(await world.run(world.container())).toBe(0)
  expect(world.calls.filter((call) => call.startsWith('commit'))).toEqual([])
  expect(await world.progress()).toEqual({})
  isDown = false
  expect(await world.run(world.container())).toBe(2)
  expect(received()).toHaveLength(6)
})

test('what a sink refuses for good is a dead letter of its own, and its state stands', async () => {
  const { world, received } = twoFrames()
  world.refuse = (sink, given) =>
    sink === 'out' && (given as { sum: number }).sum === 4
      ? { status: 'rejected', error: new Error('the sink takes no fours') }
      : undefined
  expect(await world.run(world.container())).toBe(2)
  expect(received()).toEqual(expected.filter(({ sum }) => sum !== 4))
  expect(world.memory.deadLettered).toMatchObject([
    { reason: { phase: 'sink', message: 'the sink takes no fours' }, keyed: { number: 3, slot: 0, side: 'by-key' } },
  ])
  expect(world.calls.indexOf('dead-letters')).toBeLessThan(world.calls.findIndex((call) => call.startsWith('commit')))
  expect(await world.stateOf('a')).toEqual({ 'adder.sum': 10 })
})

test('dead letters that their sink does not take hold the batch', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  world.append('no frame')
  world.refuse = (sink) => (sink === '' ? { status: 'retry', error: new Error('no room') } : undefined)
  expect(await world.run(world.container())).toBe(0)
  expect(world.calls.filter((call) => call.startsWith('commit'))).toEqual([])
  world.refuse = () => undefined
  expect(await world.run(world.container())).toBe(2)
  expect(world.memory.deadLettered).toHaveLength(1)
})

test('a frame that its stream refuses holds back the commits', async () => {
  const { world } = twoFrames()
  world.before = once(
    ({ name }) => name === 'publish',
    () => Promise.reject(new Error('refused')),
  )
  expect(await world.run(world.container())).toBe(0)
  expect(world.calls.filter((call) => call.startsWith('commit'))).toEqual([])
  expect(await world.run(world.container())).toBe(2)
  expect(world.taken()).toEqual(expected)
})

test.each([1, 2, 3])('cut into commits of %i keys, a batch does the same', async (mostKeysPerCommit) => {
  const { world, received } = twoFrames()
  expect(await world.run(world.container({ mostKeysPerCommit }))).toBe(2)
  expect(received()).toEqual(expected)
  expect(world.calls.filter((call) => call === 'sink out').length).toBe([6, 2, 1][mostKeysPerCommit - 1] ?? 1)
  expect(world.calls.filter((call) => call === 'write-progress')).toHaveLength(1)
})

test('bounded by pending outputs, a batch does the same', async () => {
  const { world, received } = twoFrames()
  expect(await world.run(world.container({ maxPendingOutputs: 2 }))).toBe(2)
  expect(received()).toEqual(expected)
  expect(world.calls.filter((call) => call === 'sink out')).toHaveLength(6)
})

test('where a later commit fails, progress says how far the frame is done, and the next attempt goes on there', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1), value('b', 2), value('c', 3)])
  world.before = once(
    ({ detail }) => detail === 'c@3',
    () => Promise.reject(new Error('throttled')),
  )
  expect(await world.run(world.container({ mostKeysPerCommit: 1 }))).toBe(0)
  expect(await world.progress()).toMatchObject({ number: 0, doneThrough: 2 })
  expect((await world.progress()).completed).toBeUndefined()
  world.calls.length = 0
  expect(await world.run(world.container())).toBe(1)
  expect(world.calls.filter((call) => call.startsWith('commit'))).toEqual(['commit c@3'])
  expect(received()).toHaveLength(3)
  expect(await world.progress()).toMatchObject({ completed: '100', number: 3 })
  // The second attempt goes on behind what progress covers, and can vouch for all of its own.
  expect(world.gaps()).toEqual([])
})

test('an entry that was done by another attempt is not done again', async () => {
  const { world } = twoFrames()
  await world.run(world.container())
  world.calls.length = 0
  expect(await world.run(world.container())).toBe(2)
  expect(world.calls).toEqual(['read-progress'])
})
