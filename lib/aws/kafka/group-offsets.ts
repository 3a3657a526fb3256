/** What consumer groups have committed: of an event source mapping, how far Lambda has come. */
import { Admin } from '@platformatic/kafka'
import { type KafkaConnection, settings, within } from './kafka-client.ts'

export interface GroupOffsets {
  /**
   * By partition, the offset of the next record that the group is to have. Partitions of which it has committed nothing are left out, and a
   * group that the cluster does not know has none. Rejects with a `KafkaFailure`.
   */
  committed(group: string, topic: string, partitions: number): Promise<ReadonlyMap<number, bigint>>
  close(): Promise<void>
}

const answerMs = 10_000

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
      const [group] = await within(answerMs, admin.listConsumerGroupOffsets(asked))
      const found = group?.topics.find((topic) => topic.name === name)?.partitions ?? []
      return new Map(
        found.flatMap(({ partitionIndex, committedOffset }) =>
          committedOffset < 0n ? [] : [[partitionIndex, committedOffset] as const],
        ),
      )
    },
    close: () => admin.close(),
  }
}
