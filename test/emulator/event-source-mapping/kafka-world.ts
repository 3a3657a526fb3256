import {
  type ConsumerGroup,
  type InvocationInfo,
  type InvocationOutcome,
  KafkaEventSourceMapping,
  type KafkaMappingSettings,
  type KafkaSourceOptions,
  kafkaFormat,
  type ModelTopicOptions,
  modelGroup,
  modelTopic,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import { KafkaModel, type NewRecord, type TopicSettings } from '../../../lib/emulator/kafka/index.ts'
import { answered, MemoryDestination } from './memory-ports.ts'
import { VirtualClock } from './virtual-clock.ts'

export const topic = 'my-orders'
export const clusterArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/test/1'
export const uuid = 'e5a1c0de-0000-4000-8000-000000000002'

/** One event row as the function sees it. */
export interface Row {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly value?: string
  readonly headers: readonly Readonly<Record<string, readonly number[]>>[]
}

export interface KafkaDelivery {
  readonly event: { readonly records: Readonly<Record<string, readonly Row[]>> }
  /** Each record as `partition:offset`, in the order of the event. */
  readonly records: readonly string[]
  readonly info: InvocationInfo
  readonly atMs: number
}

/** Reports records, given as `partition:offset`. */
export const reportsItems = (...records: string[]): InvocationOutcome =>
  answered({
    batchItemFailures: records.map((record) => {
      const [partition, offset] = record.split(':')
      return { itemIdentifier: { partition: `${topic}-${partition}`, offset: Number(offset) } }
    }),
  })

export interface KafkaWorldOptions {
  readonly topic?: TopicSettings
  readonly reader?: ModelTopicOptions
  readonly format?: Partial<KafkaSourceOptions>
  readonly hasDestination?: boolean
  /** Stands before the group of the model. */
  readonly group?: (group: ConsumerGroup) => ConsumerGroup
}

/** A mapping over the model of a topic, with a function that answers as the test says. */
export class KafkaWorld {
  readonly clock = new VirtualClock()
  readonly kafka = new KafkaModel({ clock: this.clock })
  readonly destination = new MemoryDestination()
  readonly deliveries: KafkaDelivery[] = []
  readonly settings: KafkaMappingSettings
  readonly #options: KafkaWorldOptions
  mapping: KafkaEventSourceMapping
  answer: (delivery: KafkaDelivery, index: number) => InvocationOutcome | Promise<InvocationOutcome> = () =>
    answered(null)

  constructor(settings: Partial<KafkaMappingSettings> = {}, options: KafkaWorldOptions = {}) {
    this.#options = options
    this.kafka.createTopic(topic, { partitions: 2, ...options.topic })
    this.settings = {
      uuid,
      functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:orders',
      startingPosition: 'TRIM_HORIZON',
      mode: 'provisioned',
      functionResponseTypes: ['ReportBatchItemFailures'],
      ...settings,
    }
    this.mapping = this.create()
  }

  /** Another mapping on the same cluster and group: a restart. */
  create(): KafkaEventSourceMapping {
    const { kafka, settings, clock } = this
    const { group = (same) => same } = this.#options
    return new KafkaEventSourceMapping({
      settings,
      format: kafkaFormat({ topic, clusterArn, bootstrapServers: 'b-1.test:9098', ...this.#options.format }),
      reader: modelTopic(kafka, topic, this.#options.reader),
      group: group(modelGroup(kafka, topic, this.group)),
      invoker: { invoke: async (event, info) => this.#invoke(event as KafkaDelivery['event'], info) },
      clock,
      ...(this.#options.hasDestination ? { onFailure: this.destination } : {}),
    })
  }

  get group(): string {
    return this.settings.consumerGroupId ?? uuid
  }

  async #invoke(event: KafkaDelivery['event'], info: InvocationInfo): Promise<InvocationOutcome> {
    const rows = Object.values(event.records).flat()
    const records = rows.map(({ partition, offset }) => `${partition}:${offset}`)
    const delivery = { event, records, info, atMs: this.clock.nowMs() }
    return this.answer(delivery, this.deliveries.push(delivery) - 1)
  }

  /** Produces values to a partition, or whole records. */
  put(partition: number, ...values: readonly (string | NewRecord)[]): void {
    for (const value of values) {
      const record = typeof value === 'string' ? { value: Buffer.from(value) } : value
      this.kafka.produce({ topic, partition, records: [record] })
    }
  }

  /** Starts the mapping and lets time pass. */
  async run(ms = 1_000): Promise<void> {
    await this.mapping.start()
    await this.clock.advance(ms)
  }

  async stop(ms = 0): Promise<void> {
    const stopped = this.mapping.stop()
    await this.clock.advance(ms)
    await stopped
  }

  /** The records of every delivery, such as `['0:0 0:1 1:0']`. */
  get batches(): readonly string[] {
    return this.deliveries.map(({ records }) => records.join(' '))
  }

  /** What the group has committed, by partition. */
  get committed(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.kafka.committedOffsets(this.group, topic))
  }
}
