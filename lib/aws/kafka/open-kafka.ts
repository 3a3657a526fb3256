/**
 * What a function opens of Kafka, from what it is bound to. Clusters of one address share a producer and a reader: so there is one
 * send in flight per cluster and function, and one connection per broker.
 */
import type { KafkaCluster, TopicPlace } from '../../plan/stage-bindings.ts'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { FramePublisher } from '../../runtime/ports.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Sink } from '../../runtime/sink.ts'
import type { DeadLetterOffload } from '../dead-letters/offload.ts'
import type { Environment } from '../function-environment.ts'
import type { DeliveryPorts } from '../ordered-delivery.ts'
import { systemClock } from '../system-clock.ts'
import { sampledTrace } from '../trace.ts'
import { kafkaDeadLetters } from './dead-letter-kafka.ts'
import { kafkaFramePublisher } from './frame-publisher-kafka.ts'
import { type KafkaConnection, openProducer, openReader } from './kafka-client.ts'
import { kafkaConnections } from './kafka-connections.ts'
import { kafkaLineage } from './kafka-lineage.ts'
import type { KafkaProducer, KafkaReader } from './kafka-port.ts'
import { kafkaSink } from './kafka-sink.ts'

/** Opens what is bound to Kafka. Clients are made with the first thing that goes to their cluster. */
export class OpenKafka {
  readonly #environment: Environment
  readonly #delivery: DeliveryPorts
  readonly #connectionOf: (cluster: KafkaCluster) => KafkaConnection
  readonly #producers = new Map<string, KafkaProducer>()
  readonly #readers = new Map<string, KafkaReader>()

  constructor(environment: Environment, delivery: DeliveryPorts) {
    this.#environment = environment
    this.#delivery = delivery
    this.#connectionOf = kafkaConnections(environment)
  }

  /** `origin` names the sink among all that write to the topic: `<topology>/<sink>`. */
  sink({ topic, cluster }: TopicPlace, origin: string): Sink {
    return kafkaSink({ producer: this.#producer(cluster), topic, origin, ...this.#delivery }) as Sink
  }

  deadLetters({ topic, cluster }: TopicPlace, offload: DeadLetterOffload | undefined): Sink<DeadLetter> {
    const options = { producer: this.#producer(cluster), topic, ...this.#delivery, ...(offload && { offload }) }
    return kafkaDeadLetters(options) as Sink<DeadLetter>
  }

  frames({ topic, cluster, partitions, topicId }: TopicPlace & { readonly partitions: number }): FramePublisher {
    const trace = () => sampledTrace(this.#environment)
    return kafkaFramePublisher({
      producer: this.#producer(cluster),
      topic,
      partitions,
      topicId,
      trace,
      ...this.#delivery,
    })
  }

  lineage({ topic, cluster, partitions, topicId }: TopicPlace, startingAtMs?: number): PartitionLineage {
    const reader = this.reader(cluster)
    return kafkaLineage({ reader, topic, partitions, topicId, startingAtMs, clock: systemClock })
  }

  /** Reads any topic of the cluster. */
  reader(cluster: KafkaCluster): KafkaReader {
    return once(this.#readers, cluster, () => openReader(this.#connectionOf(cluster)))
  }

  /** Ends all connections, which otherwise last as long as the process. */
  async close(): Promise<void> {
    await Promise.all([...this.#producers.values(), ...this.#readers.values()].map((client) => client.close()))
  }

  #producer(cluster: KafkaCluster): KafkaProducer {
    return once(this.#producers, cluster, () => openProducer(this.#connectionOf(cluster)))
  }
}

function once<Client>(clients: Map<string, Client>, cluster: KafkaCluster, open: () => Client): Client {
  const name = JSON.stringify(cluster)
  const client = clients.get(name) ?? open()
  clients.set(name, client)
  return client
}
