/** What an event source mapping of Kafka asks of the cluster. Any method may reject: the mapping shows why, and tries again. */
import type { CheckpointStore, ReadPosition, ShardReader } from './ports.ts'

/**
 * Reads one topic. Its partitions are listed as shards without parents, named by their numbers in decimal digits; sequence numbers are
 * offsets, records are of the kind KafkaSourceRecord, and no partition is ever closed.
 */
export interface TopicReader extends ShardReader {
  /** The id of the topic: another says that it was deleted and made again. */
  topicId(): Promise<string>
  /** The offset at a place, that of the end where no record has the time or a later one. */
  offsetAt(partition: string, position: Exclude<ReadPosition, { at: 'after' }>): Promise<number>
}

/** The consumer group of a mapping. */
export interface ConsumerGroup {
  /**
   * Joins with all pollers, which ends the generation before: whatever members of that one save from now on is refused. The store has
   * by partition what is committed, as the position after the last record that is done. `onLost` is called where the group has begun
   * a generation that was not joined here: the mapping then joins anew.
   */
  join(onLost: () => void): Promise<CheckpointStore>
}
