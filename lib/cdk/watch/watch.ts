/** All that watches an application: its alarms and its dashboard. */
import type { Dashboard } from 'aws-cdk-lib/aws-cloudwatch'
import { Construct } from 'constructs'
import { type Plan, type StagePlan, stageNamed } from '../../plan/plan.ts'
import type { SourceConnection } from '../bind.ts'
import type { StageResources } from '../stage.ts'
import { Alarms, type AlarmsProps, type WatchedAnnouncer } from './alarms.ts'
import { dashboardOf } from './dashboard.ts'
import { watchedStage } from './metrics.ts'

export interface WatchProps {
  /** What the alarms are; false makes none. @default alarms with the thresholds of docs/operations.md, which tell nobody */
  readonly alarms?: AlarmsProps | false
  /** Whether there is a dashboard. @default true */
  readonly dashboard?: boolean
}

export interface WatchParts {
  readonly plan: Plan
  /** In the order of the plan. */
  readonly stages: readonly { readonly resources: StageResources; readonly source: SourceConnection | undefined }[]
  readonly announcer: WatchedAnnouncer | undefined
  readonly props: WatchProps
}

/** Watches an application. Throws a {@link ConfigurationError} for a threshold of a stage or an alarm that is none. */
export class Watch extends Construct {
  readonly alarms: Alarms | undefined
  readonly dashboard: Dashboard | undefined

  constructor(scope: Construct, { plan, stages, announcer, props }: WatchParts) {
    super(scope, 'Watch')
    const application = plan.topology
    const watched = stages.map(({ resources, source }) => {
      const planned = stageNamed(plan, resources.name)
      return watchedStage({ application, plan: planned, resources, source, usualLagMs: usualLagOf(planned, plan) })
    })
    const { alarms = {}, dashboard = true } = props
    if (alarms !== false) {
      for (const name of Object.keys(alarms.stages ?? {})) stageNamed(plan, name)
      this.alarms = new Alarms(this, { application, stages: watched, announcer, props: alarms })
    }
    if (!dashboard) return
    this.dashboard = dashboardOf(this, {
      application,
      stages: watched,
      announcer: announcer?.function,
      alarms: this.alarms?.all ?? [],
    })
  }
}

/** By how much the topology itself holds a stage's watermark back: by outOfOrderness, and by the grace of 'final' windows above it. */
function usualLagOf(stage: StagePlan, planned: Plan): number {
  if (stage.kind !== 'keyed') return stage.source.outOfOrdernessMs
  return Math.max(
    0,
    ...stage.fedBy.map((name) => {
      const upstream = stageNamed(planned, name)
      const heldBackMs = upstream.nodes.map((node) =>
        node.type === 'keyed' ? (node.operator.window?.heldBackMs ?? 0) : 0,
      )
      return usualLagOf(upstream, planned) + Math.max(0, ...heldBackMs)
    }),
  )
}
