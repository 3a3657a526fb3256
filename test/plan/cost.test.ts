/** What a topology costs, against numbers that were worked out by hand. */
import { costLines } from '../../bin/cli/plan-cost.ts'
import { plan, Topology, text } from '../../lib/index.ts'
import { costOf, flinkIsCheaperFrom } from '../../lib/plan/cost.ts'

/** `lines` feeds `by-line`, unless it is to keep nothing. */
function application(isKeyed: boolean) {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  const source = app.source('lines', text())
  if (isKeyed)
    source
      .keyBy('by-line', (line) => line)
      .reduce('last', (_, next) => next, { emit: 'per-batch' })
      .to(out)
  else source.to(out)
  return plan(app)
}

const partsOf = (isKeyed: boolean, load: Parameters<typeof costOf>[1]) => {
  const { parts, ...totals } = costOf(application(isKeyed), load)
  const byPart = Object.fromEntries(parts.map(({ part, ...dollars }) => [part, dollars]))
  return { byPart, ...totals }
}

// A month has 2,628,000 seconds.
test('a keyed application at 1,000 records a second', () => {
  const { byPart, atRest, atRate, flink } = partsOf(true, { rate: 1_000, collapse: 2, stateGb: 10 })
  // Four shards, one invocation a second each, of both stages: 21.024 million of them.
  // feeding: 4 x 30 ms + 1,000 x 0.03 ms = 0.15 s a second; keyed: 4 x 30 ms + 1,000 x 0.15 ms = 0.27 s; 0.42 s x 0.5 GB.
  expect(byPart.Lambda?.atRate).toBeCloseTo(21.024 * 0.2 + 0.21 * 2_628_000 * 0.0000133334, 6)
  expect(byPart.Lambda?.atRest).toBe(0)
  // 1,000 KB a second are 2,506.2561 GB a month in and out, and 494.3848 GB that are kept longer than a day.
  expect(byPart.Kinesis?.atRest).toBeCloseTo(29.2, 6)
  expect(byPart.Kinesis?.atRate).toBeCloseTo(29.2 + 2_506.2561 * 0.12 + 494.3848 * 0.1, 3)
  // Progress: 21.024 million; keys: 1,000 / 2 a second are 1,314 million.
  expect(byPart['DynamoDB writes']?.atRate).toBeCloseTo(1_335.024 * 0.625, 6)
  expect(byPart['DynamoDB reads']?.atRate).toBeCloseTo(1_335.024 * 0.125, 6)
  expect(byPart['DynamoDB storage']).toEqual({ atRest: 4.5, atRate: 4.5 })
  // 25 alarms and a dashboard; 30 metrics; 21.024 million lines of 1.2 KB are 24.0601 GB.
  expect(byPart.CloudWatch?.atRest).toBeCloseTo(5.5, 6)
  expect(byPart.CloudWatch?.atRate).toBeCloseTo(5.5 + 9 + 24.0601 * 0.5, 3)
  // 43,800 rounds of 0.2 s at 0.25 GB, which read the progress of 8 shards.
  expect(byPart.announcer?.atRest).toBeCloseTo(0.0438 * 0.2 + 2_190 * 0.0000133334 + 0.3504 * 0.125, 6)
  expect(atRest).toBeCloseTo(29.2 + 4.5 + 5.5 + 0.08176, 3)
  expect(atRate).toBeCloseTo(
    Object.values(byPart).reduce((sum, part) => sum + part.atRate, 0),
    6,
  )
  // One unit and one that steers it, 50 GB.
  expect(flink).toBeCloseTo(2 * 0.11 * 730 + 5, 6)
})

test('what keeps nothing pays for invocations and what watches them alone', () => {
  const { byPart, atRest } = partsOf(false, { rate: 2, collapse: 1, stateGb: 10 })
  // Two records a second come in two invocations: 5.256 million, of 30.03 ms.
  expect(byPart.Lambda?.atRate).toBeCloseTo(5.256 * 0.2 + 5_256_000 * 0.03003 * 0.5 * 0.0000133334, 6)
  expect(byPart.CloudWatch?.atRest).toBeCloseTo(3.6, 6)
  for (const part of ['Kinesis', 'DynamoDB writes', 'DynamoDB reads', 'DynamoDB storage', 'announcer']) {
    expect(byPart[part]).toEqual({ atRest: 0, atRate: 0 })
  }
  expect(atRest).toBeCloseTo(3.6, 6)
})

test('where batches are full there are more invocations than shards', () => {
  const { byPart } = partsOf(false, { rate: 10_000, collapse: 1, stateGb: 0 })
  // 10 shards, but 20 batches of 500: 52.56 million invocations; 20 x 30 ms + 10,000 x 0.03 ms.
  expect(byPart.Lambda?.atRate).toBeCloseTo(52.56 * 0.2 + 0.9 * 2_628_000 * 0.5 * 0.0000133334, 6)
})

test('provisioned pollers are paid by the hour, a unit for each group, and more for more than 20 MB a second', () => {
  const at = (rate: number, pollerGroups: number) =>
    partsOf(false, { rate, collapse: 1, stateGb: 0, pollerGroups }).byPart['Kafka pollers']
  // 730 hours of $0.185.
  expect(at(100, 1)).toEqual({ atRest: 135.05, atRate: 135.05 })
  expect(at(100, 2)).toEqual({ atRest: 270.1, atRate: 270.1 })
  // 48.8 MB a second take three units.
  expect(at(50_000, 1)?.atRate).toBeCloseTo(405.15, 6)
  expect(at(50_000, 1)?.atRest).toBe(135.05)
})

test('who has no such pollers is told of none', () => {
  const { byPart } = partsOf(true, { rate: 100, collapse: 1, stateGb: 1 })
  expect(byPart).not.toHaveProperty(['Kafka pollers'])
})

test('a keyed stage on a topic costs nothing of Kinesis, and a unit of progress in each of its partitions', () => {
  const load = { rate: 1_000, collapse: 2, stateGb: 10, keyedLogs: 'topics' } as const
  const { byPart, atRest, atRate } = partsOf(true, load)
  expect(byPart).not.toHaveProperty(['Kinesis'])
  expect(byPart).not.toHaveProperty(['Kafka pollers'])
  // Four invocations a second of the feeding stage, 16 of the keyed one: 52.56 million.
  // feeding: 4 x 30 ms + 1,000 x 0.03 ms; keyed: 16 x 30 ms + 1,000 x 0.15 ms; 0.78 s x 0.5 GB.
  expect(byPart.Lambda?.atRate).toBeCloseTo(52.56 * 0.2 + 0.39 * 2_628_000 * 0.0000133334, 6)
  // Progress: 52.56 million; keys: 1,314 million.
  expect(byPart['DynamoDB writes']?.atRate).toBeCloseTo(1_366.56 * 0.625, 6)
  // The announcer reads 4 + 16 partitions in each of 43,800 rounds.
  expect(byPart.announcer?.atRest).toBeCloseTo(0.0438 * 0.2 + 2_190 * 0.0000133334 + 0.876 * 0.125, 6)
  const sumOf = (when: 'atRest' | 'atRate') => Object.values(byPart).reduce((sum, part) => sum + part[when], 0)
  expect([atRest, atRate]).toEqual([expect.closeTo(sumOf('atRest'), 6), expect.closeTo(sumOf('atRate'), 6)])
  // What a keyed stage reads goes through its pollers, too: 39.1 MB a second take two units, 19.5 one.
  const unitsOf = (keyedLogs: 'streams' | 'topics') =>
    partsOf(true, { ...load, rate: 20_000, keyedLogs, pollerGroups: 1 }).byPart['Kafka pollers']?.atRate
  expect([unitsOf('streams'), unitsOf('topics')]).toEqual([135.05, 270.1])
})

test('the lines say what is counted in place of Kinesis, and what is not priced', () => {
  const load = { rate: 100, collapse: 1, stateGb: 1, keyedLogs: 'topics' } as const
  const onDemand = costLines(application(true), load)
  expect(onDemand.filter((line) => line.startsWith('Kinesis'))).toEqual([])
  expect(onDemand.at(-2)).toBe(
    'Keyed stages read Kafka topics, so no Kinesis is counted: their pollers are on demand, which cost nothing of their own (--poller-groups counts provisioned ones), and what the cluster charges for brokers and what they keep is not priced.',
  )
  const provisioned = costLines(application(true), { ...load, pollerGroups: 2 })
  expect(provisioned).toContainEqual(expect.stringMatching(/^Kafka pollers +270\.10 +270\.10$/))
  expect(provisioned.at(-2)).toContain('their pollers are counted as provisioned, in the groups that were said, and')
})

test('Managed Flink is cheaper from the rate on at which it is, and not below', () => {
  const planned = application(true)
  const load = { collapse: 1, stateGb: 1 }
  const rate = flinkIsCheaperFrom(planned, load) as number
  const differenceAt = (factor: number): number => {
    const { flink, atRate } = costOf(planned, { ...load, rate: rate * factor })
    return flink - atRate
  }
  expect(differenceAt(1)).toBeLessThan(0)
  expect(differenceAt(0.98)).toBeGreaterThan(0)
  expect(flinkIsCheaperFrom(planned, { collapse: 100, stateGb: 1 })).toBeGreaterThan(rate)
  expect(flinkIsCheaperFrom(planned, { collapse: 1, stateGb: 1_000 })).toBe(0)
})

test('the table is aligned, and says where its prices come from', () => {
  const lines = costLines(application(true), { rate: 1_000, collapse: 2, stateGb: 10 })
  expect(lines.slice(0, 10)).toEqual([
    'dollars a month   at rest  at 1,000/s',
    'Lambda               0.00       11.56',
    'Kinesis             29.20      379.39',
    'DynamoDB writes      0.00      834.39',
    'DynamoDB reads       0.00      166.88',
    'DynamoDB storage     4.50        4.50',
    'CloudWatch           5.50       26.53',
    'announcer            0.08        0.08',
    'all                 39.28    1,423.33',
    'Managed Flink                  165.60',
  ])
  expect(lines.at(-2)).toMatch(/^Managed Flink is cheaper from about \d+\/s of each source on/)
  expect(lines.at(-1)).toContain('prices of November 2026')
})
