/** The resources of one stage: a function, its logs and the mapping that feeds it. */
import { Stack } from 'aws-cdk-lib'
import { type EventSourceMapping, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import type { StagePlan } from '../plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection, SourceConnection } from './bind.ts'
import { bundlingFor, checkHandlerExport, locateCode } from './bundle.ts'
import { type DeadLetterTarget, deadLetterBinding, grantDeadLetters } from './dead-letters.ts'
import { type StageProps, settingsOf } from './stage-settings.ts'

/** Everything that one stage is made of. */
export interface StageParts {
  readonly topology: string
  readonly stage: StagePlan
  readonly entry: string
  readonly props: StageProps
  readonly source: SourceConnection
  /** The sinks that the stage writes to, with their connections. */
  readonly sinks: ReadonlyMap<SinkDeclaration, SinkConnection>
  readonly deadLetters: DeadLetterTarget
}

/** One deployed stage. Its resources are public, so that whatever is generated can be changed, alarmed on or granted to. */
export class StageResources extends Construct {
  /** The stage's name: that of its source. */
  readonly name: string
  readonly function: NodejsFunction
  /** The event source mapping that invokes the function. */
  readonly mapping: EventSourceMapping
  readonly logGroup: LogGroup

  constructor(scope: Construct, parts: StageParts) {
    const { stage, source, sinks, deadLetters, props } = parts
    super(scope, stage.name)
    this.name = stage.name
    const settings = settingsOf(stage.name, props)
    const bindings: StageBindings = {
      formatVersion: 1,
      topology: parts.topology,
      sources: [source.bindingFor(stage.source.name)],
      sinks: [...sinks].map(([declaration, sink]) => sink.bindingFor(declaration)),
      deadLetters: deadLetterBinding(deadLetters),
    }
    const code = locateCode(props.entry ?? parts.entry)
    checkHandlerExport(stage.name, code.entry, settings.handler)
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
}
