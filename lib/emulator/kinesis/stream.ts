/**
 * Owns a stream and its shards: who is open for which hash keys, who descends from whom, what retention has taken.
 *
 * 1. The open shards cover [0, 2^128) without gap or overlap, at every instant.
 * 2. A shard never opens again; a closed one keeps its records until retention takes them.
 * 3. A child's sequence numbers and arrival times are not below its parents'.
 */
import { invariant } from '../../core/errors.ts'
import { HASH_KEY_COUNT, uniformStarts } from './hash-key.ts'
import { sequenceBase, sequenceNumber } from './sequence-number.ts'
import type { StreamModeName } from './shapes.ts'
import { ShardLog } from './shard-log.ts'
import { TokenBucket } from './token-bucket.ts'

const HOUR_MS = 3_600_000
const MEBIBYTE = 1_048_576

/** The four throughput limits of a shard. @see https://docs.aws.amazon.com/streams/latest/dev/service-sizes-and-limits.html */
export interface ShardLimits {
  readonly writtenRecords: TokenBucket
  readonly writtenBytes: TokenBucket
  readonly readCalls: TokenBucket
  readonly readBytes: TokenBucket
}

export interface Shard {
  /** Counts the stream's shards from 0; the shard's id is made of it. */
  readonly index: number
  readonly id: string
  /** First and last hash key, both inclusive. */
  readonly startHash: bigint
  readonly endHash: bigint
  /** Indexes of the parents: none, the split shard, or the merged one and its neighbour. */
  readonly parents: readonly number[]
  readonly children: number[]
  readonly epoch: number
  readonly sequenceBase: bigint
  readonly createdAtMs: number
  closedAtMs: number | undefined
  readonly log: ShardLog
  readonly limits: ShardLimits
}

export interface Stream {
  readonly name: string
  readonly mode: StreamModeName
  readonly createdAtMs: number
  retentionHours: number
  maxRecordKiB: number
  /** All shards that ever were; a shard's place is its index. */
  readonly shards: Shard[]
  /** The open shards in the order of their hash keys. */
  readonly open: Shard[]
  readonly tags: Map<string, string>
}

export function shardId(index: number): string {
  return `shardId-${String(index).padStart(12, '0')}`
}

/** A new stream with `shardCount` equal shards. */
export function newStream(spec: {
  name: string
  mode: StreamModeName
  atMs: number
  shardCount: number
  maxRecordKiB: number
}): Stream {
  const stream: Stream = {
    name: spec.name,
    mode: spec.mode,
    createdAtMs: spec.atMs,
    retentionHours: 24,
    maxRecordKiB: spec.maxRecordKiB,
    shards: [],
    open: [],
    tags: new Map(),
  }
  const starts = uniformStarts(spec.shardCount)
  starts.forEach((start, i) => {
    stream.open.push(addShard(stream, { start, end: (starts[i + 1] ?? HASH_KEY_COUNT) - 1n, parents: [] }, spec.atMs))
  })
  return stream
}

function addShard(
  stream: Stream,
  range: { start: bigint; end: bigint; parents: readonly Shard[] },
  atMs: number,
): Shard {
  const index = stream.shards.length
  const epoch = Math.max(Math.floor(atMs / 1_000), ...range.parents.map((parent) => parent.epoch + 1))
  const shard: Shard = {
    index,
    id: shardId(index),
    startHash: range.start,
    endHash: range.end,
    parents: range.parents.map((parent) => parent.index),
    children: [],
    epoch,
    sequenceBase: sequenceBase(epoch, index),
    createdAtMs: atMs,
    closedAtMs: undefined,
    log: new ShardLog(Math.max(0, ...range.parents.map((parent) => parent.log.lastArrivalMs))),
    limits: {
      writtenRecords: new TokenBucket(1_000),
      writtenBytes: new TokenBucket(MEBIBYTE),
      readCalls: new TokenBucket(5),
      readBytes: new TokenBucket(2 * MEBIBYTE),
    },
  }
  stream.shards.push(shard)
  for (const parent of range.parents) {
    parent.children.push(index)
    parent.closedAtMs = atMs
  }
  return shard
}

/** Closes an open shard and opens two: the second begins at hash key `at`. */
export function splitShard(stream: Stream, shard: Shard, at: bigint, atMs: number): void {
  const place = stream.open.indexOf(shard)
  invariant(place >= 0 && shard.startHash < at && at <= shard.endHash, `${shard.id} cannot be split at ${at}`)
  const lower = addShard(stream, { start: shard.startHash, end: at - 1n, parents: [shard] }, atMs)
  const upper = addShard(stream, { start: at, end: shard.endHash, parents: [shard] }, atMs)
  stream.open.splice(place, 1, lower, upper)
}

/** Closes two open neighbours and opens one; `shard` becomes the parent, `adjacent` the adjacent parent, in whichever order they lie. */
export function mergeShards(stream: Stream, shard: Shard, adjacent: Shard, atMs: number): void {
  const place = Math.min(stream.open.indexOf(shard), stream.open.indexOf(adjacent))
  invariant(place >= 0 && areAdjacent(shard, adjacent), `${shard.id} and ${adjacent.id} cannot be merged`)
  const [first, second] = shard.startHash < adjacent.startHash ? [shard, adjacent] : [adjacent, shard]
  const range = { start: first.startHash, end: second.endHash, parents: [shard, adjacent] }
  stream.open.splice(place, 2, addShard(stream, range, atMs))
}

export function areAdjacent(a: Shard, b: Shard): boolean {
  return a.endHash + 1n === b.startHash || b.endHash + 1n === a.startHash
}

/** The open shard that takes a hash key. */
export function openShardFor(stream: Stream, hashKey: bigint): Shard {
  let low = 0
  let high = stream.open.length - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if ((stream.open[middle]?.startHash ?? 0n) <= hashKey) low = middle
    else high = middle - 1
  }
  const shard = stream.open[low]
  invariant(shard, `stream ${stream.name} has no open shard`)
  return shard
}

/** The oldest arrival time that the stream still keeps. */
export function trimHorizonMs(stream: Stream, nowMs: number): number {
  return nowMs - stream.retentionHours * HOUR_MS
}

/** Whether retention has taken a closed shard and all that it held: it is listed no more. */
export function isExpired(stream: Stream, shard: Shard, nowMs: number): boolean {
  return shard.closedAtMs !== undefined && shard.closedAtMs < trimHorizonMs(stream, nowMs)
}

/** The sequence number of a record of the shard; number 0 gives the one that its range starts with. */
export function sequenceOf(shard: Shard, number: number, arrivalMs: number): string {
  return sequenceNumber(shard.sequenceBase, number, arrivalMs)
}
