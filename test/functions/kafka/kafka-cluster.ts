/** A cluster of the model, behind the ports of the production adapters. */
import { setImmediate } from 'node:timers/promises'
import type { KafkaProducer, KafkaReader, KafkaTopic } from '../../../lib/aws/kafka/kafka-port.ts'
import { KafkaError, type KafkaModel } from '../../../lib/emulator/kafka/index.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'

/** Time that moves from one sleeper to the next, and lets everything settle in between. */
export class PacedClock extends VirtualClock {
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs() + ms
    await setImmediate()
    for (let wait = this.nextWakeMs; wait !== undefined && this.nowMs() + wait <= endMs; wait = this.nextWakeMs) {
      this.advance(wait)
      await setImmediate()
    }
    this.advance(endMs - this.nowMs())
  }
}

function described(kafka: KafkaModel, name: string): KafkaTopic | undefined {
  try {
    const { topicId, partitions } = kafka.describeTopic(name)
    return { id: topicId, partitions }
  } catch (error) {
    if (error instanceof KafkaError && error.code === 'UNKNOWN_TOPIC_OR_PARTITION') return undefined
    throw error
  }
}

export function readerOf(kafka: KafkaModel): KafkaReader {
  return {
    topic: async (name) => described(kafka, name),
    async offsetOf(topic, partition, place) {
      const offset = kafka.offsetAt(topic, partition, typeof place === 'number' ? { timestampMs: place } : place)
      return offset === undefined ? undefined : BigInt(offset)
    },
    async fetch(topic, partition, offset) {
      const { topicId } = kafka.describeTopic(topic)
      const page = kafka.fetch({ topicId, partition, offset: Number(offset), maxRecords: 100 })
      const records = page.records.map(({ headers, key, offset: at, ...record }) => ({
        ...record,
        partition,
        offset: BigInt(at),
        key: key ?? undefined,
        headers: headers.map(({ name, value }) => ({ name, value: value ?? new Uint8Array() })),
      }))
      return { records, nextOffset: BigInt(page.nextOffset), endOffset: BigInt(page.endOffset) }
    },
    close: async () => undefined,
  }
}

/** An idempotent producer: what it sends twice is in the log once. */
export function producerOf(kafka: KafkaModel): KafkaProducer {
  const producerId = kafka.initProducer()
  const sequences = new Map<string, number>()
  return {
    async topic(name) {
      const found = described(kafka, name)
      if (found === undefined) throw new Error(`there is no topic ${name}`)
      return found
    },
    async send(topic, messages) {
      for (const { partition, key = null, value, headers = [], timestampMs } of messages) {
        const place = `${topic}/${partition}`
        const sequence = sequences.get(place) ?? 0
        const record = { key, value, headers, ...(timestampMs === undefined ? {} : { timestampMs }) }
        kafka.produce({ topic, partition, records: [record], producer: { producerId, epoch: 0, sequence } })
        sequences.set(place, sequence + 1)
      }
    },
    close: async () => undefined,
  }
}
