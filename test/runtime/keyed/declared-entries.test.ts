/** Entries of map states that a step declares ahead are loaded with the batch; others when the step asks for them. */
import { adder, type KeyedOptions, type Step, value } from './keyed-world.ts'

const step: Step = (given, { key, state }) => {
  const count = (state.byEntry.get(String(given.n)) ?? 0) + 1
  state.byEntry.set(String(given.n), count)
  return [{ key, n: given.n, count }]
}

/** Two keys with twenty entries each, and a batch for a cold container that touches them all again. */
async function secondBatch(options: KeyedOptions) {
  const { world, received } = adder(step, options)
  const batch = Array.from({ length: 40 }, (_, i) => value(i % 2 === 0 ? 'a' : 'b', i >> 1))
  world.frame(batch)
  await world.run(world.container())
  world.calls.length = 0
  world.frame(batch)
  await world.run(world.container(), 1)
  const reads = world.calls.filter((call) => call.startsWith('read-entries')).length
  return { reads, counts: received().map((output) => (output as { count: number }).count) }
}

const everyEntryTwice = [...new Array<number>(40).fill(1), ...new Array<number>(40).fill(2)]

test('all that a batch declares is read in one call, before its steps', async () => {
  const { reads, counts } = await secondBatch({ prefetch: ({ n }) => ({ byEntry: [String(n)] }) })
  expect(counts).toEqual(everyEntryTwice)
  expect(reads).toBe(1)
})

test('what is not declared is read as the steps come to it, with the same results', async () => {
  const { reads, counts } = await secondBatch({})
  expect(counts).toEqual(everyEntryTwice)
  expect(reads).toBe(40)
})
