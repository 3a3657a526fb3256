/** The dashboard of an application: one row of graphs for how each stage keeps up, one for what it costs, the alarms above all. */
import {
  type Alarm,
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IWidget,
  type Metric,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import { lambdaMetric, look, type WatchedStage } from './metrics.ts'

export interface DashboardParts {
  readonly application: string
  readonly stages: readonly WatchedStage[]
  readonly announcer: IFunction | undefined
  readonly alarms: readonly Alarm[]
}

const wide = 24
const narrow = 6

/**
 * The alarms of one widget at most: CloudWatch refuses a dashboard with a widget of more.
 *
 * @see https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
 */
const mostAlarms = 100

export function dashboardOf(scope: Construct, { application, stages, announcer, alarms }: DashboardParts): Dashboard {
  const dashboard = new Dashboard(scope, 'Dashboard')
  for (let from = 0; from < alarms.length; from += mostAlarms) {
    const shown = alarms.slice(from, from + mostAlarms)
    dashboard.addWidgets(new AlarmStatusWidget({ title: application, alarms: shown, width: wide, height: 4 }))
  }
  for (const stage of stages) {
    dashboard.addWidgets(new TextWidget({ markdown: `## ${stage.name} (${stage.plan.kind})`, width: wide, height: 1 }))
    dashboard.addWidgets(...widgetsOf(stage))
  }
  if (announcer) {
    dashboard.addWidgets(new TextWidget({ markdown: '## announcer', width: wide, height: 1 }))
    dashboard.addWidgets(
      graph('rounds', [
        lambdaMetric(announcer, 'Invocations', look('Sum')),
        lambdaMetric(announcer, 'Errors', look('Sum')),
      ]),
      graph('time of a round (ms)', [lambdaMetric(announcer, 'Duration', look('Maximum'))]),
    )
  }
  return dashboard
}

const graph = (title: string, metrics: readonly (Metric | undefined)[]): IWidget =>
  new GraphWidget({ title, left: metrics.filter((metric) => metric !== undefined), width: narrow, height: 6 })

function widgetsOf(stage: WatchedStage): readonly IWidget[] {
  const sums = (...names: readonly string[]) => names.map((name) => stage.emitted(name, look('Sum')))
  const most = (name: string) => stage.emitted(name, look('Maximum'))
  return [
    graph('records', sums('records-in', 'records-out', 'records-returned')),
    ...behindOf(stage),
    graph(
      'invocations',
      ['Invocations', 'Errors', 'Throttles'].map((name) => stage.ofFunction(name, look('Sum'))),
    ),
    graph('time of an invocation (ms)', [
      stage.ofFunction('Duration', look('Maximum')),
      stage.emitted('duration-left', look('Minimum')),
    ]),
    graph('given up', sums('dead-letters', 'attempts-failed')),
    ...(stage.plan.kind === 'stateless' ? [] : [graph('watermark lag (ms)', [most('watermark-lag')])]),
    ...(stage.plan.kind === 'feeding' ? feedingWidgets(stage) : []),
    ...(stage.plan.kind === 'keyed' ? keyedWidgets(stage) : []),
  ]
}

/** How far it is behind what it reads. */
function behindOf(stage: WatchedStage): readonly IWidget[] {
  if (stage.reads === 'topic')
    return [graph('not done of the topic (records)', [stage.ofFunction('OffsetLag', look('Maximum'))])]
  const ofFunction = stage.reads === 'stream' ? stage.ofFunction('IteratorAge', look('Maximum')) : undefined
  return [
    graph('how old what is read is (ms)', [
      ofFunction,
      stage.ofStream('GetRecords.IteratorAgeMilliseconds', look('Maximum')),
    ]),
  ]
}

function feedingWidgets(stage: WatchedStage): readonly IWidget[] {
  const lateness = ['p50', 'p90', 'p99', 'p99.9'].map((statistic) =>
    stage.emitted('event-lateness', { ...look(statistic, 5), statistic }),
  )
  return [
    graph('behind the newest of the partition (ms)', lateness),
    graph('skewed', [stage.emitted('records-skewed', look('Sum'))]),
  ]
}

function keyedWidgets(stage: WatchedStage): readonly IWidget[] {
  const sums = (...names: readonly string[]) => names.map((name) => stage.emitted(name, look('Sum')))
  const average = (name: string) => stage.emitted(name, look('Average'))
  return [
    graph('late', [...sums('records-late'), average('late-per-1000-records')]),
    graph('came again, or out of order', sums('duplicates-dropped', 'records-overtaken', 'commit-conflicts')),
    graph('keys', sums('keys-written', 'keys-read', 'keys-cached')),
    graph('records per key written', [average('collapse')]),
    graph('units per 1,000 records', [average('units-per-1000-records')]),
    graph('units', sums('read-units', 'write-units', 'throttles')),
    graph('largest item (bytes)', [stage.emitted('largest-item', look('Maximum'))]),
    graph('open windows of a key', [stage.emitted('open-windows', look('Maximum'))]),
  ]
}
