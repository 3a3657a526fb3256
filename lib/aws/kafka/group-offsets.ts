/** What consumer groups have committed: of an event source mapping, how far Lambda has come. */
import { Admin } from '@platformatic/kafka'
import { systemClock } from '../system-clock.ts'
import { inTime, type KafkaConnection, settings } from './kafka-client.ts'
import { kafkaFailureOf } from './kafka-failure.ts'

export interface GroupOffsets {
  /**
   * By partition, the offset of the next record that the group is to have. Partitions of which it has committed nothing are left out, and a
   * group that the cluster does not know has none. Rejects with a `KafkaFailure`.
   */
  committed(group: string, topic: string, partitions: number): Promise<ReadonlyMap<number, bigint>>
  close(): Promise<void>
}

const withinMs = 10_000
const { signal: never } = new AbortController()

/**
 * Reads the offsets of consumer groups. With IAM it takes `kafka-cluster:Connect`, `DescribeGroup` and `DescribeTopic`.
 *
 * @example
 * const offsets = await openGroupOffsets(connection).committed('orders-group', 'orders', 8)
 */
export function openGroupOffsets(connection: KafkaConnection): GroupOffsets {
  const admin = new Admin({ ...settings, ...connection, retries: 3 })
  return {
    async committed(groupId, name, partitions) {
      const partitionIndexes = Array.from({ length: partitions }, (_, index) => index)
      const asked = { groups: [{ groupId, topics: [{ name, partitionIndexes }] }] }
      try {
        const [group] = await inTime(systemClock, withinMs, admin.listConsumerGroupOffsets(asked), never, 0)
        const found = group?.topics.find((topic) => topic.name === name)?.partitions ?? []
        return new Map(
          found.flatMap(({ partitionIndex, committedOffset }) =>
            committedOffset < 0n ? [] : [[partitionIndex, committedOffset] as const],
          ),
        )
      } catch (thrown) {
        throw kafkaFailureOf(thrown)
      }
    },
    close: () => admin.close(),
  }
}
