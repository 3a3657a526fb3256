/** Operations on shards: listing, splitting, merging, and scaling as a series of splits and merges. */
import { KinesisError } from './errors.ts'
import { HASH_KEY_COUNT, HASH_KEY_DIGITS, parseHashKey, uniformStarts } from './hash-key.ts'
import type {
  HashKeyRange,
  ListShardsInput,
  ListShardsOutput,
  MergeShardsInput,
  ShardDescription,
  ShardFilter,
  SplitShardInput,
  UpdateShardCountInput,
  UpdateShardCountOutput,
} from './shapes.ts'
import {
  areAdjacent,
  isExpired,
  openShardFor,
  type Shard,
  type Stream,
  sequenceOf,
  shardId,
  trimHorizonMs,
} from './stream.ts'
import { decodeShardsToken, encodeShardsToken } from './tokens.ts'
import {
  checkDecimal,
  checkRange,
  findOpenShard,
  findStream,
  streamArn,
  TOKEN_LIFE_MS,
  validationError,
  type World,
} from './world.ts'

const LARGEST_PAGE = 1_000

export function hashKeyRange(shard: Shard): HashKeyRange {
  return { StartingHashKey: String(shard.startHash), EndingHashKey: String(shard.endHash) }
}

export function describeShard(shard: Shard): ShardDescription {
  const [parent, adjacent] = shard.parents
  const end = shard.closedAtMs === undefined ? undefined : sequenceOf(shard, shard.log.nextNumber, shard.closedAtMs)
  return {
    ShardId: shard.id,
    ...(parent === undefined ? {} : { ParentShardId: shardId(parent) }),
    ...(adjacent === undefined ? {} : { AdjacentParentShardId: shardId(adjacent) }),
    HashKeyRange: hashKeyRange(shard),
    SequenceNumberRange: {
      StartingSequenceNumber: sequenceOf(shard, 0, shard.createdAtMs),
      ...(end === undefined ? {} : { EndingSequenceNumber: end }),
    },
  }
}

/** The shards that a filter lets through, in the order of their ids, without those that retention has taken. */
export function listedShards(world: World, stream: Stream, filter: ShardFilter | undefined): Shard[] {
  const nowMs = world.nowMs()
  const passes = shardPredicate(stream, filter, nowMs)
  return stream.shards.filter((shard) => !isExpired(stream, shard, nowMs) && passes(shard))
}

function shardPredicate(stream: Stream, filter: ShardFilter | undefined, nowMs: number): (shard: Shard) => boolean {
  const horizonMs = Math.max(stream.createdAtMs, trimHorizonMs(stream, nowMs))
  const openAt = (timeMs: number) => (shard: Shard) =>
    shard.createdAtMs <= timeMs && (shard.closedAtMs === undefined || shard.closedAtMs >= timeMs)
  const type = filter?.Type ?? 'FROM_TRIM_HORIZON'
  switch (type) {
    case 'FROM_TRIM_HORIZON':
      return () => true
    case 'AT_LATEST':
      return (shard) => shard.closedAtMs === undefined
    case 'AT_TRIM_HORIZON':
      return openAt(horizonMs)
    case 'AT_TIMESTAMP':
      return openAt(Math.max(horizonMs, filterTimeMs(filter)))
    case 'FROM_TIMESTAMP': {
      const fromMs = filterTimeMs(filter)
      return (shard) => shard.closedAtMs === undefined || shard.closedAtMs >= fromMs
    }
    case 'AFTER_SHARD_ID': {
      const after = filter?.ShardId
      if (after === undefined) {
        throw new KinesisError('InvalidArgumentException', 'The shard filter AFTER_SHARD_ID needs a ShardId.')
      }
      return (shard) => shard.id > after
    }
    default:
      throw validationError(
        'shardFilter.type',
        type satisfies never,
        'Member must satisfy enum value set of ShardFilterType',
      )
  }
}

function filterTimeMs(filter: ShardFilter | undefined): number {
  if (filter?.Timestamp === undefined) {
    throw new KinesisError('InvalidArgumentException', `The shard filter ${filter?.Type} needs a Timestamp.`)
  }
  return filter.Timestamp.getTime()
}

export function listShards(world: World, input: ListShardsInput): ListShardsOutput {
  checkRange('maxResults', input.MaxResults, 1, 10_000)
  const { stream, filter, after } = listingOf(world, input)
  const shards = listedShards(world, stream, filter).filter(({ id }) => id > after)
  const page = shards.slice(0, Math.min(input.MaxResults ?? LARGEST_PAGE, LARGEST_PAGE))
  const last = page.at(-1)
  if (page.length === shards.length || last === undefined) return { Shards: page.map(describeShard) }
  const NextToken = encodeShardsToken({
    stream: stream.name,
    streamCreatedAtMs: stream.createdAtMs,
    afterShard: last.index,
    filter,
    issuedAtMs: world.nowMs(),
  })
  return { Shards: page.map(describeShard), NextToken }
}

/** Which listing a request begins or goes on with. */
function listingOf(world: World, input: ListShardsInput) {
  const { NextToken, StreamName, StreamARN, ExclusiveStartShardId, ShardFilter } = input
  if (NextToken === undefined) {
    const stream = findStream(world, input)
    checkSameStream(world, stream, input.StreamCreationTimestamp?.getTime())
    return { stream, filter: ShardFilter, after: ExclusiveStartShardId ?? '' }
  }
  if (
    [StreamName, ExclusiveStartShardId, ShardFilter, input.StreamCreationTimestamp].some((field) => field !== undefined)
  ) {
    throw new KinesisError(
      'InvalidArgumentException',
      'NextToken goes on with a listing and cannot be combined with StreamName, ExclusiveStartShardId, ShardFilter or StreamCreationTimestamp.',
    )
  }
  const token = decodeShardsToken(NextToken)
  if (world.nowMs() - token.issuedAtMs > TOKEN_LIFE_MS) {
    throw new KinesisError('ExpiredNextTokenException', 'The NextToken is older than 300 seconds: list again.')
  }
  const stream = findStream(world, { StreamName: token.stream, StreamARN })
  checkSameStream(world, stream, token.streamCreatedAtMs)
  return { stream, filter: token.filter, after: shardId(token.afterShard) }
}

/** Refuses what belongs to an earlier stream of the same name. */
export function checkSameStream(world: World, stream: Stream, createdAtMs: number | undefined): void {
  if (createdAtMs !== undefined && createdAtMs !== stream.createdAtMs) {
    throw new KinesisError(
      'ResourceNotFoundException',
      `Stream ${stream.name} under account ${world.accountId} that was created at ${new Date(createdAtMs).toISOString()} not found.`,
    )
  }
}

/** Resharding is for provisioned streams only. */
function findProvisioned(
  world: World,
  input: { StreamName?: string | undefined; StreamARN?: string | undefined },
): Stream {
  const stream = findStream(world, input)
  if (stream.mode !== 'PROVISIONED') {
    throw new KinesisError(
      'ValidationException',
      `Stream ${stream.name} is ON_DEMAND: only a PROVISIONED stream is split, merged or scaled.`,
    )
  }
  return stream
}

export function splitShard(world: World, input: SplitShardInput): void {
  const stream = findProvisioned(world, input)
  const shard = findOpenShard(world, stream, input.ShardToSplit)
  checkDecimal('newStartingHashKey', input.NewStartingHashKey, HASH_KEY_DIGITS)
  const start = parseHashKey(input.NewStartingHashKey)
  if (start === undefined || start <= shard.startHash + 1n || start >= shard.endHash) {
    throw new KinesisError(
      'InvalidArgumentException',
      `NewStartingHashKey ${input.NewStartingHashKey} used in SplitShard() on shard ${shard.id} in stream ${stream.name} under account ${world.accountId} is not both greater than one plus the shard's StartingHashKey ${shard.startHash} and less than the shard's EndingHashKey ${shard.endHash}.`,
    )
  }
  commitSplit(world, stream, shard, start)
}

export function mergeShards(world: World, input: MergeShardsInput): void {
  const stream = findProvisioned(world, input)
  const shard = findOpenShard(world, stream, input.ShardToMerge)
  const adjacent = findOpenShard(world, stream, input.AdjacentShardToMerge)
  if (!areAdjacent(shard, adjacent)) {
    throw new KinesisError(
      'InvalidArgumentException',
      `Shards ${shard.id} and ${adjacent.id} in stream ${stream.name} under account ${world.accountId} are not an adjacent pair of shards eligible for merging`,
    )
  }
  commitMerge(world, stream, shard, adjacent)
}

function commitSplit(world: World, stream: Stream, shard: Shard, start: bigint): void {
  world.commit({
    type: 'shard-split',
    stream: stream.name,
    atMs: world.nowMs(),
    shard: shard.index,
    startHash: String(start),
  })
}

function commitMerge(world: World, stream: Stream, shard: Shard, adjacent: Shard): void {
  world.commit({
    type: 'shards-merged',
    stream: stream.name,
    atMs: world.nowMs(),
    shard: shard.index,
    adjacent: adjacent.index,
  })
}

/**
 * Scales to equal shards, as AWS does by splits and merges: first splits at every new boundary, then merges within every new range.
 * Where old and new ranges are not nested this leaves short-lived shards that are closed before they held a record.
 */
export function updateShardCount(world: World, input: UpdateShardCountInput): UpdateShardCountOutput {
  checkRange('targetShardCount', input.TargetShardCount, 1, 10_000)
  if (input.ScalingType !== 'UNIFORM_SCALING') {
    throw validationError('scalingType', input.ScalingType, 'Member must satisfy enum value set: [UNIFORM_SCALING]')
  }
  const stream = findProvisioned(world, input)
  const before = stream.open.length
  const target = input.TargetShardCount
  if (world.enforceLimits) checkScaling(before, target)
  const starts = uniformStarts(target)
  for (const start of starts) {
    const shard = openShardFor(stream, start)
    if (shard.startHash !== start) commitSplit(world, stream, shard, start)
  }
  starts.forEach((start, i) => {
    const end = (starts[i + 1] ?? HASH_KEY_COUNT) - 1n
    for (let first = openShardFor(stream, start); first.endHash < end; first = openShardFor(stream, start)) {
      commitMerge(world, stream, first, openShardFor(stream, first.endHash + 1n))
    }
  })
  return {
    StreamName: stream.name,
    StreamARN: streamArn(world, stream.name),
    CurrentShardCount: before,
    TargetShardCount: target,
  }
}

function checkScaling(before: number, target: number): void {
  const problem =
    target > before * 2
      ? 'scale up over double your current open shard count'
      : target * 2 < before && 'scale down below half your current open shard count'
  if (problem) {
    throw new KinesisError(
      'InvalidArgumentException',
      `UpdateShardCount cannot ${problem}. Current open shard count: ${before} Target shard count: ${target}`,
    )
  }
}
