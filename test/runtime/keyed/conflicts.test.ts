/** Invariant 3 of keyed-runner.ts (docs/guarantees.md 3): whoever loses a commit goes on from what the winner left. */
import { comparePositions, ownPosition } from '../../../lib/runtime/frames/position.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { once, until } from '../stage-world.ts'
import { adder, value } from './keyed-world.ts'

const commitOf = (key: string) => (call: { readonly name: string; readonly detail: string }) =>
  call.name === 'commit' && call.detail.startsWith(key)

/** One attempt sleeps before its first commit while `meanwhile` runs; then it wakes and ends. */
async function asleepAtCommit(
  { world }: ReturnType<typeof adder>,
  meanwhile: () => Promise<unknown>,
  to = world.log.length,
): Promise<number> {
  world.before = ({ name }) => (name === 'commit' ? world.sleep() : undefined)
  const attempt = world.run(world.container(), 0, to)
  await until(() => world.sleeping > 0)
  world.before = () => undefined
  await meanwhile()
  world.wake()
  return attempt
}

test('a commit whose answer was lost is taken for done when it is found', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1), value('a', 2)])
  world.after = once(commitOf('a'), () => Promise.reject(new Error('the answer was lost')))
  expect(await world.run(world.container())).toBe(0)
  expect(await world.run(world.container())).toBe(1)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 3 })
  expect(received()).toHaveLength(2)
})

test('another attempt that is ahead on all keys leaves nothing to do', async () => {
  const made = adder()
  made.world.frame([value('a', 1), value('b', 2), value('a', 3)])
  expect(await asleepAtCommit(made, () => made.world.run(made.world.container()))).toBe(1)
  expect(made.world.memory.counted('commit-conflicts')).toBe(2)
  expect([await made.world.stateOf('a'), await made.world.stateOf('b')]).toMatchObject([
    { 'adder.sum': 4 },
    { 'adder.sum': 2 },
  ])
  expect(made.received()).toHaveLength(3)
})

test('another attempt that is ahead on some keys, in the middle of a batch, is gone on from', async () => {
  const made = adder()
  const { world } = made
  world.frame([value('a', 1), value('b', 1)])
  world.frame([value('a', 10), value('b', 10), value('c', 10)])
  world.frame([value('a', 100), value('c', 100)])
  // The other one does the first two frames, this one all three.
  expect(await asleepAtCommit(made, () => world.run(world.container(), 0, 2))).toBe(2)
  expect(await world.drain()).toBe(1)
  expect([await world.stateOf('a'), await world.stateOf('b'), await world.stateOf('c')]).toMatchObject([
    { 'adder.sum': 111 },
    { 'adder.sum': 11 },
    { 'adder.sum': 110 },
  ])
  expect(made.received().map((output) => (output as { sum: number }).sum)).toEqual([1, 1, 11, 11, 10, 111, 110])
  expect(world.taken()).toEqual(made.received())
})

test('a zombie with a larger batch that wakes late takes nothing back', async () => {
  const made = adder()
  const { world } = made
  for (const n of [1, 2, 3, 4]) world.frame([value('a', n)])
  const meanwhile = async () => {
    expect(await world.run(world.container(), 0, 1)).toBe(1)
    expect(await world.run(world.container(), 1, 4)).toBe(4)
  }
  expect(await asleepAtCommit(made, meanwhile, 2)).toBe(2)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 10 })
  expect(await world.progress()).toMatchObject({ completed: '103', number: 4 })
})

test('what was found ahead of progress claims nothing but itself, so the next stage loses none of what the other sent', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1), value('b', 2)])
  world.frame([value('b', 3), value('a', 4)])
  // The other attempt commits all of b, which is at 3, and is killed before a is committed.
  world.before = once(commitOf('a'), world.sleep)
  void world.run(world.container())
  await until(() => world.sleeping > 0 && world.calls.some((call) => call === 'commit b@3'))
  world.frames.length = 0
  expect(await world.drain()).toBe(1)
  expect(world.taken()).toEqual(received())
  expect(received()).toHaveLength(4)
  // What b sent at 2 and 3 was computed by the other attempt alone.
  const claims = world.frames.flatMap((frame) => frame.claims)
  const claimed = [1, 2, 3, 4].filter((number) =>
    claims.some(
      ({ previous, last }) =>
        comparePositions(previous, ownPosition(number, 0)) < 0 && comparePositions(ownPosition(number, 0), last) <= 0,
    ),
  )
  expect(claimed).toEqual([1, 4])
})

test('a torn entry is not believed: the key is read again, and what the other attempt did counts', async () => {
  const step: Parameters<typeof adder>[0] = (given, { key, state }) => {
    const count = (state.byEntry.get('all') ?? 0) + given.n
    state.byEntry.set('all', count)
    return [{ key, n: given.n, sum: count }]
  }
  for (const prefetch of [undefined, () => ({ byEntry: ['all'] })]) {
    const { world, received } = adder(step, prefetch && { prefetch })
    world.frame([value('a', 1)])
    await world.run(world.container())
    world.frame([value('a', 10)])
    world.frame([value('a', 100)])
    // Between the key's item and its entry another attempt commits.
    world.before = once(({ name }) => name === 'read-entries', world.sleep)
    const attempt = world.run(world.container(), 1, 3)
    await until(() => world.sleeping > 0)
    expect(await world.run(world.container(), 1, 2)).toBe(2)
    world.wake()
    expect(await attempt).toBe(2)
    expect(await world.run(world.container(), 2, 3)).toBe(3)
    expect((await world.store.listEntries('a', 'adder.byEntry', new AbortController().signal)).get('all')?.value).toBe(
      111,
    )
    expect(received().map((output) => (output as { sum: number }).sum)).toEqual([1, 11, 111])
    expect(world.taken()).toEqual(received())
  }
})

test('an entry that outlived its key counts as absent when the same key item is read twice', async () => {
  const { world, received } = adder((given, { state }) => {
    const before = state.byEntry.get('all')
    state.byEntry.set('all', given.n)
    return [{ before: before ?? 'none' }]
  })
  world.frame([value('a', 1)])
  await world.run(world.container())
  // TTL took the newer key item first: the entry that it was committed with is still there.
  const ports = world.ports()
  const reading = {
    ...(ports.state?.('by-key') as StateStore),
    readEntries: async () => [{ position: 9_999, value: 77 }],
  }
  world.frame([value('a', 2)])
  expect(await world.run(world.container({}, { state: () => reading }), 1)).toBe(2)
  expect(received()).toEqual([{ before: 'none' }, { before: 'none' }])
})

test('a key that moves while a step loads more of it is gone on from, in the middle of the batch', async () => {
  const { world, received } = adder((given, { key, state }) => {
    const sum = (state.sum.get() ?? 0) + given.n
    state.sum.set(sum)
    // Only the last frame's record asks for an entry.
    if (given.n >= 100) state.byEntry.set('big', (state.byEntry.get('big') ?? 0) + 1)
    return [{ key, n: given.n, sum }]
  })
  world.frame([value('a', 1)])
  await world.run(world.container())
  world.frame([value('a', 10), value('a', 20)])
  world.frame([value('a', 100), value('a', 200)])
  world.before = once(({ name }) => name === 'read-entries', world.sleep)
  const attempt = world.run(world.container(), 1, 3)
  await until(() => world.sleeping > 0)
  expect(await world.run(world.container(), 1, 3)).toBe(3)
  world.wake()
  expect(await attempt).toBe(3)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 331 })
  expect(received().map((output) => (output as { sum: number }).sum)).toEqual([1, 11, 31, 131, 331])
  expect(world.taken()).toEqual(received())
})

test('progress that another attempt wrote meanwhile decides the answer', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  world.frame([value('a', 2)])
  world.before = once(({ name }) => name === 'write-progress', world.sleep)
  const attempt = world.run(world.container(), 0, 1)
  await until(() => world.sleeping > 0)
  expect(await world.run(world.container(), 0, 2)).toBe(2)
  world.wake()
  expect(await attempt).toBe(1)
  expect(await world.progress()).toMatchObject({ completed: '101', number: 2 })
})

test('progress whose answer was lost is read again, and the batch is done', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  world.after = once(
    ({ name }) => name === 'write-progress',
    () => Promise.reject(new Error('lost')),
  )
  expect(await world.run(world.container())).toBe(1)
})

test('progress that was not written goes back with the reason', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  world.before = once(
    ({ name }) => name === 'write-progress',
    () => Promise.reject(new Error('no access to the table')),
  )
  expect(await world.run(world.container())).toBe(0)
  expect(String(world.error)).toContain('no access to the table')
})
