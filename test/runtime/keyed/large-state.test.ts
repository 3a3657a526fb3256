/** Invariant 7 of keyed-runner.ts (docs/guarantees.md 10): what does not fit in an item. */
import { z } from 'zod'
import { Topology, valueState } from '../../../lib/index.ts'
import { type Plan, plan, stageNamed } from '../../../lib/plan/plan.ts'
import { createRunner } from '../../../lib/runtime/runner.ts'
import type { ValueState } from '../../../lib/state/states.ts'

import { adder, type Step, value } from './keyed-world.ts'

const growing: Step = (given, { key, state }) => {
  state.blob.set(`${state.blob.get() ?? ''}${'x'.repeat(given.n)}`)
  state.sum.set((state.sum.get() ?? 0) + 1)
  return [{ key, n: given.n }]
}

test('the record that makes an item too large is a dead letter before anything of it is published', async () => {
  const { world, received } = adder(growing)
  world.frame([
    value('a', 100_000),
    value('b', 5),
    value('a', 200_000),
    value('a', 150_000),
    value('b', 6),
    value('a', 7),
  ])
  expect(await world.run(world.container())).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([
    { keyed: { number: 4 }, reason: { code: 'state-too-large', phase: 'step' } },
  ])
  expect(world.memory.deadLettered[0]?.reason.message).toContain('stage "by-key", key "a": the state adder.blob')
  expect(received()).toEqual([
    { key: 'a', n: 100_000 },
    { key: 'b', n: 5 },
    { key: 'a', n: 200_000 },
    { key: 'b', n: 6 },
    { key: 'a', n: 7 },
  ])
  expect(world.taken()).toEqual(received())
  expect([await world.stateOf('a'), await world.stateOf('b')]).toMatchObject([{ 'adder.sum': 3 }, { 'adder.sum': 2 }])
})

test('the batches behind it go on', async () => {
  const { world } = adder(growing)
  const container = world.container()
  world.frame([value('a', 300_000)])
  world.frame([value('a', 100_000)])
  world.frame([value('a', 1), value('b', 1)])
  for (const n of [0, 1, 2]) expect(await world.run(container, n, n + 1)).toBe(n + 1)
  expect(world.memory.deadLettered.map(({ keyed }) => keyed?.number)).toEqual([2])
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 2 })
})

const spreading: Step = (given, { key, state }) => {
  for (let i = 0; i < given.n; i++) state.byEntry.set(`${given.text ?? ''}${i}`, i)
  return [{ key, n: given.n }]
}

test('a record that changes more entries than a transaction holds is a dead letter, and its neighbours are not', async () => {
  const { world, received } = adder(spreading)
  world.frame([value('a', 99), value('a', 100), value('b', 3)])
  expect(await world.run(world.container())).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([{ keyed: { number: 2 }, reason: { code: 'commit-too-large' } }])
  expect(received()).toHaveLength(2)
})

test('a batch that changes more entries of a key than a transaction holds is committed in parts', async () => {
  const { world, received } = adder(spreading)
  const texts = ['p', 'q', 'r', 's']
  world.frame(texts.map((text) => ({ ...value('a', 40), text })))
  world.frame([
    { ...value('a', 49), text: 't' },
    { ...value('a', 60), text: 'u' },
  ])
  expect(await world.run(world.container())).toBe(2)
  expect(world.memory.deadLettered).toEqual([])
  expect(received()).toHaveLength(6)
  const entries = await world.store.listEntries('a', 'adder.byEntry', new AbortController().signal)
  expect(entries.size).toBe(4 * 40 + 49 + 60)
})

test('a value that the table could not return unchanged makes a dead letter that names stage, key and state', async () => {
  const { world } = adder((given, { state }) => {
    state.sum.set(given.n === 2 ? Number.NaN : given.n)
  })
  world.frame([value('a', 1), value('a', 2), value('a', 3)])
  expect(await world.run(world.container())).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([{ keyed: { number: 2 }, reason: { code: 'unsupported-value' } }])
  expect(world.memory.deadLettered[0]?.reason.message).toContain('stage "by-key", key "a": the state adder.sum')
  expect(await world.stateOf('a')).toEqual({ 'adder.sum': 3 })
})

test('a value that its upcaster makes too large is no reason to stand still: the key keeps it as it was', async () => {
  const stage = (state: ValueState<string>) => {
    const app = new Topology('releases')
    const source = app.source('values', z.object({ key: z.string(), n: z.number() }))
    source
      .keyBy('by-key', ({ key }) => key, { slots: 1 })
      .process('adder', {
        state: { blob: state, sum: valueState<number>() },
        step: ({ n }, { state: { blob, sum } }) => {
          if (n > 0) sum.set((sum.get() ?? 0) + n)
          if (blob.get() === undefined) blob.set('x'.repeat(300_000))
        },
      })
      .to(app.sink<never>('out'))
    return plan(app)
  }
  const longer = valueState<string>({ version: 2, upcast: { 1: (old) => `${old}${old}` } })
  const world = adder(growing).world
  const containerOf = (planned: Plan) => createRunner(planned.topology, stageNamed(planned, 'by-key'), world.ports())
  world.frame([value('a', 1)])
  // One that only reads would leave the next one's key too large to give that one up.
  world.frame([value('a', 2), value('b', 3), value('a', 0), value('a', 4)])
  expect(await world.run(containerOf(stage(valueState<string>())), 0, 1)).toBe(1)
  expect(await world.run(containerOf(stage(longer)), 1)).toBe(2)
  expect(world.memory.deadLettered.map(({ keyed, reason }) => [keyed?.number, reason.code])).toEqual(
    [2, 4, 5].map((number) => [number, 'state-too-large']),
  )
  expect(await world.stateOf('a')).toEqual({ 'adder.blob': 'x'.repeat(300_000), 'adder.sum': 1 })
  expect(await world.positionOf('a')).toBe(5)
})
