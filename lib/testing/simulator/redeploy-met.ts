/** Which parts of a redeploy a run met: counted where both versions were busy and the second one's part was used. */
import type { Simulation } from './simulation.ts'

/** The stage whose state and outputs the second version adds to, and what it adds. */
export interface Additions {
  readonly source: string
  readonly keyed: string
  /** The stage that is added, where one is. */
  readonly second: string
  readonly operatorSink: string
  readonly sink: string
}

export function redeployMet(run: Simulation, additions: Additions): readonly (readonly [string, number])[] {
  const { changes } = run.drawn
  const hadOld = run.oldUntilMs(additions.keyed) > Number.NEGATIVE_INFINITY
  const hasGot = (name: string) => run.deliveries.some(({ sink }) => sink === name)
  const versions = new Set(
    run.stages.commits.filter(({ stage }) => stage === additions.keyed).map(({ version }) => version % 2),
  )
  const hasStage = () =>
    [...run.streams.stream(additions.second).shards.values()].some(({ records }) => records.length > 0)
  const met = {
    'state added': versions.size === 2,
    'releases mixed': run.mixesReleases && versions.size === 2,
    'operator added': changes.operator && hadOld && hasGot(additions.operatorSink),
    'sink added': changes.sink && run.oldUntilMs(additions.source) > Number.NEGATIVE_INFINITY && hasGot(additions.sink),
    'stage added': changes.stage && run.hasThirdStage && hadOld && hasStage(),
  }
  return Object.entries(met).map(([name, isMet]) => [name, Number(isMet)] as const)
}
