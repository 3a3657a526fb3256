/** The resources of one stage: a function, its logs and the mapping that feeds it, and of its own what it reads and keeps. */
import { Stack } from 'aws-cdk-lib'
import type { TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import type { Stream } from 'aws-cdk-lib/aws-kinesis'
import { type EventSourceMapping, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
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
import { grantProgress, grantState, stageStream, stageTable } from './keyed-resources.ts'
import { grantFeeding, KinesisSource } from './kinesis.ts'
import { type StageProps, settingsOf } from './stage-settings.ts'

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
  /** The event source mapping that invokes the function. */
  readonly mapping: EventSourceMapping
  readonly logGroup: LogGroup
  readonly #stream: Stream | undefined
  readonly #table: TableV2 | undefined

  constructor(scope: Construct, parts: StageParts) {
    const { stage, sinks, deadLetters, props } = parts
    super(scope, stage.name)
    this.name = stage.name
    const settings = settingsOf(stage, props)
    if (stage.kind === 'keyed') this.#stream = stageStream(this, stage.name, props.stream)
    if (stage.kind !== 'stateless') this.#table = stageTable(this, props.table)
    const source = this.#stream === undefined ? parts.source : new KinesisSource(this.#stream)
    invariant(source, `source "${stage.name}" was not checked to be bound`)
    const bindings = this.#bindings(parts, source)
    const code = locateCode(props.entry ?? parts.entry)
    checkHandlerExport(`stage "${stage.name}"`, code.entry, settings.handler)
    this.logGroup = new LogGroup(this, 'Logs', { retention: settings.logRetention })
    this.function = new NodejsFunction(this, 'Function', {
      description: `Stage "${stage.name}" of the topology "${parts.topology}"`,
      architecture: settings.architecture,
      memorySize: settings.memorySize,
      timeout: settings.timeout,
      tracing: Tracing.DISABLED,
      ...settings.function,
      ...code,
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
    for (const sink of sinks.values()) sink.connect(this.function)
    grantDeadLetters(deadLetters, this.function)
    for (const { stream } of parts.feeds) grantFeeding(stream, this.function)
    if (this.#table) (stage.kind === 'keyed' ? grantState : grantProgress)(this.#table, this.function)
    // Without end and without a destination: the stage makes dead letters of its own, so the mapping must drop nothing.
    const { batchSize, maxBatchingWindow, parallelizationFactor, enabled } = settings
    this.mapping = source.connect(this, this.function, {
      batchSize,
      maxBatchingWindow,
      parallelizationFactor,
      enabled,
      retryAttempts: -1,
      bisectBatchOnError: true,
      reportBatchItemFailures: true,
    })
  }

  /** The stream of a keyed stage. Throws a {@link ConfigurationError} where the stage is not keyed. */
  get stream(): Stream {
    if (this.#stream) return this.#stream
    throw new ConfigurationError(
      `stage "${this.name}" has no stream of its own, as it is not keyed: ask a stage that is named after a keyBy.`,
    )
  }

  /**
   * The table that the stage keeps its state and its progress in, or, where it only feeds keyed stages, its progress. Throws a
   * {@link ConfigurationError} where it does neither and so keeps nothing.
   */
  get table(): TableV2 {
    if (this.#table) return this.#table
    throw new ConfigurationError(
      `stage "${this.name}" has no table, as it keeps nothing: ask a stage that is named after a keyBy, or one that feeds it.`,
    )
  }

  #bindings({ topology, stage, sinks, deadLetters, feeds }: StageParts, source: SourceConnection): StageBindings {
    const table = this.#table
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
    }
  }
}
