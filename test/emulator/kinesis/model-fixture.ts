import {
  createKinesisModel,
  type GetRecordsOutput,
  type KinesisModel,
  type KinesisModelOptions,
  type KinesisRecord,
} from '../../../lib/emulator/kinesis/index.ts'

export const START_MS = 1_700_000_000_000

export interface VirtualClock {
  nowMs(): number
  advance(ms: number): void
}

export function virtualClock(startMs = START_MS): VirtualClock {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
  }
}

/** A model with the stream `s`. */
export function modelWithStream(shardCount: number, options: Partial<KinesisModelOptions> = {}) {
  const clock = virtualClock()
  const model = createKinesisModel({ clock, ...options })
  model.call('CreateStream', { StreamName: 's', ShardCount: shardCount })
  return { clock, model }
}

export function put(model: KinesisModel, partitionKey: string, data = '', explicitHashKey?: string) {
  return model.call('PutRecord', {
    StreamName: 's',
    PartitionKey: partitionKey,
    Data: Buffer.from(data),
    ExplicitHashKey: explicitHashKey,
  })
}

export function iterator(
  model: KinesisModel,
  shardId: string,
  type: 'TRIM_HORIZON' | 'LATEST' = 'TRIM_HORIZON',
): string {
  return model.call('GetShardIterator', { StreamName: 's', ShardId: shardId, ShardIteratorType: type }).ShardIterator
}

/** Reads from an iterator until the shard ends or nothing is left. */
export function readOn(
  model: KinesisModel,
  from: string,
  limit?: number,
): { records: KinesisRecord[]; last: GetRecordsOutput } {
  const records: KinesisRecord[] = []
  for (let next = from; ; ) {
    const last = model.call('GetRecords', { ShardIterator: next, Limit: limit })
    records.push(...last.Records)
    if (last.NextShardIterator === null || last.MillisBehindLatest === 0) return { records, last }
    next = last.NextShardIterator
  }
}

export function readShard(model: KinesisModel, shardId: string, limit?: number) {
  return readOn(model, iterator(model, shardId), limit)
}

export function shards(model: KinesisModel) {
  return model.call('ListShards', { StreamName: 's' }).Shards
}

export function openShards(model: KinesisModel) {
  return model.call('ListShards', { StreamName: 's', ShardFilter: { Type: 'AT_LATEST' } }).Shards
}

/** The name of the exception that a call throws. */
export function exceptionOf(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return (error as Error).name
  }
  return 'nothing was thrown'
}
