/**
 * The announcer of an application: a function that a rule invokes each minute. It reads the progress of stages and the shards of
 * their streams, and writes to the streams of keyed stages. docs/announcer.md says what it does and what it costs.
 */
import { Duration, Stack } from 'aws-cdk-lib'
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events'
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets'
import { Architecture, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import { packedBindings } from '../plan/packed-bindings.ts'
import type { Plan, StagePlan } from '../plan/plan.ts'
import {
  type AnnouncedStage,
  type AnnouncerBindings,
  announceEvent,
  bindingsVariable,
  type SourceBinding,
  type StreamPlace,
  type TopicPlace,
} from '../plan/stage-bindings.ts'
import type { SourceConnection } from './bind.ts'
import { bundlingFor, checkHandlerExport, locateCode } from './bundle.ts'
import { environmentFindings } from './environment-size.ts'
import { acknowledgeTracing, roleFor } from './function-role.ts'
import type { ClusterConnection } from './kafka/cluster.ts'
import { placedFor } from './kafka/network.ts'
import { grantProgressReading } from './keyed-resources.ts'
import { refuseAtSynth } from './rendered.ts'
import type { StageResources } from './stage.ts'
import type { StageProps } from './stage-settings.ts'

/** What can be tuned of the announcer; each as in {@link StageProps}. */
export interface AnnouncerProps
  extends Pick<
    StageProps,
    'entry' | 'handler' | 'environment' | 'logRetention' | 'architecture' | 'bundling' | 'function'
  > {
  /** Memory in MiB, 128 to 10,240. @default 256 */
  readonly memorySize?: number
  /** The longest that one round may take, up to 15 min. @default 1 minute */
  readonly timeout?: Duration
  /** How often there is a round, a minute or more. Windows of a silent stream close that much later. @default 1 minute */
  readonly every?: Duration
}

/** A stage that keeps progress. */
export interface AnnouncedResources {
  readonly stage: StagePlan
  /** What a feeding stage reads; undefined for a keyed one, which reads its own stream or topic. */
  readonly source: SourceConnection | undefined
  readonly resources: StageResources
}

export interface AnnouncerParts {
  readonly plan: Plan
  /** The application's entry, whose handler recognises the event of the rule. */
  readonly entry: string
  readonly props: AnnouncerProps
  readonly stages: readonly AnnouncedResources[]
}

/** The announcer, with all that it is made of. */
export class Announcer extends Construct {
  readonly function: NodejsFunction
  /** Invokes the function. Disabled, windows of silent streams stay open; nothing is lost. */
  readonly rule: Rule
  readonly logGroup: LogGroup

  constructor(scope: Construct, parts: AnnouncerParts) {
    super(scope, 'Announcer')
    const { plan, props, stages } = parts
    const bindings = bindingsOf(parts)
    const placed = placedFor('the announcer', stages.map(clusterOf), props.function ?? {})
    const code = locateCode(props.entry ?? parts.entry)
    const handler = props.handler ?? 'handler'
    checkHandlerExport('the announcer', code.entry, handler)
    this.logGroup = new LogGroup(this, 'Logs', { retention: props.logRetention ?? RetentionDays.ONE_MONTH })
    this.function = new NodejsFunction(this, 'Function', {
      description: `Announcer of the topology "${plan.topology}"`,
      architecture: props.architecture ?? Architecture.ARM_64,
      memorySize: props.memorySize ?? 256,
      timeout: props.timeout ?? Duration.minutes(1),
      tracing: Tracing.DISABLED,
      // A round that fails is not repeated: the next one says the same, from what is known then.
      retryAttempts: 0,
      maxEventAge: Duration.minutes(1),
      ...placed,
      ...code,
      role: roleFor(this, placed),
      runtime: Runtime.NODEJS_24_X,
      handler,
      bundling: bundlingFor(bindings, code.entry, props.bundling),
      logGroup: this.logGroup,
      environment: {
        NODE_OPTIONS: '--enable-source-maps',
        ...props.environment,
        [bindingsVariable]: Stack.of(this).toJsonString(packedBindings(bindings)),
      },
    })
    refuseAtSynth(this, this.function, (properties) => environmentFindings('the announcer', properties))
    this.logGroup.grantWrite(this.function)
    acknowledgeTracing(this.function, props.function ?? {})
    for (const announced of stages) this.#grant(announced)
    const every = props.every ?? Duration.minutes(1)
    this.rule = new Rule(this, 'Rule', {
      description: `Invokes the announcer of the topology "${plan.topology}"`,
      schedule: Schedule.rate(every),
      targets: [
        new LambdaFunction(this.function, {
          event: RuleTargetInput.fromObject(announceEvent),
          retryAttempts: 0,
          maxEventAge: Duration.minutes(1),
        }),
      ],
    })
  }

  #grant({ stage, source, resources }: AnnouncedResources): void {
    grantProgressReading(resources.table, this.function)
    if (stage.kind === 'keyed') resources.log.grantAnnouncing(this.function)
    else source?.grantLooking?.(this.function)
  }
}

const clusterOf = ({ stage, source, resources }: AnnouncedResources): ClusterConnection | undefined =>
  stage.kind === 'keyed' ? resources.log.cluster : source?.cluster

function bindingsOf({ plan, stages }: AnnouncerParts): AnnouncerBindings {
  const announces = stages.map(
    ({ stage, source, resources }): AnnouncedStage => ({
      stage: stage.name,
      ...(stage.kind === 'keyed' ? resources.log.place : placeOf(stage.name, source)),
      state: { tableName: resources.table.tableName },
    }),
  )
  return { formatVersion: 1, topology: plan.topology, announces }
}

type Place = (StreamPlace | TopicPlace) & { readonly startingAtMs?: number }

function placeOf(name: string, source: SourceConnection | undefined): Place {
  const binding = source?.grantLooking && source.bindingFor(name, true)
  const place = binding && listedPlace(binding)
  if (place) return place
  throw new ConfigurationError(
    `source "${name}" feeds a keyed stage, and the announcer cannot list the partitions of what it is bound to: bind it to a KinesisSource or a KafkaSource.`,
  )
}

/** Where a source is whose partitions can be listed. */
function listedPlace(binding: SourceBinding): Place | undefined {
  if (binding.kind !== 'kinesis' && binding.kind !== 'kafka') return undefined
  const { startingAtMs } = binding
  const starting = startingAtMs === undefined ? {} : { startingAtMs }
  if (binding.kind === 'kinesis') return { streamArn: binding.streamArn, ...starting }
  const { topic, cluster } = binding
  return cluster && { topic, cluster, ...starting }
}
