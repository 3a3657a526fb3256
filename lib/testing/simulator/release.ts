/**
 * What a run needs of a release of Millrace: to plan one of the applications, and to make the runners and the announcer of the
 * plan. `bin/sim/bundle-release.ts` makes one file of this module and of all that it imports, as they are in an earlier commit, so
 * that containers of that release can run beside those of this one.
 */
import type { KeyedOperator } from '../../operators/keyed/keyed-operator.ts'
import { plan, stageNamed } from '../../plan/plan.ts'
import { type Announced, type AnnouncerOptions, announce } from '../../runtime/announcer/announcer.ts'
import type { Ports } from '../../runtime/ports.ts'
import { createRunner, type Runner, type RunnerOptions } from '../../runtime/runner.ts'
import { timedNames, timedTopology, type WindowSpec } from './timed-workload.ts'
import type { Variant } from './variant.ts'
import { names, simulatedTopology } from './workload.ts'

/** An application, from which every release builds its topology. */
export type Built =
  | { readonly kind: 'keyed'; readonly variant: Variant }
  | { readonly kind: 'timed'; readonly variant: Variant; readonly windows: readonly WindowSpec[] }

/** One version of an application as a release runs it. */
export interface Opened {
  readonly stages: readonly { readonly name: string; readonly kind: 'stateless' | 'feeding' | 'keyed' }[]
  runner(stage: string, ports: Ports, options: RunnerOptions): Runner
  announce(options: Omit<AnnouncerOptions, 'planned'>): Promise<readonly Announced[]>
}

/** A release. */
export interface Release {
  open(application: Built, version: 0 | 1): Opened
}

/** `changed` gives what a keyed operator of the plan is replaced by, where a canary breaks one. */
export function open(application: Built, version: 0 | 1, changed?: (operator: KeyedOperator) => KeyedOperator): Opened {
  const planned = plan(
    application.kind === 'keyed'
      ? simulatedTopology(version, application.variant)
      : timedTopology(version, application.windows, application.variant),
  )
  if (changed !== undefined) {
    const nodes = planned.stages.flatMap((stage) => stage.nodes)
    for (const node of nodes) if (node.type === 'keyed') Object.assign(node, { operator: changed(node.operator) })
  }
  const { topology } = application.kind === 'keyed' ? names : timedNames
  return {
    stages: planned.stages,
    runner: (stage, ports, options) => createRunner(topology, stageNamed(planned, stage), ports, options),
    announce: (options) => announce({ planned, ...options }),
  }
}
