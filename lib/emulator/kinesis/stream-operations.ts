/** Operations on streams as a whole: creating, deleting, settings, descriptions, tags. */
import { KinesisError } from './errors.ts'
import type {
  AddTagsInput,
  CreateStreamInput,
  DescribeStreamInput,
  DescribeStreamOutput,
  DescribeStreamSummaryOutput,
  ListStreamsInput,
  ListStreamsOutput,
  ListTagsInput,
  ListTagsOutput,
  RemoveTagsInput,
  RetentionInput,
  StreamReference,
  UpdateMaxRecordSizeInput,
} from './shapes.ts'
import { describeShard, listedShards } from './shard-operations.ts'
import type { Stream } from './stream.ts'
import { checkLength, checkRange, findStream, streamArn, validationError, type World } from './world.ts'

/** What AWS gives a new on-demand stream. */
const ON_DEMAND_SHARDS = 4
const LARGEST_SHARD_COUNT = 10_000
const LARGEST_RETENTION_HOURS = 8_760
const LARGEST_TAG_COUNT = 50

export function createStream(world: World, input: CreateStreamInput): void {
  const stream = input.StreamName
  if (!/^[a-zA-Z0-9_.-]{1,128}$/.test(stream)) {
    throw validationError('streamName', stream, 'Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]{1,128}')
  }
  const mode = input.StreamModeDetails?.StreamMode ?? 'PROVISIONED'
  if (mode !== 'PROVISIONED' && mode !== 'ON_DEMAND') {
    throw validationError('streamMode', mode, 'Member must satisfy enum value set: [PROVISIONED, ON_DEMAND]')
  }
  if ((mode === 'PROVISIONED') !== (input.ShardCount !== undefined)) {
    throw new KinesisError(
      'ValidationException',
      `A stream that is ${mode} ${mode === 'PROVISIONED' ? 'needs a' : 'takes no'} ShardCount.`,
    )
  }
  checkRange('shardCount', input.ShardCount, 1, LARGEST_SHARD_COUNT)
  checkRange('maxRecordSizeInKiB', input.MaxRecordSizeInKiB, 1_024, 10_240)
  if (world.streams.has(stream)) {
    throw new KinesisError(
      'ResourceInUseException',
      `Stream ${stream} under account ${world.accountId} already exists.`,
    )
  }
  checkTags(new Map(), input.Tags ?? {})
  world.commit({
    type: 'stream-created',
    stream,
    atMs: world.nowMs(),
    mode,
    shardCount: input.ShardCount ?? ON_DEMAND_SHARDS,
    maxRecordKiB: input.MaxRecordSizeInKiB ?? 1_024,
  })
  setTags(world, stream, input.Tags ?? {})
}

export function deleteStream(world: World, input: StreamReference): void {
  world.commit({ type: 'stream-deleted', stream: findStream(world, input).name })
}

export function updateMaxRecordSize(world: World, input: UpdateMaxRecordSizeInput): void {
  checkRange('maxRecordSizeInKiB', input.MaxRecordSizeInKiB, 1_024, 10_240)
  const stream = findStream(world, input)
  world.commit({ type: 'record-size-set', stream: stream.name, maxRecordKiB: input.MaxRecordSizeInKiB })
}

export function increaseRetention(world: World, input: RetentionInput): void {
  setRetention(world, input, (stream, hours) => hours < stream.retentionHours && 'less')
}

export function decreaseRetention(world: World, input: RetentionInput): void {
  setRetention(world, input, (stream, hours) => hours > stream.retentionHours && 'more')
}

function setRetention(
  world: World,
  input: RetentionInput,
  wrongDirection: (stream: Stream, hours: number) => string | false,
): void {
  const hours = input.RetentionPeriodHours
  const stream = findStream(world, input)
  const wrong = wrongDirection(stream, hours)
  const problem =
    hours < 24 || hours > LARGEST_RETENTION_HOURS
      ? `must be from 24 to ${LARGEST_RETENTION_HOURS}`
      : wrong && `is ${wrong} than the current ${stream.retentionHours}: use the opposite operation`
  if (problem) {
    throw new KinesisError(
      'InvalidArgumentException',
      `The retention period of ${hours} hours for stream ${stream.name} ${problem}.`,
    )
  }
  world.commit({ type: 'retention-set', stream: stream.name, hours })
}

function commonDescription(world: World, stream: Stream) {
  return {
    StreamName: stream.name,
    StreamARN: streamArn(world, stream.name),
    StreamStatus: 'ACTIVE',
    StreamModeDetails: { StreamMode: stream.mode },
    RetentionPeriodHours: stream.retentionHours,
    StreamCreationTimestamp: new Date(stream.createdAtMs),
    EnhancedMonitoring: [{ ShardLevelMetrics: [] }],
    EncryptionType: 'NONE',
  } as const
}

export function describeStream(world: World, input: DescribeStreamInput): DescribeStreamOutput {
  checkRange('limit', input.Limit, 1, 10_000)
  const stream = findStream(world, input)
  const limit = Math.min(input.Limit ?? 100, 100)
  const shards = listedShards(world, stream, undefined).filter(({ id }) => id > (input.ExclusiveStartShardId ?? ''))
  return {
    StreamDescription: {
      ...commonDescription(world, stream),
      Shards: shards.slice(0, limit).map(describeShard),
      HasMoreShards: shards.length > limit,
    },
  }
}

export function describeStreamSummary(world: World, input: StreamReference): DescribeStreamSummaryOutput {
  const stream = findStream(world, input)
  return {
    StreamDescriptionSummary: {
      ...commonDescription(world, stream),
      OpenShardCount: stream.open.length,
      ConsumerCount: 0,
      MaxRecordSizeInKiB: stream.maxRecordKiB,
      RecordDistributionStrategy: 'USER_PARTITION_KEY',
    },
  }
}

export function listStreams(world: World, input: ListStreamsInput): ListStreamsOutput {
  checkRange('limit', input.Limit, 1, 10_000)
  const after = input.NextToken ?? input.ExclusiveStartStreamName ?? ''
  const limit = input.Limit ?? 100
  const names = [...world.streams.keys()].sort().filter((name) => name > after)
  const page = names.slice(0, limit)
  const last = page.at(-1)
  const hasMore = names.length > limit
  return {
    StreamNames: page,
    HasMoreStreams: hasMore,
    ...(hasMore && last !== undefined ? { NextToken: last } : {}),
    StreamSummaries: page.map((StreamName) => {
      const { StreamARN, StreamStatus, StreamModeDetails, StreamCreationTimestamp } = commonDescription(
        world,
        findStream(world, { StreamName }),
      )
      return { StreamName, StreamARN, StreamStatus, StreamModeDetails, StreamCreationTimestamp }
    }),
  }
}

function checkTags(present: ReadonlyMap<string, string>, tags: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(tags)) {
    checkLength('tags.key', key.length, 1, 128)
    checkLength('tags.value', value.length, 0, 256)
  }
  const count = new Set([...present.keys(), ...Object.keys(tags)]).size
  if (count > LARGEST_TAG_COUNT) {
    throw new KinesisError('InvalidArgumentException', `${count} tags: a stream takes at most ${LARGEST_TAG_COUNT}.`)
  }
}

function setTags(world: World, stream: string, tags: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(tags)) world.commit({ type: 'tag-set', stream, key, value })
}

export function addTags(world: World, input: AddTagsInput): void {
  const stream = findStream(world, input)
  checkTags(stream.tags, input.Tags)
  setTags(world, stream.name, input.Tags)
}

export function removeTags(world: World, input: RemoveTagsInput): void {
  const stream = findStream(world, input)
  for (const key of input.TagKeys) world.commit({ type: 'tag-removed', stream: stream.name, key })
}

export function listTags(world: World, input: ListTagsInput): ListTagsOutput {
  checkRange('limit', input.Limit, 1, 50)
  const { tags } = findStream(world, input)
  const all = [...tags].map(([Key, Value]) => ({ Key, Value })).sort((a, b) => (a.Key < b.Key ? -1 : 1))
  const after = all.filter(({ Key }) => Key > (input.ExclusiveStartTagKey ?? ''))
  const limit = input.Limit ?? 50
  return { Tags: after.slice(0, limit), HasMoreTags: after.length > limit }
}
