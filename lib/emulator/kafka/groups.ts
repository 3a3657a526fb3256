/**
 * Consumer groups: what each has committed, and which of its members may still commit.
 *
 * 1. A rebalance makes a new generation. What a member of an older one commits is refused, and changes nothing.
 * 2. A topic that is deleted takes its committed offsets with it.
 */
import { KafkaError } from './errors.ts'
import type { PartitionOffset } from './shapes.ts'

interface Group {
  generation: number
  /** By topic, and there by partition. */
  readonly committed: Map<string, Map<number, number>>
}

export class ConsumerGroups {
  readonly #groups = new Map<string, Group>()

  /** Begins a generation of the group's members, and says which. */
  rebalance(name: string): number {
    const group = this.#group(name)
    group.generation += 1
    return group.generation
  }

  /** Commits for a member of a generation; without one, as an administrator does who sets offsets by hand. */
  commit(name: string, offsets: readonly PartitionOffset[], generation: number | undefined): void {
    const group = this.#group(name)
    if (generation !== undefined && generation !== group.generation) {
      throw new KafkaError(
        'ILLEGAL_GENERATION',
        `Group ${name} is in generation ${group.generation}: a member of generation ${generation} commits nothing.`,
      )
    }
    for (const { topic, partition, offset } of offsets) {
      const ofTopic = group.committed.get(topic) ?? new Map<number, number>()
      group.committed.set(topic, ofTopic.set(partition, offset))
    }
  }

  /** By partition, the offset that the group reads next; partitions without one are left out. */
  committed(name: string, topic: string): ReadonlyMap<number, number> {
    return new Map(this.#groups.get(name)?.committed.get(topic))
  }

  forgetTopic(topic: string): void {
    for (const { committed } of this.#groups.values()) committed.delete(topic)
  }

  #group(name: string): Group {
    const group = this.#groups.get(name) ?? { generation: 0, committed: new Map() }
    this.#groups.set(name, group)
    return group
  }
}
