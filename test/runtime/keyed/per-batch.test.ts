/** Operators that emit per batch: of each key only what comes of the last output is published. */
import { z } from 'zod'
import { sideOutput, Topology, valueState } from '../../../lib/index.ts'
import { StageWorld } from '../stage-world.ts'
import { value } from './keyed-world.ts'

function sums() {
  const app = new Topology('sums-app')
  const [out, halves, odd, negative] = [
    app.sink<string>('out'),
    app.sink<number>('halves'),
    app.sink<number>('odd'),
    app.sink<number>('negative'),
  ]
  const steps = app
    .source('values', z.object({ key: z.string(), n: z.number() }))
    .keyBy('by-key', (given) => given.key, { slots: 1 })
    .process('guard', {
      state: { count: valueState<number>() },
      sides: { negative: sideOutput<number>() },
      step: (given, { state, sides }) => {
        state.count.set((state.count.get() ?? 0) + 1)
        if (given.n < 0) sides.negative.emit(given.n)
        return given.n < 0 ? [] : given.n === 7 ? [given, given] : [given]
      },
    })
  steps.sides.negative.to(negative)
  const summed = steps.aggregate(
    'sum',
    { init: () => 0, add: (sum, given) => sum + given.n, result: (sum) => sum },
    { emit: 'per-batch' },
  )
  summed.flatMap((sum) => [`${sum}!`, `${sum}?`]).to(out)
  summed.filter((sum) => sum % 2 === 1).to(odd)
  summed.map((sum) => sum / 2).to(halves)
  const world = new StageWorld(app, 'by-key')
  const received = () => ({
    out: world.memory.received(out),
    halves: world.memory.received(halves),
    odd: world.memory.received(odd),
    negative: world.memory.received(negative),
  })
  return { world, received }
}

test('only what comes of the last output of each key is published, as a whole', async () => {
  const { world, received } = sums()
  world.frame([value('a', 1), value('b', 5), value('a', 2), value('a', 3)])
  expect(await world.run(world.container())).toBe(1)
  expect(received()).toEqual({ out: ['5!', '5?', '6!', '6?'], halves: [2.5, 3], odd: [5], negative: [] })
  expect(await world.stateOf('a')).toEqual({ 'guard.count': 3, sum: 6 })
})

test('an output of which a sink gets nothing replaces the ones before it there too', async () => {
  const { world, received } = sums()
  world.frame([value('a', 1), value('a', 1)])
  await world.run(world.container())
  expect(received()).toMatchObject({ odd: [], halves: [1] })
})

test('of two outputs within one step the last counts', async () => {
  const { world, received } = sums()
  world.frame([value('a', 7)])
  await world.run(world.container())
  expect(received()).toMatchObject({ halves: [7], out: ['14!', '14?'] })
})

test('side outputs, and outputs of other operators, are all published', async () => {
  const { world, received } = sums()
  world.frame([value('a', -1), value('a', 4), value('a', -2)])
  await world.run(world.container())
  expect(received()).toMatchObject({ negative: [-1, -2], halves: [2] })
})

test('each commit of a batch publishes the last outputs so far', async () => {
  const { world, received } = sums()
  world.frame([value('a', 2), value('b', 4), value('a', 2)])
  await world.run(world.container({ mostKeysPerCommit: 1 }))
  expect(received().halves).toEqual([1, 2, 2])
})
