/** Redrive into keyed state, at any moment of a run and killed anywhere: every record has its effects once. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { scratchDirectory } from './dead-letter-world.ts'
import { type Crash, type Part, RedriveWorld } from './redrive-world.ts'

const parts: readonly Part[] = ['decoding', 'feeding step', 'feeding sink', 'half of the feeding sink', 'keyed step']
const crashes: readonly Crash[] = ['before-effect', 'after-effect', 'before-settling', 'after-settling']

type Act =
  | { readonly does: 'send'; readonly count: number }
  | { readonly does: 'run keyed' }
  | { readonly does: 'break' | 'mend'; readonly part: Part; readonly id: number }
  | { readonly does: 'redrive'; readonly elsewhere: boolean; readonly crash: Crash | undefined; readonly at: number }

const id = fc.nat(11)
const part = fc.constantFrom(...parts)
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ does: fc.constant('send'), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ does: fc.constant('run keyed') }),
  fc.record({ does: fc.constantFrom('break', 'mend'), part, id }),
  fc.record({
    does: fc.constant('redrive'),
    elsewhere: fc.boolean(),
    crash: fc.option(fc.constantFrom(...crashes), { nil: undefined }),
    at: fc.nat(4),
  }),
) as fc.Arbitrary<Act>

/** Out of order, around one moment. */
const timeOf = (n: number): number => Date.UTC(2026, 0, 1) + ((n * 7) % 5) * 10

function send(world: RedriveWorld, count: number): Promise<void> {
  const from = world.sent
  return world.send(Array.from({ length: count }, (_, i) => ({ id: String(from + i), time: timeOf(from + i) })))
}

async function perform(world: RedriveWorld, act: Act): Promise<void> {
  if (act.does === 'send') await send(world, act.count)
  else if (act.does === 'run keyed') await world.runKeyed()
  else if (act.does === 'redrive') await world.redrive(act)
  else if (act.does === 'break') world.broken[act.part].add(String(act.id))
  else world.broken[act.part].delete(String(act.id))
}

test('however often, wherever and through whatever deaths dead letters are redriven, each record has each effect once', async () => {
  const scratch = await scratchDirectory()
  let runs = 0
  const property = fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 40 }), async (acts) => {
    const directory = join(scratch.path, String(runs++))
    await mkdir(directory)
    const world = new RedriveWorld(directory)
    // A dead letter of each part at least.
    for (const [index, broken] of parts.entries()) world.broken[broken].add(String(index))
    await send(world, parts.length)
    for (const one of acts) await perform(world, one)
    world.mendAll()
    await world.runKeyed()
    for (let round = 0; (await world.open()).length > 0; round++) {
      expect(round).toBeLessThan(3)
      await world.redrive()
      await world.runKeyed()
    }
    await world.redrive({ elsewhere: true })
    await world.runKeyed()
    // The states of three keys, two outputs of the feeding stage, and three of the keyed one.
    const once = [1, 1, 1, 2, 3]
    const expected = Object.fromEntries(Array.from({ length: world.sent }, (_, i) => [String(i), once]))
    expect(await world.effects()).toEqual(expected)
  })
  try {
    await fc.assert(property, { numRuns: 150 })
  } finally {
    await scratch.remove()
  }
}, 600_000)
