/** The resources of one stage: a function, its logs and the mapping that feeds it, and of its own what it reads and keeps. */
import { Duration, Lazy, Stack } from 'aws-cdk-lib'
import type { ITable } from 'aws-cdk-lib/aws-dynamodb'
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import { Alias, type EventSourceMapping, type IFunction, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import { ConfigurationError, invariant } from '../core/errors.ts'
import type { StagePlan } from '../plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection, SourceConnection } from './bind.ts'
import { bundlingFor, checkHandlerExport, locateCode } from './bundle.ts'
import { type DeadLetterTarget, deadLetterBinding, grantDeadLetters } from './dead-letters.ts'
import { acknowledgeTracing, roleFor } from './function-role.ts'
import { grantProgress, grantState, refuseStreamOf, retentionMsOf, stageStream, stageTable } from './keyed-resources.ts'
import { grantFeeding, KinesisSource } from './kinesis.ts'
import { functionFindings, mappingFindings } from './mapping-rules.ts'
import { refuseAtSynth } from './rendered.ts'
import { type StageProps, type StageSettings, settingsOf } from './stage-settings.ts'

/** Everything that one stage is made of. */
export interface StageParts {
  readonly topology: string
  readonly stage: StagePlan
  readonly entry: string
  readonly props: StageProps
  /** What its source is bound to; undefined for a keyed stage, which reads its own stream. */
  readonly source: SourceConnection | undefined
  /** The sinks that the stage writes to, with their connections. */
  readonly sinks: ReadonlyMap<SinkDeclaration, SinkConnection>
  readonly deadLetters: DeadLetterTarget
  /** The keyed stages that it feeds, in the order of the plan. */
  readonly feeds: readonly StageResources[]
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
  readonly #stream: IStream | undefined
  readonly #table: ITable | undefined
  /** The stages that feed it. */
  readonly #upstreams: StageResources[] = []
  readonly #input: IStream | undefined

  constructor(scope: Construct, parts: StageParts) {
    const { stage, props } = parts
    super(scope, stage.name)
    this.name = stage.name
    const settings = settingsOf(stage, props)
    if (stage.kind === 'keyed') this.#stream = stageStream(this, stage.name, props.stream)
    if (stage.kind !== 'stateless') this.#table = stageTable(this, stage.name, props.table)
    const source = this.#stream === undefined ? parts.source : new KinesisSource(this.#stream)
    invariant(source, `source "${stage.name}" was not checked to be bound`)
    this.#input = source.stream
    for (const fed of parts.feeds) fed.#upstreams.push(this)
    if (stage.kind === 'feeding' && source.stream)
      refuseStreamOf(this, `the stream of the source "${stage.name}", which feeds a keyed stage,`, source.stream)
    this.logGroup = new LogGroup(this, 'Logs', { retention: settings.logRetention })
    this.function = this.#functionOf(parts, settings, source)
    this.#grant(parts)
    this.alias = this.#aliasOf(settings)
    this.mapping = mappingOf(this, source, this.alias ?? this.function, settings)
    refuseAtSynth(this, this.function, (properties) => functionFindings(stage.name, properties))
    refuseAtSynth(this, this.mapping, (properties) => mappingFindings(stage, properties))
  }

  #functionOf(parts: StageParts, settings: StageSettings, source: SourceConnection): NodejsFunction {
    const { stage, props } = parts
    const bindings = this.#bindings(parts, source)
    const code = locateCode(props.entry ?? parts.entry)
    checkHandlerExport(`stage "${stage.name}"`, code.entry, settings.handler)
    const made = new NodejsFunction(this, 'Function', {
      description: `Stage "${stage.name}" of the topology "${parts.topology}"`,
      architecture: settings.architecture,
      memorySize: settings.memorySize,
      timeout: settings.timeout,
      tracing: Tracing.DISABLED,
      ...settings.function,
      ...code,
      role: roleFor(this, settings.function),
      runtime: Runtime.NODEJS_24_X,
      handler: settings.handler,
      bundling: bundlingFor(bindings, settings.bundling),
      logGroup: this.logGroup,
      environment: {
        NODE_OPTIONS: '--enable-source-maps',
        ...settings.environment,
        [bindingsVariable]: Stack.of(this).toJsonString(bindings),
      },
    })
    this.logGroup.grantWrite(made)
    acknowledgeTracing(made, settings.function)
    return made
  }

  #grant({ stage, sinks, deadLetters, feeds }: StageParts): void {
    for (const sink of sinks.values()) sink.connect(this.function)
    grantDeadLetters(deadLetters, this.function)
    for (const { stream } of feeds) grantFeeding(stream, this.function)
    if (this.#table) (stage.kind === 'keyed' ? grantState : grantProgress)(this.#table, this.function)
  }

  /** How long what comes to its stream may have waited before: what nobody knows of here is taken to be kept for seven days. */
  #longestWayMs(): number {
    const ways = this.#upstreams.map((stage) => {
      const keptMs = stage.#input === undefined ? undefined : retentionMsOf(stage.#input)
      return (keptMs ?? Duration.days(7).toMilliseconds()) + stage.#longestWayMs()
    })
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

  /** The stream of a keyed stage. Throws a {@link ConfigurationError} where the stage is not keyed. */
  get stream(): IStream {
    if (this.#stream) return this.#stream
    throw new ConfigurationError(
      `stage "${this.name}" has no stream of its own, as it is not keyed: ask a stage that is named after a keyBy.`,
    )
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
    const stream = this.#stream
    const streamArnOf = (name: string): string => {
      const fed = feeds.find((candidate) => candidate.name === name)
      invariant(fed, `stage "${name}" was not made before "${stage.name}", which feeds it`)
      return fed.stream.streamArn
    }
    const fed = stage.feeds.map((feed) => ({
      stage: feed.stage,
      slots: feed.slots,
      streamArn: streamArnOf(feed.stage),
    }))
    return {
      formatVersion: 1,
      topology,
      sources: [source.bindingFor(stage.name)],
      sinks: [...sinks].map(([declaration, sink]) => sink.bindingFor(declaration)),
      deadLetters: deadLetterBinding(deadLetters),
      ...(table === undefined ? {} : { state: { tableName: table.tableName } }),
      ...(fed.length === 0 ? {} : { feeds: fed }),
      // Asked at synth, since the stream may still be overridden.
      ...(stream === undefined
        ? {}
        : {
            retentionMs: Lazy.any({ produce: () => retentionMsOf(stream) }) as never,
            upstreamRetentionMs: Lazy.any({ produce: () => this.#longestWayMs() }) as never,
          }),
    }
  }
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
