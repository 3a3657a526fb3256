/**
 * A topology on AWS: one function, one mapping and one log group per stage, a stream or a topic per keyed stage, a table per stage that is
 * keyed or feeds one, and one place for dead letters.
 */
import { Annotations } from 'aws-cdk-lib'
import type { Dashboard } from 'aws-cdk-lib/aws-cloudwatch'
import { Construct } from 'constructs'
import { ConfigurationError, invariant } from '../core/errors.ts'
import { type BoundName, checkBindings } from '../plan/bindings.ts'
import { type Plan, plan, type StagePlan, stageNamed } from '../plan/plan.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { Topology } from '../topology/topology.ts'
import { Announcer, type AnnouncerProps } from './announcer.ts'
import type { Bound, SinkConnection, SourceConnection } from './bind.ts'
import { refuseSharedResources } from './brought.ts'
import { DeadLetters, type DeadLetterTarget, refuseDeadLettersAsSource } from './dead-letters.ts'
import type { KeyedStreams } from './kafka/keyed-streams.ts'
import { KeyedTopics } from './kafka/keyed-topics.ts'
import { checkLock } from './lock.ts'
import { StageResources } from './stage.ts'
import type { StageProps } from './stage-settings.ts'
import type { Alarms } from './watch/alarms.ts'
import { Watch, type WatchProps } from './watch/watch.ts'

export interface StreamApplicationProps extends WatchProps {
  readonly topology: Topology
  /** The file that exports the handler, relative to the folder in which the CDK app runs. */
  readonly entry: string
  /** One {@link bind} for each source and each sink of the topology. */
  readonly bind: readonly Bound[]
  /**
   * The file that says what topologies keep, relative to the folder in which the CDK app runs: `millrace lock` writes it, synth
   * refuses what would lose or misread what it says, and warns where it is missing. @default 'millrace.lock.json'
   */
  readonly lock?: string
  /** Where records go that cannot be processed. @default DeadLetters.queue() */
  readonly deadLetters?: DeadLetters
  /**
   * Where keyed stages have the logs that they read, such as `KeyedStreams.topics(cluster)`. It cannot be changed once the application
   * runs: what is unread would be lost. @default a Kinesis stream for each
   */
  readonly keyedStreams?: KeyedStreams
  /** What to tune of the announcer, which an application with keyed stages has. @default those of {@link AnnouncerProps} */
  readonly announcer?: AnnouncerProps
  /** What to tune, by the name of the stage. @default every stage has the defaults of {@link StageProps} */
  readonly stages?: Readonly<Record<string, StageProps>>
}

/**
 * Deploys a topology. Whatever is generated can be reached: `application.stage('orders').function`, of a keyed stage
 * `application.stage('by-customer').stream` (or `.topic`) and `.table`, of one that feeds it `.table` too. An application with keyed stages has an announcer too:
 * `application.announcer?.function` and `.rule`.
 *
 * Construct ids follow the names of the topology, so that adding a stage replaces nothing. Throws a
 * {@link ConfigurationError} for a topology that cannot run, a name that is unbound, unknown or bound twice, records that
 * would go in a circle, a resource in another region, a setting beyond the limits of Lambda, a missing handler file, one that
 * exports no handler, a missing esbuild, and a change that would lose or misread what the lock file says is kept.
 * What is overridden later is looked at when the app synthesises, which refuses what would lose records or their order.
 *
 * @example
 * const application = new StreamApplication(stack, 'Orders', {
 *   topology: ordersApp,
 *   entry: 'functions/orders/handler.ts',
 *   bind: [bind(orders, new KinesisSource(stream)), bind(paidOrders, new KinesisSink(out))],
 *   stages: { orders: { memorySize: 1_024, batchSize: 1_000 } },
 * })
 * application.stage('orders').function.metricErrors().createAlarm(stack, 'OrdersFail', { threshold: 1, evaluationPeriods: 1 })
 */
export class StreamApplication extends Construct {
  readonly plan: Plan
  /** Where dead letters go. */
  readonly deadLetters: DeadLetterTarget
  /** Every stage, in the order of the plan: those of the sources, then the keyed ones, each after what feeds it. */
  readonly stages: readonly StageResources[]
  /** What makes and checks the topics of keyed stages; undefined where these read streams. */
  readonly topics: KeyedTopics | undefined
  /** What tells keyed stages of their upstreams, each minute; undefined where no stage is keyed. */
  readonly announcer: Announcer | undefined
  /** Its alarms, such as `application.alarms?.of('orders', 'dead-letters')`; undefined where there are to be none. */
  readonly alarms: Alarms | undefined
  /** Undefined where there is to be none. */
  readonly dashboard: Dashboard | undefined

  constructor(scope: Construct, id: string, props: StreamApplicationProps) {
    super(scope, id)
    this.plan = plan(props.topology)
    checkLock(this, this.plan, props.lock)
    for (const warning of this.plan.warnings) Annotations.of(this).addWarningV2('millrace:plan', warning)
    for (const hint of this.plan.hints) Annotations.of(this).addInfoV2('millrace:hint', hint)
    const connections = new Connections(props.bind)
    checkBindings(this.plan, connections.boundSources, connections.boundSinks)
    for (const name of Object.keys(props.stages ?? {})) stageNamed(this.plan, name)
    this.deadLetters = (props.deadLetters ?? DeadLetters.queue())(this)
    refuseDeadLettersAsSource(this.deadLetters, connections.boundSources)
    refuseSharedResources(props.stages ?? {}, {
      sources: connections.boundSources,
      sinks: connections.boundSinks,
      deadLetters: this.deadLetters,
      topicsIn: props.keyedStreams?.cluster,
    })
    this.topics = this.#topicsOf(props)
    const made = new Map<string, StageResources>()
    const keyed = this.plan.stages.filter(({ kind }) => kind === 'keyed')
    const others = this.plan.stages.filter(({ kind }) => kind !== 'keyed')
    // Keyed ones first, and backwards: a stage is told of the streams of those that it feeds.
    for (const stage of [...keyed.toReversed(), ...others]) {
      const resources = new StageResources(this, {
        topology: this.plan.topology,
        stage,
        entry: props.entry,
        props: props.stages?.[stage.name] ?? {},
        source: connections.source(stage),
        sinks: connections.sinks(stage, this.plan),
        deadLetters: this.deadLetters,
        feeds: stage.feeds.map((feed) => madeOf(made, feed.stage)),
        topics: this.topics,
      })
      made.set(stage.name, resources)
    }
    this.stages = this.plan.stages.map((stage) => madeOf(made, stage.name))
    this.announcer = this.#announcerOf(props, connections)
    const { alarms, dashboard } = new Watch(this, {
      plan: this.plan,
      stages: this.plan.stages.map((stage) => ({
        resources: this.stage(stage.name),
        source: connections.source(stage),
      })),
      announcer: this.announcer && { function: this.announcer.function, every: props.announcer?.every },
      props,
    })
    this.alarms = alarms
    this.dashboard = dashboard
  }

  #topicsOf({ keyedStreams, entry }: StreamApplicationProps): KeyedTopics | undefined {
    if (keyedStreams === undefined) return undefined
    if (this.plan.stages.some(({ kind }) => kind === 'keyed'))
      return new KeyedTopics(this, { topology: this.plan.topology, entry, streams: keyedStreams })
    throw new ConfigurationError(
      `topology "${this.plan.topology}" has no keyed stage, and so no topics that \`keyedStreams\` could make: leave it out.`,
    )
  }

  #announcerOf(props: StreamApplicationProps, connections: Connections): Announcer | undefined {
    if (!this.plan.stages.some(({ kind }) => kind === 'keyed')) {
      if (props.announcer === undefined) return undefined
      throw new ConfigurationError(
        `topology "${this.plan.topology}" has no keyed stage, and so no announcer that \`announcer\` could tune: leave it out.`,
      )
    }
    const stages = this.plan.stages
      .filter(({ kind }) => kind !== 'stateless')
      .map((stage) => ({ stage, source: connections.source(stage), resources: this.stage(stage.name) }))
    return new Announcer(this, { plan: this.plan, stages, entry: props.entry, props: props.announcer ?? {} })
  }

  /** The resources of a stage. Throws a {@link ConfigurationError} that names the stages where there is none of that name. */
  stage(name: string): StageResources {
    const { name: planned } = stageNamed(this.plan, name)
    return madeOf(new Map(this.stages.map((stage) => [stage.name, stage])), planned)
  }
}

function madeOf(made: ReadonlyMap<string, StageResources>, name: string): StageResources {
  const stage = made.get(name)
  invariant(stage, `stage "${name}" is planned but was not made`)
  return stage
}

/** The bindings of an application, apart by kind. */
class Connections {
  readonly #sources = new Map<string, SourceConnection>()
  readonly #sinks = new Map<string, SinkConnection>()
  readonly boundSources: readonly BoundName[]
  readonly boundSinks: readonly BoundName[]

  constructor(bound: readonly Bound[]) {
    const sources: BoundName[] = []
    const sinks: BoundName[] = []
    for (const { name, connection } of bound) {
      if (connection.type === 'source') {
        this.#sources.set(name, connection)
        const { resource, feedsNoKeyedStage } = connection
        sources.push({ name, resource, ...(feedsNoKeyedStage === undefined ? {} : { feedsNoKeyedStage }) })
      } else {
        this.#sinks.set(name, connection)
        sinks.push({ name, resource: connection.resource ?? `the sink "${name}"` })
      }
    }
    this.boundSources = sources
    this.boundSinks = sinks
  }

  /** What the stage's source is bound to; a keyed stage has none. */
  source(stage: StagePlan): SourceConnection | undefined {
    return this.#sources.get(stage.name)
  }

  sinks(stage: StagePlan, { graph }: Plan): ReadonlyMap<SinkDeclaration, SinkConnection> {
    const sinks = new Map<SinkDeclaration, SinkConnection>()
    for (const declaration of graph.sinks) {
      const connection = this.#sinks.get(declaration.name)
      if (connection && stage.sinks.includes(declaration.name)) sinks.set(declaration, connection)
    }
    return sinks
  }
}
