/** Kinesis streams as sources and sinks. */
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import { EventSourceMapping, type IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import type { SinkBinding, SourceBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { MappingSettings, SinkConnection, SourceConnection } from './bind.ts'
import { checkPlace } from './place.ts'
import { refuseAtSynth } from './rendered.ts'
import { resourceIdentity } from './resource-identity.ts'
import { placesByItself } from './resource-rules.ts'
import { type BeginsAt, checkedPosition, positionOf, startingAt } from './starting-position.ts'

const readActions = [
  'kinesis:DescribeStream',
  'kinesis:DescribeStreamSummary',
  'kinesis:GetRecords',
  'kinesis:GetShardIterator',
  'kinesis:ListShards',
]

export interface KinesisSourceOptions {
  /**
   * Where reading begins when the mapping is first deployed: at the oldest record, or at the first that arrived at that
   * time or later. There is no 'LATEST': a mapping starts minutes after it is created, and what arrives meanwhile would
   * be lost.
   * @default 'TRIM_HORIZON'
   * @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-create.html
   */
  readonly startingPosition?: 'TRIM_HORIZON' | Date
}

/**
 * A source that reads a Kinesis stream, one batch of a shard at a time.
 *
 * Grants: to describe and read that stream, and to decrypt with its key where it has one of its own. A stream in another
 * region is refused; one in another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(orders, new KinesisSource(stream, { startingPosition: new Date('2026-11-01T00:00:00Z') }))
 */
export class KinesisSource implements SourceConnection {
  readonly type = 'source'
  readonly resource: string
  readonly stream: IStream
  readonly #begins: BeginsAt

  /** Throws a {@link ConfigurationError} for a starting position that would lose records, or is none. */
  constructor(stream: IStream, options: KinesisSourceOptions = {}) {
    this.stream = stream
    this.resource = resourceIdentity(stream, stream.streamArn)
    this.#begins = checkedPosition(options.startingPosition ?? 'TRIM_HORIZON', this.resource)
  }

  bindingFor(name: string): SourceBinding {
    return { name, kind: 'kinesis', streamArn: this.stream.streamArn, ...startingAt(this.#begins) }
  }

  grantLooking(target: IFunction): void {
    grantLooking(this.stream, target)
  }

  connect(scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping {
    checkPlace(target, { resource: this.stream, arn: this.stream.streamArn, actions: readActions })
    this.stream.grant(target, ...readActions)
    this.stream.encryptionKey?.grant(target, 'kms:Decrypt')
    return new EventSourceMapping(scope, 'Mapping', {
      target,
      eventSourceArn: this.stream.streamArn,
      ...settings,
      ...positionOf(this.#begins),
    })
  }
}

/** What it takes to list the shards of a stream and to see whether they hold more. */
export function grantLooking(stream: IStream, target: IFunction): void {
  const actions = ['kinesis:ListShards', 'kinesis:GetShardIterator', 'kinesis:GetRecords']
  checkPlace(target, { resource: stream, arn: stream.streamArn, actions })
  stream.grant(target, ...actions)
  stream.encryptionKey?.grant(target, 'kms:Decrypt')
}

export interface KinesisSinkOptions {
  /**
   * 'per-key' keeps the order of each partition key, with one unacknowledged record per key; 'none' fills every request
   * and lets a refused record be overtaken.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/**
 * A sink that writes to a Kinesis stream.
 *
 * Grants: PutRecords on that stream, and to make data keys with its key where it has one of its own. A stream in another
 * region is refused; one in another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(paidOrders, new KinesisSink(out, { ordering: 'none' }))
 */
export class KinesisSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly stream: IStream
  readonly #ordering: 'per-key' | 'none'

  constructor(stream: IStream, options: KinesisSinkOptions = {}) {
    this.stream = stream
    this.resource = resourceIdentity(stream, stream.streamArn)
    this.#ordering = options.ordering ?? 'per-key'
  }

  bindingFor({ name }: SinkDeclaration): SinkBinding {
    return { name, kind: 'kinesis', streamArn: this.stream.streamArn, ordering: this.#ordering }
  }

  connect(target: IFunction): void {
    grantPutRecords(this.stream, target)
    if (this.#ordering === 'none') return
    refuseAtSynth(target, this.stream, (properties) =>
      placesByItself(properties)
        ? [
            `the stream ${this.resource} has the record distribution AUTO, under which Kinesis keeps no order of a key, and a KinesisSink keeps it: leave the stream at USER_PARTITION_KEY, or say new KinesisSink(stream, { ordering: 'none' }).`,
          ]
        : [],
    )
  }
}

/** What writing to a stream takes, and no more. */
export function grantPutRecords(stream: IStream, target: IFunction): void {
  grantWriting(stream, target, ['kinesis:PutRecords'])
}

/** What a stage takes that feeds a keyed one: it writes frames, and tells its marks to every open shard. */
export function grantFeeding(stream: IStream, target: IFunction): void {
  grantWriting(stream, target, ['kinesis:PutRecords', 'kinesis:ListShards'])
}

function grantWriting(stream: IStream, target: IFunction, actions: string[]): void {
  checkPlace(target, { resource: stream, arn: stream.streamArn, actions })
  stream.grant(target, ...actions)
  stream.encryptionKey?.grant(target, 'kms:GenerateDataKey')
}
