/** Topics of a cluster, made and changed: what the deployment of an application does, and never one of its stages. */
import { Admin, ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from '@platformatic/kafka'
import { systemClock } from '../system-clock.ts'
import { described, type KafkaConnection } from './kafka-client.ts'
import { KafkaFailure, kafkaFailureOf, kafkaPasses } from './kafka-failure.ts'
import type { KafkaAdmin, KafkaTopic, NewTopic } from './kafka-port.ts'

const betweenLooksMs = 100

class TopicAdmin implements KafkaAdmin {
  readonly #admin: Admin

  constructor(connection: KafkaConnection) {
    this.#admin = new Admin({ clientId: 'millrace', ...connection, retries: 10, retryDelay: 250 })
  }

  async createTopic(name: string, { partitions, replicas = -1, configs = {} }: NewTopic, signal: AbortSignal) {
    const entries = Object.entries(configs).map(([key, value]) => ({ name: key, value }))
    try {
      await this.#admin.createTopics({ topics: [{ topic: name, partitions, replicas }], configs: entries })
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (!failure.names.has('TOPIC_ALREADY_EXISTS')) throw failure
    }
    return await this.#led(name, 1, signal)
  }

  async topic(name: string): Promise<KafkaTopic | undefined> {
    const topic = await this.#look(name, 2)
    return topic && described(name, topic)
  }

  async settingsOf(name: string): Promise<ReadonlyMap<string, string>> {
    try {
      const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: name }
      const [described] = await this.#admin.describeConfigs({ resources: [resource] })
      return new Map(described?.configs.map((setting) => [setting.name, setting.value ?? '']))
    } catch (thrown) {
      throw kafkaFailureOf(thrown)
    }
  }

  async changeSettings(name: string, settings: Readonly<Record<string, string>>): Promise<void> {
    const configOperation = IncrementalAlterConfigOperationTypes.SET
    const configs = Object.entries(settings).map(([key, value]) => ({ name: key, value, configOperation }))
    try {
      const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: name, configs }
      await this.#admin.incrementalAlterConfigs({ resources: [resource] })
    } catch (thrown) {
      throw kafkaFailureOf(thrown)
    }
  }

  async addPartitions(name: string, partitions: number, signal: AbortSignal): Promise<KafkaTopic> {
    try {
      // None, so that the cluster assigns: the protocol takes that, and the client's types and its strict mode do not.
      const topic = { name, count: partitions, assignments: null as never }
      await this.#admin.createPartitions({ topics: [topic] })
    } catch (thrown) {
      throw kafkaFailureOf(thrown)
    }
    return await this.#led(name, partitions, signal)
  }

  async deleteTopic(name: string): Promise<void> {
    try {
      await this.#admin.deleteTopics({ topics: [name] })
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (!failure.names.has('UNKNOWN_TOPIC_OR_PARTITION')) throw failure
    }
  }

  async close(): Promise<void> {
    await this.#admin.close()
  }

  async #led(name: string, atLeast: number, signal: AbortSignal): Promise<KafkaTopic> {
    while (!signal.aborted) {
      const topic = await this.#lookPatiently(name)
      const leaders = topic?.partitions.filter(({ leader }) => leader >= 0).length ?? 0
      if (topic && leaders >= atLeast && leaders === topic.partitionsCount) return described(name, topic)
      await systemClock.sleep(betweenLooksMs, signal)
    }
    throw new KafkaFailure('DEADLINE', `topic "${name}" has partitions without a leader`, { passes: true })
  }

  async #lookPatiently(name: string) {
    try {
      return await this.#look(name, 0)
    } catch (thrown) {
      if (kafkaPasses(thrown)) return undefined
      throw thrown
    }
  }

  async #look(name: string, retries: number) {
    try {
      const { topics } = await this.#admin.metadata({ topics: [name], forceUpdate: true, retries })
      return topics.get(name)
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (failure.names.has('UNKNOWN_TOPIC_OR_PARTITION')) return undefined
      throw failure
    }
  }
}

/**
 * Opens what makes topics. With IAM it takes `kafka-cluster:CreateTopic`, `AlterTopic`, `DeleteTopic` and `DescribeTopic`, and
 * for settings `DescribeTopicDynamicConfiguration` and `AlterTopicDynamicConfiguration`.
 *
 * @example
 * const topic = await openAdmin(connection).createTopic('orders-by-customer', { partitions: 8 }, signal)
 */
export const openAdmin = (connection: KafkaConnection): KafkaAdmin => new TopicAdmin(connection)
