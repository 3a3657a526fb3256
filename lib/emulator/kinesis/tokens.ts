import { isCount, readToken, writeToken } from '../token-fields.ts'
import { KinesisError } from './errors.ts'
import type { ShardFilter } from './shapes.ts'

/**
 * Shard iterators and paging tokens hold all that they mean, so that the model keeps no list of them and they outlive a restart.
 * To clients they are opaque.
 */
export interface IteratorToken {
  readonly stream: string
  /** Tells a stream from an earlier one of its name. */
  readonly streamCreatedAtMs: number
  readonly shard: number
  /** The number of the next record to read. */
  readonly number: number
  readonly issuedAtMs: number
}

export interface ShardsToken {
  readonly stream: string
  readonly streamCreatedAtMs: number
  readonly afterShard: number
  readonly filter: ShardFilter | undefined
  readonly issuedAtMs: number
}

export function encodeIterator(token: IteratorToken): string {
  return writeToken(['iterator', token.stream, token.streamCreatedAtMs, token.shard, token.number, token.issuedAtMs])
}

export function decodeIterator(text: string): IteratorToken {
  const [kind, stream, streamCreatedAtMs, shard, number, issuedAtMs] = readToken(text)
  if (
    kind === 'iterator' &&
    typeof stream === 'string' &&
    isCount(streamCreatedAtMs) &&
    isCount(shard) &&
    isCount(number) &&
    isCount(issuedAtMs)
  ) {
    return { stream, streamCreatedAtMs, shard, number, issuedAtMs }
  }
  throw new KinesisError(
    'InvalidArgumentException',
    'Invalid ShardIterator: take one from GetShardIterator or GetRecords.',
  )
}

export function encodeShardsToken(token: ShardsToken): string {
  const { Type, ShardId, Timestamp } = token.filter ?? {}
  const filter = [Type ?? null, ShardId ?? null, Timestamp?.getTime() ?? null]
  return writeToken(['shards', token.stream, token.streamCreatedAtMs, token.afterShard, filter, token.issuedAtMs])
}

export function decodeShardsToken(text: string): ShardsToken {
  const [kind, stream, streamCreatedAtMs, afterShard, filter, issuedAtMs] = readToken(text)
  if (
    kind === 'shards' &&
    typeof stream === 'string' &&
    isCount(streamCreatedAtMs) &&
    isCount(afterShard) &&
    Array.isArray(filter) &&
    isCount(issuedAtMs)
  ) {
    const [Type, ShardId, timestampMs] = filter
    const Timestamp = timestampMs === null ? undefined : new Date(timestampMs)
    const shardFilter = Type === null ? undefined : { Type, ShardId: ShardId ?? undefined, Timestamp }
    return { stream, streamCreatedAtMs, afterShard, filter: shardFilter, issuedAtMs }
  }
  throw new KinesisError('InvalidArgumentException', 'Invalid NextToken: take one from a ListShards answer.')
}
