/** docs/guarantees.md 11: operator states are one value per slot, whatever becomes of attempts and of the records' own steps. */

import { z } from 'zod'
import { operatorState, TerminalError, Topology, valueState } from '../../../lib/index.ts'
import { once, StageWorld, until } from '../stage-world.ts'
import { value } from './keyed-world.ts'

/** Tells how many records the slot has seen; `n` of 13 fails, of 14 never succeeds, of 15 cannot be added. */
function counting() {
  const app = new Topology('counting-app')
  const out = app.sink<unknown>('out')
  app
    .source('values', z.object({ key: z.string(), n: z.number() }))
    .keyBy('by-key', (given) => given.key, { slots: 1 })
    .process('counter', {
      state: {
        mine: valueState<number>(),
        all: operatorState({
          initial: 0,
          add: (count: number, given: { readonly n: number }) => {
            if (given.n === 15) throw new TerminalError('it does not add up')
            if (given.n === 16) return Number.POSITIVE_INFINITY
            return count + 1
          },
        }),
      },
      step: (given, { key, state }) => {
        if (given.n === 13) throw new Error('unlucky')
        if (given.n === 14) throw new TerminalError('never')
        state.mine.set((state.mine.get() ?? 0) + 1)
        return [`${key}: ${state.mine.get()} of ${state.all.get()}`]
      },
    })
    .to(out)
  const world = new StageWorld(app, 'by-key')
  return { world, received: () => world.memory.received(out) }
}

const statesOf = async (world: StageWorld) => (await world.progress()).operatorStates

test('steps see the state of the slot with their own record', async () => {
  const { world, received } = counting()
  world.frame([value('a', 1), value('b', 1)])
  world.frame([value('a', 1), value('c', 1)])
  for (const from of [0, 1]) await world.run(world.container(), from, from + 1)
  expect(received()).toEqual(['a: 1 of 1', 'b: 1 of 2', 'a: 2 of 3', 'c: 1 of 4'])
  expect(await statesOf(world)).toEqual({ 0: { 'counter.all': 4 } })
})

test('each record counts once, dead letters included, however often it is tried', async () => {
  const { world, received } = counting()
  world.frame([value('a', 1), value('b', 13), value('a', 14), value('c', 1)])
  world.frame([value('c', 1)])
  expect(await world.drain({ attempts: 2, mostKeysPerCommit: 1 })).toBe(3)
  expect(world.memory.deadLettered).toHaveLength(2)
  expect(received()).toEqual(['a: 1 of 1', 'c: 1 of 4', 'c: 2 of 5'])
  expect(await statesOf(world)).toEqual({ 0: { 'counter.all': 5 } })
})

test('a record that cannot be added fails itself, and leaves the state as it was', async () => {
  const { world, received } = counting()
  world.frame([value('a', 1), value('b', 15), value('a', 16), value('c', 1)])
  expect(await world.drain()).toBe(1)
  expect(world.memory.deadLettered.map(({ reason }) => reason.code)).toEqual(['terminal', 'unsupported-value'])
  expect(received()).toEqual(['a: 1 of 1', 'c: 1 of 2'])
  expect(await statesOf(world)).toEqual({ 0: { 'counter.all': 2 } })
})

test('conflicts and restarts count nothing twice', async () => {
  const { world, received } = counting()
  world.frame([value('a', 1), value('b', 1)])
  world.frame([value('a', 1), value('b', 1)])
  world.before = once(({ name }) => name === 'commit', world.sleep)
  const attempt = world.run(world.container(), 0, 2)
  await until(() => world.sleeping > 0)
  expect(await world.run(world.container(), 0, 1)).toBe(1)
  world.wake()
  expect(await attempt).toBe(1)
  expect(await world.drain()).toBe(1)
  expect(received()).toEqual(['a: 1 of 1', 'b: 1 of 2', 'a: 2 of 3', 'b: 2 of 4'])
  expect(await statesOf(world)).toEqual({ 0: { 'counter.all': 4 } })
})

test('an entry that is done in part goes on with the state that its records had made', async () => {
  const { world, received } = counting()
  world.frame([value('a', 1), value('b', 1), value('c', 1)])
  world.before = once(
    ({ detail }) => detail === 'c@3',
    () => Promise.reject(new Error('throttled')),
  )
  expect(await world.run(world.container({ mostKeysPerCommit: 1 }))).toBe(0)
  expect(await statesOf(world)).toBeUndefined()
  expect(await world.run(world.container())).toBe(1)
  expect(received()).toEqual(['a: 1 of 1', 'b: 1 of 2', 'c: 1 of 3'])
  expect(await statesOf(world)).toEqual({ 0: { 'counter.all': 3 } })
})
