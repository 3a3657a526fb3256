/** The resources of one stage: a function, its logs and the mapping that feeds it, and of its own what it reads and keeps. */
import { Duration, Lazy, Stack } from 'aws-cdk-lib'
import type { ITable } from 'aws-cdk-lib/aws-dynamodb'
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import { Alias, type EventSourceMapping, type IFunction, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import { ConfigurationError, invariant } from '../core/errors.ts'
import { packedBindings } from '../plan/packed-bindings.ts'
import type { KeyedStage, StagePlan } from '../plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection, SourceConnection } from './bind.ts'
import { bundlingFor, checkHandlerExport, locateCode } from './bundle.ts'
import { type DeadLetterTarget, deadLetterBinding, grantDeadLetters } from './dead-letters.ts'
import { acknowledgeTracing, roleFor } from './function-role.ts'
import type { KeyedTopic } from './kafka/keyed-topic.ts'
import type { KeyedTopics } from './kafka/keyed-topics.ts'
import { placedFor } from './kafka/network.ts'
import { sayUnnoticed } from './kafka/recreated-topic.ts'
import { grantProgress, grantState, refuseStreamOf, retentionMsOf, stageStream, stageTable } from './keyed-resources.ts'
import { functionFindings, mappingFindings } from './mapping-rules.ts'
import { refuseAtSynth } from './rendered.ts'
import { type StageLog, streamLog } from './stage-log.ts'
import { type StageProps, type StageSettings, settingsOf } from './stage-settings.ts'

/** Everything that one stage is made of. */
export interface StageParts {
  readonly topology: string
  readonly stage: StagePlan
  readonly entry: string
  readonly props: StageProps
  /** What its source is bound to; undefined for a keyed stage, which reads its own stream or topic. */
  readonly source: SourceConnection | undefined
  /** The sinks that the stage writes to, with their connections. */
  readonly sinks: ReadonlyMap<SinkDeclaration, SinkConnection>
  readonly deadLetters: DeadLetterTarget
  /** The keyed stages that it feeds, in the order of the plan. */
  readonly feeds: readonly StageResources[]
  /** Where keyed stages read topics. @default they read streams */
  readonly topics: KeyedTopics | undefined
}

/** One deployed stage. Its resources are public, so that whatever is generated can be changed, alarmed on or granted to. */
export class StageResources extends Construct {
  /** The stage's name: that of its source, or of its `keyBy`. */
  readonly name: string
  readonly function: NodejsFunction
  /** What the mapping invokes where environments are kept ready: the alias `live`, of the version that was deployed last. */
  readonly alias: Alias | undefined
  /** The event source mapping that invokes the function, or its alias. */
  readonly mapping: EventSourceMapping
  readonly logGroup: LogGroup
  #stream: IStream | undefined
  #topic: KeyedTopic | undefined
  readonly #log: StageLog | undefined
  readonly #table: ITable | undefined
  /** The stages that feed it. */
  readonly #upstreams: StageResources[] = []
  /** For how long what it reads is kept, in ms; undefined where that is not known. */
  readonly #keptMs: () => number | undefined

  constructor(scope: Construct, parts: StageParts) {
    const { stage, props } = parts
    super(scope, stage.name)
    this.name = stage.name
    const settings = settingsOf(stage, props)
    if (stage.kind === 'keyed') this.#log = this.#logOf(stage, parts)
    if (stage.kind !== 'stateless') this.#table = stageTable(this, stage.name, props.table)
    const source = this.#log?.source ?? parts.source
    invariant(source, `source "${stage.name}" was not checked to be bound`)
    const { stream } = source
    this.#keptMs = () => this.#log?.retentionMs() ?? (stream && retentionMsOf(stream))
    for (const fed of parts.feeds) fed.#upstreams.push(this)
    if (stage.kind === 'feeding' && stream)
      refuseStreamOf(this, `the stream of the source "${stage.name}", which feeds a keyed stage,`, stream)
    this.logGroup = new LogGroup(this, 'Logs', { retention: settings.logRetention })
    this.function = this.#functionOf(parts, settings, source)
    this.#topic?.renewedWith(this.function)
    this.#grant(parts)
    this.alias = this.#aliasOf(settings)
    this.mapping = mappingOf(this, source, this.alias ?? this.function, settings)
    sayUnnoticed(this, stage, source, parts.sinks)
    refuseAtSynth(this, this.function, (properties) => functionFindings(stage.name, properties))
    refuseAtSynth(this, this.mapping, (properties) => mappingFindings(stage, properties))
  }

  /** The stream or the topic of a keyed stage. */
  #logOf(stage: KeyedStage, { props, topics }: StageParts): StageLog {
    if (topics === undefined) {
      refuseSetting(stage, props, 'topic', 'reads a stream: say `keyedStreams: KeyedStreams.topics(cluster)` too')
      this.#stream = stageStream(this, stage.name, props.stream)
      return streamLog(this.#stream)
    }
    refuseSetting(stage, props, 'stream', 'reads a topic, as `keyedStreams` says: say `topic` instead')
    this.#topic = topics.topicOf(this, stage, props.topic)
    return this.#topic
  }

  #functionOf(parts: StageParts, settings: StageSettings, source: SourceConnection): NodejsFunction {
    const { stage, props } = parts
    const placed = placedFor(`the function of stage "${stage.name}"`, reachedBy(parts, source), settings.function)
    const bindings = this.#bindings(parts, source)
    const code = locateCode(props.entry ?? parts.entry)
    checkHandlerExport(`stage "${stage.name}"`, code.entry, settings.handler)
    const made = new NodejsFunction(this, 'Function', {
      description: `Stage "${stage.name}" of the topology "${parts.topology}"`,
      architecture: settings.architecture,
      memorySize: settings.memorySize,
      timeout: settings.timeout,
      tracing: Tracing.DISABLED,
      ...placed,
      ...code,
      role: roleFor(this, placed),
      runtime: Runtime.NODEJS_24_X,
      handler: settings.handler,
      bundling: bundlingFor(bindings, code.entry, settings.bundling),
      logGroup: this.logGroup,
      environment: {
        NODE_OPTIONS: '--enable-source-maps',
        ...settings.environment,
        [bindingsVariable]: Stack.of(this).toJsonString(packedBindings(bindings)),
      },
    })
    this.logGroup.grantWrite(made)
    acknowledgeTracing(made, settings.function)
    return made
  }

  #grant({ stage, sinks, deadLetters, feeds }: StageParts): void {
    for (const sink of sinks.values()) sink.connect(this.function)
    grantDeadLetters(deadLetters, this.function)
    for (const { log } of feeds) log.grantFeeding(this.function)
    if (this.#table) (stage.kind === 'keyed' ? grantState : grantProgress)(this.#table, this.function)
  }

  /** How long what comes to its stream may have waited before: what nobody knows of here is taken to be kept for seven days. */
  #longestWayMs(): number {
    const ways = this.#upstreams.map(
      (stage) => (stage.#keptMs() ?? Duration.days(7).toMilliseconds()) + stage.#longestWayMs(),
    )
    return Math.max(0, ...ways)
  }

  /** Lambda keeps environments ready for a version or an alias of a function, never for what was deployed last. */
  #aliasOf({ provisionedConcurrency }: StageSettings): Alias | undefined {
    if (provisionedConcurrency === undefined) return undefined
    return new Alias(this, 'Live', {
      aliasName: 'live',
      version: this.function.currentVersion,
      provisionedConcurrentExecutions: provisionedConcurrency,
    })
  }

  /** The stream of a keyed stage. Throws a {@link ConfigurationError} where the stage is not keyed, or reads a topic. */
  get stream(): IStream {
    if (this.#stream) return this.#stream
    const why = this.#topic ? 'reads a topic: ask for its `topic`' : notKeyed
    throw new ConfigurationError(`stage "${this.name}" has no stream of its own, as it ${why}.`)
  }

  /** The topic of a keyed stage. Throws a {@link ConfigurationError} where the stage is not keyed, or reads a stream. */
  get topic(): KeyedTopic {
    if (this.#topic) return this.#topic
    const why = this.#stream ? 'reads a stream: ask for its `stream`' : notKeyed
    throw new ConfigurationError(`stage "${this.name}" has no topic of its own, as it ${why}.`)
  }

  /** What a keyed stage reads, be it a stream or a topic. Throws a {@link ConfigurationError} where the stage is not keyed. */
  get log(): StageLog {
    if (this.#log) return this.#log
    throw new ConfigurationError(`stage "${this.name}" has no stream or topic of its own, as it ${notKeyed}.`)
  }

  /**
   * The table that the stage keeps its state and its progress in, or, where it only feeds keyed stages, its progress. Throws a
   * {@link ConfigurationError} where it does neither and so keeps nothing.
   */
  get table(): ITable {
    if (this.#table) return this.#table
    throw new ConfigurationError(
      `stage "${this.name}" has no table, as it keeps nothing: ask a stage that is named after a keyBy, or one that feeds it.`,
    )
  }

  #bindings({ topology, stage, sinks, deadLetters, feeds }: StageParts, source: SourceConnection): StageBindings {
    const table = this.#table
    const log = this.#log
    const placeOf = (name: string): StageLog['place'] => {
      const fed = feeds.find((candidate) => candidate.name === name)
      invariant(fed, `stage "${name}" was not made before "${stage.name}", which feeds it`)
      return fed.log.place
    }
    const fed = stage.feeds.map((feed) => ({ stage: feed.stage, slots: feed.slots, ...placeOf(feed.stage) }))
    return {
      formatVersion: 1,
      topology,
      sources: [source.bindingFor(stage.name, stage.kind !== 'stateless')],
      sinks: [...sinks].map(([declaration, sink]) => sink.bindingFor(declaration)),
      deadLetters: deadLetterBinding(deadLetters),
      ...(table === undefined ? {} : { state: { tableName: table.tableName } }),
      ...(fed.length === 0 ? {} : { feeds: fed }),
      // Asked at synth, since a stream may still be overridden.
      ...(log === undefined
        ? {}
        : {
            retentionMs: Lazy.any({ produce: () => log.retentionMs() }) as never,
            upstreamRetentionMs: Lazy.any({ produce: () => this.#longestWayMs() }) as never,
          }),
    }
  }
}

const notKeyed = 'is not keyed: ask a stage that is named after a keyBy'

function refuseSetting({ name }: KeyedStage, props: StageProps, setting: 'stream' | 'topic', why: string): void {
  if (props[setting] === undefined) return
  throw new ConfigurationError(`stage "${name}" has the setting \`${setting}\`, but ${why}, or leave it out.`)
}

/** The clusters that the function of a stage speaks to. What it only reads comes to it by Lambda's pollers. */
function reachedBy({ stage, sinks, deadLetters, feeds }: StageParts, source: SourceConnection) {
  return [
    stage.kind === 'stateless' ? undefined : source.cluster,
    deadLetters.kind === 'kafka' ? deadLetters.cluster : undefined,
    ...[...sinks.values()].map(({ cluster }) => cluster),
    ...feeds.map(({ log }) => log.cluster),
  ]
}

/** Without end and without a destination: the stage makes dead letters of its own, so the mapping must drop nothing. */
function mappingOf(
  scope: Construct,
  source: SourceConnection,
  target: IFunction,
  { batchSize, maxBatchingWindow, parallelizationFactor, enabled }: StageSettings,
): EventSourceMapping {
  return source.connect(scope, target, {
    batchSize,
    maxBatchingWindow,
    parallelizationFactor,
    enabled,
    retryAttempts: -1,
    bisectBatchOnError: true,
    reportBatchItemFailures: true,
  })
}
