/** Redriven records: the key remembers which it took. */
import { TerminalError } from '../../../lib/index.ts'
import { writeGeneration } from '../../../lib/runtime/progress/generation.ts'
import { adder, adding, value } from './keyed-world.ts'

test('a redriven record changes its key once, however often it is sent again', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1)])
  world.redrive(['x', 'y'], [value('a', 10), value('b', 20)])
  world.redrive(['x'], [value('a', 10)])
  expect(await world.run(world.container())).toBe(3)
  world.redrive(['y', 'x', 'z'], [value('b', 20), value('a', 10), value('a', 100)])
  expect(await world.run(world.container(), 3)).toBe(4)
  expect([await world.stateOf('a'), await world.stateOf('b')]).toMatchObject([
    { 'adder.sum': 111 },
    { 'adder.sum': 20 },
  ])
  expect(received().map((output) => (output as { sum: number }).sum)).toEqual([1, 11, 20, 111])
  expect(world.memory.counted('redrives-dropped')).toBe(3)
})

test('a redriven record that fails again is the same dead letter, and may be sent again', async () => {
  const faults = { on: true }
  const { world } = adder((given, context) => {
    if (faults.on && given.n === 10) throw new Error('boom')
    return adding(given, context)
  })
  world.redrive(['x'], [value('a', 10)])
  await world.drain({ attempts: 1 })
  expect(world.memory.deadLettered).toMatchObject([{ id: 'x', keyed: { number: 1 } }])
  faults.on = false
  world.redrive(['x'], [value('a', 10)])
  world.redrive(['x'], [value('a', 10)])
  expect(await world.run(world.container(), 1)).toBe(3)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 10 })
})

test('a redriven record that was given up before a reset is dropped; dead letters since then say their generation', async () => {
  const { world } = adder((given, context) => {
    if (given.n === 1_000) throw new TerminalError('boom')
    return adding(given, context)
  })
  await writeGeneration(world.store, 'by-key', { generation: 2 }, new AbortController().signal)
  world.redrive(['x', 'y'], [value('a', 1), value('a', 10)])
  world.redrive(['z', 'bad'], [value('a', 100), value('a', 1_000)], 2)
  expect(await world.run(world.container())).toBe(2)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 100 })
  expect(world.memory.counted('redrives-dropped')).toBe(2)
  expect(world.memory.counted('duplicates-dropped')).toBe(0)
  expect(world.memory.deadLettered).toMatchObject([{ id: 'bad', generation: 2 }])
  world.redrive(['later'], [value('a', 1)], 3)
  expect(await world.run(world.container(), 2)).toBe(2)
  expect(world.error).toMatchObject({ code: 'newer-generation' })
})

test('a redriven record is not lost when its attempt is', async () => {
  const { world } = adder()
  world.redrive(['x'], [value('a', 10)])
  world.before = ({ name }) => (name === 'write-progress' ? Promise.reject(new Error('throttled')) : undefined)
  expect(await world.run(world.container())).toBe(0)
  world.before = () => undefined
  expect(await world.run(world.container())).toBe(1)
  expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 10 })
})
