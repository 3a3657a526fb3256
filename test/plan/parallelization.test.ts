import { ConfigurationError } from '../../lib/core/errors.ts'
import { refuseParallelization } from '../../lib/plan/parallelization.ts'
import { plan, stageNamed } from '../../lib/plan/plan.ts'
import { rides } from '../testing/rides.ts'

test('a stage that keeps progress takes one batch of a partition at a time; a stateless one any number', () => {
  const planned = plan(rides().app)
  for (const stage of planned.stages) expect(() => refuseParallelization(stage, 1)).not.toThrow()
  for (const [name, why] of [
    ['rides', 'it feeds the keyed stage "by-driver"'],
    ['by-driver', 'it is a keyed stage'],
  ] as const) {
    const refused = () => refuseParallelization(stageNamed(planned, name), 2)
    expect(refused).toThrow(ConfigurationError)
    expect(refused).toThrow(`stage "${name}" has the parallelization factor 2, and ${why}`)
  }
})
