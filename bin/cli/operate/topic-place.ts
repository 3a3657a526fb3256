/**
 * The Kafka topic that a stage reads, looked at from where the command runs. Its brokers must be reached from there, which those of MSK
 * mostly are in their own VPC alone: what is only in the tables and with Lambda is shown in any case.
 */
import type { GroupOffsets } from '../../../lib/aws/kafka/group-offsets.ts'
import type { KafkaReader } from '../../../lib/aws/kafka/kafka-port.ts'
import type { OpenKafka } from '../../../lib/aws/kafka/open-kafka.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../../lib/core/errors.ts'
import { TopicReader } from '../../../lib/local/reading/topic-reader.ts'
import type { KafkaCluster, SourceBinding } from '../../../lib/plan/stage-bindings.ts'
import type { PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import { once } from '../once.ts'
import type { GroupLag, OperatedStage } from './operated.ts'
import { firstWaiting, type Place } from './waiting.ts'

export type TopicSource = Extract<SourceBinding, { readonly kind: 'kafka' }> & { readonly cluster: KafkaCluster }

/** A source of Kafka of which it is known how its cluster is reached. */
export const isTopicSource = (source: SourceBinding | undefined): source is TopicSource =>
  source?.kind === 'kafka' && source.cluster !== undefined

export interface TopicPlaceOptions {
  readonly kafka: OpenKafka
  readonly source: TopicSource
  readonly offsets: GroupOffsets
  /** The consumer group of the stage's mapping now; undefined where there is no mapping. */
  readonly group: () => Promise<string | undefined>
}

const reachMs = 10_000

/** What can be asked of the topic. Whatever is asked throws a ConfigurationError where the brokers are not reached. */
export function topicPlace(options: TopicPlaceOptions): Pick<OperatedStage, 'lineage' | 'firstWaitingMs' | 'groupLag'> {
  const { kafka, source } = options
  const { topic, cluster, startingAtMs } = source
  const reader = kafka.reader(cluster)
  const reach = once(() => reached(reader, source))
  const waiting = new TopicReader({ reader, topic, clock: systemClock })
  return {
    lineage: reachable(kafka.lineage(source, startingAtMs), reach),
    firstWaitingMs: (...[partition, after, startsAtMs]: Place) =>
      firstWaiting(waiting, partition, after, startsAtMs ?? startingAtMs),
    async groupLag() {
      await reach()
      return lagOf(options, reader)
    },
  }
}

/** A lineage would ask until its time is up: whether there is anybody to answer is known sooner. */
function reachable(lineage: PartitionLineage, reach: () => Promise<void>): PartitionLineage {
  return {
    describe: (partition, signal) => lineage.describe(partition, signal),
    isDrained: (...place) => lineage.isDrained(...place),
    isCaughtUp: (...place) => lineage.isCaughtUp(...place),
    async list(signal) {
      await reach()
      return lineage.list(signal)
    },
  }
}

async function reached(reader: KafkaReader, { topic, cluster: { brokers } }: TopicSource): Promise<void> {
  try {
    await reader.topic(topic, AbortSignal.timeout(reachMs))
  } catch (error) {
    const { name, message } = describeError(error)
    throw new ConfigurationError(
      `The brokers ${brokers.join(', ')} do not answer here (${name}: ${message.split('\n')[0]}): run the command where they are reached, such as in the VPC of the cluster, as somebody who may describe the topic ${topic}.`,
      { cause: error },
    )
  }
}

async function lagOf(
  { source: { topic, startingAtMs }, offsets, group }: TopicPlaceOptions,
  reader: KafkaReader,
): Promise<GroupLag | undefined> {
  const signal = AbortSignal.timeout(reachMs * 3)
  const [name, found] = [await group(), await reader.topic(topic, signal)]
  if (name === undefined || found === undefined) return undefined
  const committed = await offsets.committed(name, topic, found.partitions)
  const partitions: GroupLag['partitions'][number][] = []
  for (let partition = 0; partition < found.partitions; partition++) {
    const end = (await reader.offsetOf(topic, partition, 'latest', signal)) ?? 0n
    const next =
      committed.get(partition) ?? (await reader.offsetOf(topic, partition, startingAtMs ?? 'earliest', signal)) ?? end
    partitions.push({
      partition: String(partition),
      committed: committed.get(partition)?.toString(),
      end: end.toString(),
      behind: Math.max(0, Number(end - next)),
    })
  }
  return { topic, group: name, partitions }
}
