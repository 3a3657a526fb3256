/**
 * The consumer group of one topic, with a single member: what commits offsets for the mapping of a local run. No function of an
 * application is in a group; on AWS the event source mapping is.
 *
 * 1. A membership commits with the generation that it joined in, and the broker refuses it once there is another. The client's own
 *    commit would join again by itself, and write what it had read before over what somebody else has done since.
 * 2. Heartbeats, and joining again after a rebalance, are the client's affair; who was in the generation before is told by its next
 *    commit.
 * 3. The classic protocol of groups is used, and brokers of Kafka 3.5 or newer.
 */
import { Consumer, offsetCommitV9 } from '@platformatic/kafka'
import { destroy, type KafkaConnection, settings, topicOf, within } from './kafka-client.ts'
import { kafkaFailureOf } from './kafka-failure.ts'
import type { KafkaGroup, KafkaMembership } from './kafka-port.ts'

/** A group and the topic that it reads. */
export interface GroupOptions {
  readonly group: string
  readonly topic: string
}

/** A member that is gone without a word is given up by the broker after so long, in ms. */
const sessionTimeout = 10_000
const heartbeatInterval = 1_000
/** A member of a process that was killed is waited for when the next one joins. */
const joinMs = sessionTimeout + 5_000
const callMs = 5_000

/** What a broker answers to a member of a generation that is over. */
const overNames = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS']

class LoneMember implements KafkaGroup {
  readonly #connection: KafkaConnection
  readonly #options: GroupOptions
  #consumer: Consumer | undefined

  constructor(connection: KafkaConnection, options: GroupOptions) {
    this.#connection = connection
    this.#options = options
  }

  async join(onLost: () => void): Promise<KafkaMembership> {
    await this.close()
    const { group, topic } = this.#options
    const timing = { sessionTimeout, rebalanceTimeout: sessionTimeout, heartbeatInterval }
    const consumer = new Consumer({ ...settings, ...this.#connection, ...timing, groupId: group, retries: 5 })
    // Where the client could not join again by itself: the next commit says so.
    consumer.on('error', () => undefined)
    consumer.topics.track(topic)
    try {
      await within(joinMs, consumer.joinGroup({}))
    } catch (failure) {
      destroy(consumer)
      throw failure
    }
    this.#consumer = consumer
    return new Generation(consumer, this.#options, () => {
      if (this.#consumer === consumer) onLost()
    })
  }

  async close(): Promise<void> {
    const consumer = this.#consumer
    this.#consumer = undefined
    if (consumer === undefined) return
    // A broker that does not answer finds out by itself.
    await within(callMs, consumer.close()).catch(() => destroy(consumer))
  }
}

class Generation implements KafkaMembership {
  readonly #consumer: Consumer
  readonly #options: GroupOptions
  readonly #onLost: () => void
  readonly #generationId: number
  readonly #memberId: string

  constructor(consumer: Consumer, options: GroupOptions, onLost: () => void) {
    this.#consumer = consumer
    this.#options = options
    this.#onLost = onLost
    this.#generationId = consumer.generationId
    this.#memberId = String(consumer.memberId)
  }

  async committed(): Promise<ReadonlyMap<number, bigint>> {
    const { topic } = this.#options
    const found = await within(callMs, this.#committed())
    const offsets = found.get(topic)?.entries() ?? []
    return new Map([...offsets].filter(([, offset]) => offset !== undefined && offset >= 0n))
  }

  async #committed() {
    const { topic } = this.#options
    const { partitionsCount } = await topicOf(this.#consumer, topic, true)
    const partitions = Array.from({ length: partitionsCount }, (_, partition) => partition)
    return await this.#consumer.listCommittedOffsets({ topics: [{ topic, partitions }] })
  }

  async commit(partition: number, offset: bigint): Promise<void> {
    try {
      await within(callMs, this.#commit(partition, offset))
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (overNames.some((name) => failure.names.has(name))) this.#onLost()
      throw failure
    }
  }

  async #commit(partitionIndex: number, committedOffset: bigint): Promise<void> {
    const { group, topic } = this.#options
    const coordinator = await this.#consumer.findGroupCoordinator()
    const { brokers } = await this.#consumer.metadata({ topics: [topic], retries: 2 })
    const broker = brokers.get(coordinator)
    if (broker === undefined)
      throw new Error(`the coordinator of group "${group}", broker ${coordinator}, is not known`)
    const connection = await this.#consumer.connections.get(broker)
    const partition = { partitionIndex, committedOffset, committedLeaderEpoch: -1, committedMetadata: null }
    const topics = [{ name: topic, partitions: [partition] }]
    await offsetCommitV9.api.async(connection, group, this.#generationId, this.#memberId, null, topics)
  }
}

/**
 * Opens a group, which is joined by `join`.
 *
 * @example
 * const group = openGroup(connection, { group: mapping.uuid, topic: 'orders' })
 * const membership = await group.join(() => console.log('somebody else has the partitions now'))
 * await membership.commit(0, 17n)
 */
export const openGroup = (connection: KafkaConnection, options: GroupOptions): KafkaGroup =>
  new LoneMember(connection, options)
