/**
 * Every change of the model as data. An operation checks its request, then commits effects; applying the same effects in the
 * same order to an empty model gives the same streams, records and sequence numbers, which is how a journal restores them.
 *
 * Effects carry their time, because a restored model must not ask the clock when something happened.
 */
import { invariant } from '../../core/errors.ts'
import type { StreamModeName } from './shapes.ts'
import { mergeShards, newStream, type Shard, type Stream, splitShard, trimHorizonMs } from './stream.ts'

/** A record and the shard, by index, that takes it. */
export interface RoutedRecord {
  readonly shard: number
  readonly partitionKey: string
  readonly data: Uint8Array
}

export type KinesisEffect =
  | {
      readonly type: 'stream-created'
      readonly stream: string
      readonly atMs: number
      readonly mode: StreamModeName
      readonly shardCount: number
      readonly maxRecordKiB: number
    }
  | { readonly type: 'stream-deleted'; readonly stream: string }
  | {
      readonly type: 'records-put'
      readonly stream: string
      readonly atMs: number
      readonly records: readonly RoutedRecord[]
    }
  | {
      readonly type: 'shard-split'
      readonly stream: string
      readonly atMs: number
      readonly shard: number
      readonly startHash: string
    }
  | {
      readonly type: 'shards-merged'
      readonly stream: string
      readonly atMs: number
      readonly shard: number
      readonly adjacent: number
    }
  | { readonly type: 'retention-set'; readonly stream: string; readonly hours: number }
  | { readonly type: 'record-size-set'; readonly stream: string; readonly maxRecordKiB: number }
  | { readonly type: 'tag-set'; readonly stream: string; readonly key: string; readonly value: string }
  | { readonly type: 'tag-removed'; readonly stream: string; readonly key: string }

/** Where the log put a record. */
export interface PlacedRecord {
  readonly shard: Shard
  readonly number: number
  readonly arrivalMs: number
}

/** Changes the streams as the effect says. Returns where its records went, in their order. */
export function applyEffect(streams: Map<string, Stream>, effect: KinesisEffect): readonly PlacedRecord[] {
  if (effect.type === 'stream-created') {
    streams.set(effect.stream, newStream({ ...effect, name: effect.stream }))
    return []
  }
  const stream = streams.get(effect.stream)
  invariant(stream, `an effect of type ${effect.type} names the stream ${effect.stream}, which does not exist`)
  switch (effect.type) {
    case 'records-put':
      return effect.records.map((record) => place(stream, record, effect.atMs))
    case 'stream-deleted':
      streams.delete(effect.stream)
      break
    case 'shard-split':
      splitShard(stream, shardAt(stream, effect.shard), BigInt(effect.startHash), effect.atMs)
      break
    case 'shards-merged':
      mergeShards(stream, shardAt(stream, effect.shard), shardAt(stream, effect.adjacent), effect.atMs)
      break
    case 'retention-set':
      stream.retentionHours = effect.hours
      break
    case 'record-size-set':
      stream.maxRecordKiB = effect.maxRecordKiB
      break
    case 'tag-set':
      stream.tags.set(effect.key, effect.value)
      break
    case 'tag-removed':
      stream.tags.delete(effect.key)
      break
    default:
      invariant(false, `an effect has the unknown type ${(effect satisfies never as KinesisEffect).type}`)
  }
  return []
}

function place(stream: Stream, record: RoutedRecord, atMs: number): PlacedRecord {
  const shard = shardAt(stream, record.shard)
  shard.log.trimBefore(trimHorizonMs(stream, atMs))
  return { shard, ...shard.log.append(record.partitionKey, record.data, atMs) }
}

function shardAt(stream: Stream, index: number): Shard {
  const shard = stream.shards[index]
  invariant(shard, `stream ${stream.name} has no shard ${index}`)
  return shard
}
