/** The simulator on Kafka's log, commits and rebalances: the same applications and the same referees as on Kinesis. */
import { kafkaFaultKinds } from '../../../lib/testing/simulator/fault-kinds.ts'
import { play } from './simulator-world.ts'

const runs = 10
const from = Number(process.env.MILLRACE_SIM_FROM ?? Math.floor(Date.now() / 1_000) % 1_000_000_000)

test(`fresh seeds ${from} to ${from + runs - 1} keep every promise on Kafka (MILLRACE_SIM_FROM=${from} repeats them)`, async () => {
  const failed: unknown[] = []
  for (let seed = from; seed < from + runs; seed++) {
    const { findings } = await play(seed, { service: 'kafka' })
    if (findings.length > 0) failed.push({ seed, findings })
  }
  expect(failed).toEqual([])
}, 120_000)

test('a seed replays on Kafka: the same events at the same virtual times', async () => {
  const options = { traces: true, service: 'kafka' } as const
  const [one, other] = [await play(7, options), await play(7, options)]
  expect(one.trace.length).toBeGreaterThan(500)
  expect(one.trace).toEqual(other.trace)
}, 60_000)

test('what only Kafka does takes effect in some run', async () => {
  const kinds = ['rebalance', 'batch of several partitions', 'partition added to the source', 'gap in the offsets']
  expect(kinds.every((kind) => kafkaFaultKinds.includes(kind))).toBe(true)
  const notMet = new Set(kinds)
  for (let seed = 0; seed < 60 && notMet.size > 0; seed++) {
    const { met } = await play(seed, { service: 'kafka' })
    for (const kind of notMet) if ((met.get(kind) ?? 0) > 0) notMet.delete(kind)
  }
  expect([...notMet]).toEqual([])
}, 120_000)
