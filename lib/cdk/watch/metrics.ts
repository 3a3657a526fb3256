/**
 * The metrics of an application, as CloudWatch knows them: those that Millrace emits, and those of the services it runs on.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
 * @see https://docs.aws.amazon.com/streams/latest/dev/monitoring-with-cloudwatch.html
 */
import { Arn, ArnFormat, Duration, Stack, Token, TokenComparison } from 'aws-cdk-lib'
import { Metric, type MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { StagePlan } from '../../plan/plan.ts'
import type { SourceConnection } from '../bind.ts'
import { readsTopic } from '../kafka/topic-mapping-rules.ts'
import { renderedProperties } from '../rendered.ts'
import type { StageResources } from '../stage.ts'

/** How a metric is looked at. */
export type Look = Required<Pick<MetricOptions, 'statistic' | 'period'>>

export const look = (statistic: string, minutes = 1): Look => ({ statistic, period: Duration.minutes(minutes) })

/** One stage with all of its metrics. */
export interface WatchedStage {
  readonly name: string
  readonly plan: StagePlan
  /** The longest that an invocation may take; undefined where Lambda's default holds. */
  readonly timeout: Duration | undefined
  /** What it is given: of streams Lambda tells the age, of topics how many records are left, of queues neither. */
  readonly reads: 'stream' | 'topic' | 'queue'
  /** How far the watermark is behind the newest event time where all is well, in ms. */
  readonly usualLagMs: number
  /** What Millrace emits for the stage. */
  emitted(name: string, look: Look): Metric
  /** What Lambda says of its function. */
  ofFunction(name: string, look: Look): Metric
  /** What Kinesis says of the stream that it reads; undefined where it reads none. */
  ofStream(name: string, look: Look): Metric | undefined
}

export interface WatchedParts {
  readonly application: string
  readonly plan: StagePlan
  readonly resources: StageResources
  /** What its source is bound to; undefined for a keyed stage, which reads its own stream. */
  readonly source: SourceConnection | undefined
  readonly usualLagMs: number
}

export function watchedStage({ application, plan, resources, source, usualLagMs }: WatchedParts): WatchedStage {
  const stage = plan.name
  const reads = readsOf(resources)
  const streamName = reads === 'stream' ? streamNameOf(plan, resources, source) : undefined
  return {
    name: stage,
    plan,
    timeout: resources.function.timeout,
    reads,
    usualLagMs,
    emitted: (metricName, how) =>
      new Metric({ namespace: 'Millrace', metricName, dimensionsMap: { application, stage }, ...how }),
    ofFunction: (metricName, how) => lambdaMetric(resources.function, metricName, how),
    ofStream: (metricName, how) =>
      streamName === undefined
        ? undefined
        : new Metric({ namespace: 'AWS/Kinesis', metricName, dimensionsMap: { StreamName: streamName }, ...how }),
  }
}

export const lambdaMetric = ({ functionName }: IFunction, metricName: string, how: Look): Metric =>
  new Metric({ namespace: 'AWS/Lambda', metricName, dimensionsMap: { FunctionName: functionName }, ...how })

function readsOf({ mapping }: StageResources): WatchedStage['reads'] {
  const properties = renderedProperties(mapping) ?? {}
  if (readsTopic(properties)) return 'topic'
  return properties.StartingPosition === undefined ? 'queue' : 'stream'
}

/** A stream in another account is watched there. */
function streamNameOf(
  { name, kind }: StagePlan,
  resources: StageResources,
  source: SourceConnection | undefined,
): string | undefined {
  if (kind === 'keyed') return resources.stream.streamName
  const binding = source?.bindingFor(name)
  if (binding?.kind !== 'kinesis') return undefined
  const { account = '', resourceName } = Arn.split(binding.streamArn, ArnFormat.SLASH_RESOURCE_NAME)
  const isElsewhere = Token.compareStrings(account, Stack.of(resources).account) === TokenComparison.DIFFERENT
  return isElsewhere ? undefined : resourceName
}
