import { play } from './simulator-world.ts'

/** How many seeds each run of the tests plays; CI plays thousands with `npm run sim`. */
const runs = 20
const from = Number(process.env.MILLRACE_SIM_FROM ?? Math.floor(Date.now() / 1_000) % 1_000_000_000)

test(`fresh seeds ${from} to ${from + runs - 1} keep every promise (MILLRACE_SIM_FROM=${from} repeats them)`, async () => {
  const failed: unknown[] = []
  for (let seed = from; seed < from + runs; seed++) {
    const { findings } = await play(seed)
    if (findings.length > 0) failed.push({ seed, findings })
  }
  expect(failed).toEqual([])
}, 120_000)

test.each([
  [8, 'without time'],
  [7, 'with time'],
])(
  'seed %i, %s, replays: the same events at the same virtual times',
  async (seed) => {
    const [one, other] = [await play(seed, { traces: true }), await play(seed, { traces: true })]
    expect(one.trace.length).toBeGreaterThan(500)
    expect(one.trace).toEqual(other.trace)
  },
  60_000,
)
