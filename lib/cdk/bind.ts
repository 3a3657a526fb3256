/** What ties a source or a sink of a topology to a resource of a stack. */
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import type { EventSourceMapping, EventSourceMappingOptions, IFunction } from 'aws-cdk-lib/aws-lambda'
import type { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import type { Construct } from 'constructs'
import type { SinkBinding, SourceBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkHandle, SourceHandle } from '../topology/handles.ts'
import type { ClusterConnection } from './kafka/cluster.ts'

/** How a mapping reads, whatever it reads from. The construct makes it of the stage's settings. */
export type MappingSettings = Required<
  Pick<
    EventSourceMappingOptions,
    | 'batchSize'
    | 'maxBatchingWindow'
    | 'parallelizationFactor'
    | 'enabled'
    | 'retryAttempts'
    | 'bisectBatchOnError'
    | 'reportBatchItemFailures'
  >
>

/** A resource that a stage reads, such as a {@link KinesisSource}. */
export interface SourceConnection {
  readonly type: 'source'
  /** Tells two resources apart: equal for two connections to one resource, and free of tokens. */
  readonly resource: string
  /** The stream whose shards are read, where it is one: a stage that keeps progress refuses one that mixes up its order. */
  readonly stream?: IStream
  /** The Kafka cluster that it is in: who lists its partitions stands where that is reached. @default none */
  readonly cluster?: ClusterConnection
  /** What a function is told of it; `looks` says whether the function itself lists its partitions. @default it does not */
  bindingFor(name: string, looks?: boolean): SourceBinding
  /** Makes the mapping and grants the function what it needs to read. */
  connect(scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping
  /** Why it cannot feed a keyed stage, and what to bind instead. @default it can */
  readonly feedsNoKeyedStage?: string
  /**
   * Grants the announcer what it needs to list the partitions and to see whether they hold more. Left out by a resource whose
   * partitions cannot be listed, which then cannot feed a keyed stage.
   */
  grantLooking?(target: IFunction): void
}

/** A resource that a stage writes to, such as a {@link KinesisSink}. */
export interface SinkConnection {
  readonly type: 'sink'
  /** As {@link SourceConnection.resource}. @default the sink's own, shared with nothing */
  readonly resource?: string
  /** The Kafka cluster that it is in: who writes to it stands where that is reached. @default none */
  readonly cluster?: ClusterConnection
  /** What the function is told of it. Throws a {@link ConfigurationError} where it cannot take what the topology declares. */
  bindingFor(sink: SinkDeclaration): SinkBinding
  /** Grants the function what it needs to write, and no more. */
  connect(target: NodejsFunction): void
}

/** A name of a topology, tied to a resource. Make one with {@link bind}. */
export type Bound =
  | { readonly name: string; readonly connection: SourceConnection }
  | { readonly name: string; readonly connection: SinkConnection }

/**
 * Ties a source to what it reads, or a sink to what it writes to. A source bound to a sink's resource does not compile.
 *
 * @example
 * bind: [bind(orders, new KinesisSource(stream)), bind(paidOrders, new KinesisSink(out))]
 */
export function bind<I>(source: SourceHandle<I>, to: SourceConnection): Bound
export function bind<T>(sink: SinkHandle<T>, to: SinkConnection): Bound
export function bind<T>(handle: SourceHandle<T> | SinkHandle<T>, to: SourceConnection | SinkConnection): Bound {
  return { name: handle.name, connection: to } as Bound
}
