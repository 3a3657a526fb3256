import type { Clock } from '../../core/clock.ts'
import {
  type Checkpoint,
  EventSourceMapping,
  type MappingStatus,
  type ShardReader,
  type SourceFormat,
  type SourceRecord,
} from '../../emulator/event-source-mapping/index.ts'
import { watchReader } from './watched-reader.ts'

export interface StreamTailOptions {
  readonly reader: ShardReader
  readonly clock: Clock
  /** Receives every record of the stream from its beginning, per shard in order, children after their parents. */
  readonly onRecords: (records: readonly SourceRecord[]) => void
}

/** Reads a stream from its beginning and goes on reading what comes. */
export interface StreamTail {
  /** True once everything that was in the stream at `sinceMs` has been handed over. */
  hasRead(sinceMs: number): boolean
  status(): MappingStatus
  stop(): Promise<void>
}

const readEveryMs = 200

/** What a tail hands over is the records themselves. */
const recordsAsTheyAre: SourceFormat = {
  event: (records) => records,
  emptyEventBytes: 0,
  eventBytes: (record) => record.data.byteLength,
  filterKey: 'data',
  filterText: () => undefined,
  filterMetadata: () => ({}),
  batchInfo: () => ({}),
}

/**
 * Starts a tail. It is an event source mapping whose function is `onRecords` and whose checkpoints are forgotten.
 *
 * @example
 * const tail = await startStreamTail({ reader, clock, onRecords: (records) => console.log(records.length) })
 */
export async function startStreamTail({ reader, clock, onRecords }: StreamTailOptions): Promise<StreamTail> {
  const watched = watchReader(reader, clock)
  const checkpoints = new Map<string, Checkpoint>()
  const mapping = new EventSourceMapping({
    settings: {
      uuid: 'stream-tail',
      functionArn: 'stream-tail',
      startingPosition: 'TRIM_HORIZON',
      batchSize: 10_000,
      emulation: { pollIntervalMs: readEveryMs },
    },
    format: recordsAsTheyAre,
    reader: watched,
    invoker: {
      async invoke(records) {
        onRecords(records as readonly SourceRecord[])
        return { kind: 'answered', payload: null }
      },
    },
    checkpoints: {
      load: async () => checkpoints,
      save: async (shardId, checkpoint) => void checkpoints.set(shardId, checkpoint),
    },
    clock,
  })
  await mapping.start()
  return {
    hasRead: (sinceMs) => isDone(mapping.status(), (shardId) => watched.hasReachedEnd(shardId, sinceMs)),
    status: () => mapping.status(),
    stop: () => mapping.stop(),
  }
}

/** Every shard is known to have been read to its end, and nothing that was read waits. */
export function isDone(status: MappingStatus, hasReachedEnd: (shardId: string) => boolean): boolean {
  const { shards } = status
  return (
    shards.length > 0 &&
    shards.every(
      ({ shardId, state, unfinished }) => state === 'drained' || (unfinished === 0 && hasReachedEnd(shardId)),
    )
  )
}
