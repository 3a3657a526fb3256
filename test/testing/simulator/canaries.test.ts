import { dynamoStore } from '../../../bin/sim/dynamo-store.ts'
import { canaries } from '../../../lib/testing/simulator/canaries.ts'
import { referees } from '../../../lib/testing/simulator/referees.ts'
import { findCanary } from '../../../lib/testing/simulator/simulate.ts'
import { settle } from './simulator-world.ts'

test('every referee has a canary', () => {
  const guarded = new Set(Object.values(canaries).map(({ caughtBy }) => caughtBy))
  expect(Object.keys(referees).filter((name) => !guarded.has(name))).toEqual([])
})

test.each(Object.entries(canaries))(
  'the canary %s is noticed by its referee',
  async (_, canary) => {
    const report = await findCanary(canary, { settle, dynamoStore, mostSeeds: 150 })
    expect(report?.findings.map(({ referee }) => referee)).toContain(canary.caughtBy)
  },
  120_000,
)
