import { formerRelease, workloadHash } from '../../../bin/sim/former-release.ts'
import { open } from '../../../lib/testing/simulator/release.ts'
import { play } from './simulator-world.ts'

const variant = {
  hasThirdStage: true,
  hasBriefs: true,
  changes: { operator: true, sink: true, stage: true },
  mixesReleases: true,
  kill: () => undefined,
}
const built = { kind: 'keyed', variant } as const

test('the former release runs the applications of this one', () => {
  const { madeOf } = formerRelease()
  // If not: node bin/sim/bundle-release.ts COMMIT makes it anew.
  expect(madeOf.workload).toBe(workloadHash())
  expect(madeOf.commit).toMatch(/^[0-9a-f]{40}$/)
})

test('its code is its own', () => {
  const [former, present] = [formerRelease().open(built, 0), open(built, 0)]
  expect(former.stages.map(({ name }) => name)).toEqual(present.stages.map(({ name }) => name))
  expect(former.runner).not.toBe(present.runner)
})

test.each([
  ['without time', false],
  ['with time', true],
])(
  'containers of both releases commit in one run %s, and every promise is kept',
  async (_, hasTime) => {
    const faults = { any: true, redeploy: 0.01, mixesReleases: true }
    const canary = { breaks: 'nothing', caughtBy: 'nobody', hasTime, faults }
    let isMixed = false
    for (let seed = 0; seed < 20 && !isMixed; seed++) {
      const { findings, met } = await play(seed, { canary })
      expect(findings).toEqual([])
      isMixed = met.get('releases mixed') === 1
    }
    expect(isMixed).toBe(true)
  },
  120_000,
)
