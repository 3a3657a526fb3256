/** A Kafka topic as readers of shards see it: partitions that have no parents, and positions that are offsets. */
import type { KafkaReader } from '../../aws/kafka/kafka-port.ts'
import type { ReadPosition, ShardDescription } from '../../emulator/event-source-mapping/index.ts'

/** A position that is not said by a record, which has its offset. */
export type NamedPosition = Exclude<ReadPosition, { readonly at: 'after' }>

/** As many partitions as shards. */
export const partitionsAsShards = (partitions: number): readonly ShardDescription[] =>
  Array.from({ length: partitions }, (_, partition) => ({ shardId: String(partition), parentIds: [] }))

/** The offset of a position, as `offsetOf` finds that of a place in one partition. */
export async function offsetAt(
  position: NamedPosition,
  offsetOf: (place: Parameters<KafkaReader['offsetOf']>[2]) => ReturnType<KafkaReader['offsetOf']>,
): Promise<bigint> {
  const places = { 'trim-horizon': 'earliest', latest: 'latest' } as const
  const found = await offsetOf(position.at === 'timestamp' ? position.timestampMs : places[position.at])
  // No record of that time or a later one: reading begins with the next.
  return found ?? (await offsetOf('latest')) ?? 0n
}
