/**
 * Kinesis Data Streams as a state machine: the streams of one account in one region, in memory.
 *
 * 1. Time comes from the clock alone and nothing is random: the same calls at the same times give the same answers.
 * 2. Every change is an effect (effects.ts); the owner sees each one as it is applied and can apply it again elsewhere.
 * 3. A call that throws has changed nothing, but for the throughput that it used up.
 * 4. What the model does not have is refused with UnknownOperationException, never ignored.
 *
 * Where AWS takes time the model does not: a stream is ACTIVE at once after it is created, scaled or resharded, and is gone at
 * once after it is deleted. On-demand streams keep the four shards that they begin with.
 */
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { applyEffect, type KinesisEffect } from './effects.ts'
import { KinesisError } from './errors.ts'
import { getRecords, getShardIterator, putRecord, putRecords } from './record-operations.ts'
import { listShards, mergeShards, splitShard, updateShardCount } from './shard-operations.ts'
import type { Stream } from './stream.ts'
import * as streams from './stream-operations.ts'
import type { World } from './world.ts'

/** The operations by their names at AWS. */
const operations = {
  AddTagsToStream: streams.addTags,
  CreateStream: streams.createStream,
  DecreaseStreamRetentionPeriod: streams.decreaseRetention,
  DeleteStream: streams.deleteStream,
  DescribeStream: streams.describeStream,
  DescribeStreamSummary: streams.describeStreamSummary,
  GetRecords: getRecords,
  GetShardIterator: getShardIterator,
  IncreaseStreamRetentionPeriod: streams.increaseRetention,
  ListShards: listShards,
  ListStreams: streams.listStreams,
  ListTagsForStream: streams.listTags,
  MergeShards: mergeShards,
  PutRecord: putRecord,
  PutRecords: putRecords,
  RemoveTagsFromStream: streams.removeTags,
  SplitShard: splitShard,
  UpdateMaxRecordSize: streams.updateMaxRecordSize,
  UpdateShardCount: updateShardCount,
}

type Operations = typeof operations
export type KinesisOperationName = keyof Operations
export type KinesisInput<Name extends KinesisOperationName> = Parameters<Operations[Name]>[1]
export type KinesisOutput<Name extends KinesisOperationName> = ReturnType<Operations[Name]>

export interface KinesisModelOptions {
  readonly clock: Pick<Clock, 'nowMs'>
  /** Twelve digits. @default 000000000000 */
  readonly accountId?: string
  /** @default us-east-1 */
  readonly region?: string
  /**
   * Whether shards have the throughput of AWS: 1 MiB and 1,000 records written, 2 MiB and five GetRecords read a second; and
   * whether UpdateShardCount at most doubles or halves. Sizes of records, requests and answers are always enforced.
   * @default false
   */
  readonly enforceLimits?: boolean
  /** Sees every change, in order, after it was applied. It must not throw, and must copy what it keeps: bytes belong to the caller. */
  readonly onEffect?: (effect: KinesisEffect) => void
}

export interface KinesisModel {
  /**
   * Performs one operation. Throws a {@link KinesisError} named as the exception of AWS.
   *
   * @example
   * model.call('CreateStream', { StreamName: 'orders', ShardCount: 2 })
   * const { SequenceNumber } = model.call('PutRecord', { StreamName: 'orders', PartitionKey: 'a', Data: Buffer.from('1') })
   */
  call<Name extends KinesisOperationName>(name: Name, input: KinesisInput<Name>): KinesisOutput<Name>
  /** Applies an effect of an earlier model, without reporting it to `onEffect`. */
  restore(effect: KinesisEffect): void
}

/** Whether the model has an operation of this name. */
export function isKinesisOperation(name: string): name is KinesisOperationName {
  return Object.hasOwn(operations, name)
}

/**
 * Makes an empty model.
 *
 * @example
 * const model = createKinesisModel({ clock: { nowMs: () => 1_700_000_000_000 } })
 */
export function createKinesisModel(options: KinesisModelOptions): KinesisModel {
  const accountId = options.accountId ?? '000000000000'
  if (!/^\d{12}$/.test(accountId)) {
    throw new ConfigurationError(`The account id '${accountId}' is not one: give twelve digits.`)
  }
  const streamsByName = new Map<string, Stream>()
  const world: World = {
    accountId,
    region: options.region ?? 'us-east-1',
    enforceLimits: options.enforceLimits ?? false,
    streams: streamsByName,
    nowMs: () => Math.floor(options.clock.nowMs()),
    commit(effect) {
      const placed = applyEffect(streamsByName, effect)
      options.onEffect?.(effect)
      return placed
    },
  }
  return {
    call(name, input) {
      if (!isKinesisOperation(name)) throw unknownOperation(name)
      // The table pairs every name with its own input, which TypeScript cannot follow through a generic index.
      const operation = operations[name] as (world: World, input: unknown) => never
      return operation(world, input)
    },
    restore(effect) {
      applyEffect(streamsByName, effect)
    },
  }
}

/** The refusal of what the model does not have. */
export function unknownOperation(name: string): KinesisError {
  return new KinesisError(
    'UnknownOperationException',
    `The embedded Kinesis has no operation '${name}'. It has: ${Object.keys(operations).join(', ')}.`,
  )
}
