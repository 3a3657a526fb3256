import type { Clock } from '../../core/clock.ts'
import type { ShardReader } from '../../emulator/event-source-mapping/index.ts'

/** A reader that remembers of each shard how much was read, and when it was last seen with nothing left to read. */
export interface WatchedReader extends ShardReader {
  /**
   * True when a read that began after `sinceMs` found the shard's end: then everything that was in the shard at `sinceMs` has been
   * read. A closed shard that was read to its end stays true for ever.
   */
  hasReachedEnd(shardId: string, sinceMs: number): boolean
  /** Records of the shard that were read since the reader was made. */
  recordsRead(shardId: string): number
}

/**
 * Wraps a reader. Its iterators carry the shard that they belong to.
 *
 * @example
 * const reader = watchReader(new KinesisShardReader({ client, streamName, clock }), clock)
 */
export function watchReader(reader: ShardReader, clock: Clock): WatchedReader {
  const endSeenAtMs = new Map<string, number>()
  const recordsRead = new Map<string, number>()
  return {
    listShards: () => reader.listShards(),
    open: async (shardId, position) => `${shardId} ${await reader.open(shardId, position)}`,
    async read(iterator, limit) {
      const space = iterator.indexOf(' ')
      const shardId = iterator.slice(0, space)
      const startedMs = clock.nowMs()
      const answer = await reader.read(iterator.slice(space + 1), limit)
      recordsRead.set(shardId, (recordsRead.get(shardId) ?? 0) + answer.records.length)
      if (answer.nextIterator === null) endSeenAtMs.set(shardId, Number.POSITIVE_INFINITY)
      else if (answer.millisBehindLatest === 0) endSeenAtMs.set(shardId, startedMs)
      return { ...answer, nextIterator: answer.nextIterator === null ? null : `${shardId} ${answer.nextIterator}` }
    },
    hasReachedEnd: (shardId, sinceMs) => (endSeenAtMs.get(shardId) ?? Number.NEGATIVE_INFINITY) > sinceMs,
    recordsRead: (shardId) => recordsRead.get(shardId) ?? 0,
  }
}
