/** A topology on AWS: one function, one mapping and one log group per stage, and one place for dead letters. */
import { Annotations } from 'aws-cdk-lib'
import { Construct } from 'constructs'
import { invariant } from '../core/errors.ts'
import { type BoundName, checkBindings } from '../plan/bindings.ts'
import { type Plan, plan, type StagePlan, stageNamed } from '../plan/plan.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { Topology } from '../topology/topology.ts'
import type { Bound, SinkConnection, SourceConnection } from './bind.ts'
import { DeadLetters, type DeadLetterTarget, refuseDeadLettersAsSource } from './dead-letters.ts'
import { StageResources } from './stage.ts'
import type { StageProps } from './stage-settings.ts'

export interface StreamApplicationProps {
  readonly topology: Topology
  /** The file that exports the handler, relative to the folder in which the CDK app runs. */
  readonly entry: string
  /** One {@link bind} for each source and each sink of the topology. */
  readonly bind: readonly Bound[]
  /** Where records go that cannot be processed. @default DeadLetters.queue() */
  readonly deadLetters?: DeadLetters
  /** What to tune, by the name of the stage. @default every stage has the defaults of {@link StageProps} */
  readonly stages?: Readonly<Record<string, StageProps>>
}

/**
 * Deploys a topology. Whatever is generated can be reached: `application.stage('orders').function`.
 *
 * Construct ids follow the names of the topology, so that adding a stage replaces nothing. Throws a
 * {@link ConfigurationError} for a topology that cannot run, a name that is unbound, unknown or bound twice, records that
 * would go in a circle, a resource in another region, a setting beyond the limits of Lambda, a missing handler file, one that
 * exports no handler and a missing esbuild.
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
  /** Every stage, in the order in which its source was declared. */
  readonly stages: readonly StageResources[]

  constructor(scope: Construct, id: string, props: StreamApplicationProps) {
    super(scope, id)
    this.plan = plan(props.topology)
    for (const hint of this.plan.hints) Annotations.of(this).addInfoV2('millrace:hint', hint)
    const connections = new Connections(props.bind)
    checkBindings(this.plan, connections.boundSources, connections.boundSinks)
    for (const name of Object.keys(props.stages ?? {})) stageNamed(this.plan, name)
    this.deadLetters = (props.deadLetters ?? DeadLetters.queue())(this)
    refuseDeadLettersAsSource(this.deadLetters, connections.boundSources)
    this.stages = this.plan.stages.map(
      (stage) =>
        new StageResources(this, {
          topology: this.plan.topology,
          stage,
          entry: props.entry,
          props: props.stages?.[stage.name] ?? {},
          source: connections.source(stage),
          sinks: connections.sinks(stage, this.plan),
          deadLetters: this.deadLetters,
        }),
    )
  }

  /** The resources of a stage. Throws a {@link ConfigurationError} that names the stages where there is none of that name. */
  stage(name: string): StageResources {
    const stage = this.stages.find((candidate) => candidate.name === stageNamed(this.plan, name).name)
    invariant(stage, `stage "${name}" is planned but was not made`)
    return stage
  }
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
        sources.push({ name, resource: connection.resource })
      } else {
        this.#sinks.set(name, connection)
        sinks.push({ name, resource: connection.resource ?? `the sink "${name}"` })
      }
    }
    this.boundSources = sources
    this.boundSinks = sinks
  }

  source(stage: StagePlan): SourceConnection {
    const source = this.#sources.get(stage.source.name)
    invariant(source, `source "${stage.source.name}" was not checked to be bound`)
    return source
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
