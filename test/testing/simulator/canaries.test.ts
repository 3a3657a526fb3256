import { dynamoStore } from '../../../bin/sim/dynamo-store.ts'
import { canaries } from '../../../lib/testing/simulator/canaries.ts'
import { kafkaCanaries } from '../../../lib/testing/simulator/kafka-canaries.ts'
import { protocolCanaries } from '../../../lib/testing/simulator/protocol-canaries.ts'
import { referees } from '../../../lib/testing/simulator/referees.ts'
import { findCanary } from '../../../lib/testing/simulator/simulate.ts'
import { timedCanaries } from '../../../lib/testing/simulator/timed-canaries.ts'
import { timedReferees } from '../../../lib/testing/simulator/timed-referees.ts'
import { settle } from './simulator-world.ts'

const withoutTime = { ...canaries, ...protocolCanaries }

test.each([
  ['without time', referees, withoutTime],
  ['with time', timedReferees, timedCanaries],
])('every referee %s has a canary', (_, looking, broken) => {
  const guarded = new Set(Object.values(broken).map(({ caughtBy }) => caughtBy))
  expect(Object.keys(looking).filter((name) => !guarded.has(name))).toEqual([])
})

test.each(Object.entries({ ...withoutTime, ...timedCanaries, ...kafkaCanaries }))(
  'the canary %s is noticed by its referee',
  async (_, canary) => {
    const report = await findCanary(canary, { settle, dynamoStore, mostSeeds: 150 })
    expect(report?.findings.map(({ referee }) => referee)).toContain(canary.caughtBy)
  },
  120_000,
)
