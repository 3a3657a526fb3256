/** What the announcer of an application runs on: the streams and the state tables of all its stages. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { ConfigurationError } from '../../core/errors.ts'
import type { Plan } from '../../plan/plan.ts'
import type { StreamPlace, TopicPlace } from '../../plan/stage-bindings.ts'
import type { AnnouncerPorts } from '../../runtime/announcer/knowledge.ts'
import type { Logger } from '../../runtime/ports.ts'
import type { OpenKafka } from '../kafka/open-kafka.ts'
import { kinesisFramePublisher } from '../kinesis/frame-publisher.ts'
import { kinesisLineage } from '../kinesis/lineage.ts'
import { DynamoDBStateStore } from '../state-table/store.ts'
import { systemClock } from '../system-clock.ts'

export interface AnnouncerPlaces {
  /** The stream or the topic that a keyed or feeding stage reads, and from when on where that is not all of it, in ms since 1970 UTC. */
  readonly streamOf: (stage: string) => (StreamPlace | TopicPlace) & { readonly startingAtMs?: number }
  /** The name or the ARN of the table that a keyed or feeding stage keeps its progress in. */
  readonly tableOf: (stage: string) => string
}

export interface AnnouncerClients {
  readonly kinesis: KinesisClient
  readonly dynamodb: DynamoDBClient
  /** Needed where a stage reads a topic. */
  readonly kafka?: OpenKafka
  readonly logger: Logger
}

/**
 * Opens the ports of {@link announce}.
 *
 * @example
 * const ports = announcerPorts(planned, { kinesis, dynamodb, logger }, { streamOf, tableOf })
 * await announce({ planned, ports, signal })
 */
export function announcerPorts(
  planned: Plan,
  { kinesis, dynamodb, kafka, logger }: AnnouncerClients,
  { streamOf, tableOf }: AnnouncerPlaces,
): AnnouncerPorts {
  const withState = planned.stages.filter(({ kind }) => kind !== 'stateless')
  const stores = new Map(
    withState.map(({ name }) => {
      const tableName = tableOf(name)
      return [name, new DynamoDBStateStore({ client: dynamodb, tableName, stage: name, clock: systemClock })]
    }),
  )
  const lineages = new Map(
    withState.map(({ name }) => {
      const place = streamOf(name)
      if ('topic' in place) return [name, onKafka(name, kafka).lineage(place, place.startingAtMs)]
      return [name, kinesisLineage({ client: kinesis, ...place, clock: systemClock })]
    }),
  )
  const publishers = new Map(
    withState.flatMap((stage) => {
      if (stage.kind !== 'keyed') return []
      const place = streamOf(stage.name)
      if ('topic' in place)
        return [[stage.name, onKafka(stage.name, kafka).frames(madeWith(stage.name, place))]] as const
      const options = { client: kinesis, ...place, slots: stage.slots, clock: systemClock, logger }
      return [[stage.name, kinesisFramePublisher(options)]] as const
    }),
  )
  return {
    clock: systemClock,
    state: (stage) => stores.get(stage),
    lineage: (stage) => lineages.get(stage),
    frames: (stage) => publishers.get(stage),
  }
}

function onKafka(stage: string, kafka: OpenKafka | undefined): OpenKafka {
  if (kafka !== undefined) return kafka
  throw new ConfigurationError(`stage "${stage}" reads a topic, and the announcer was opened without Kafka.`)
}

function madeWith(stage: string, place: TopicPlace): TopicPlace & { readonly partitions: number } {
  const { partitions } = place
  if (partitions !== undefined) return { ...place, partitions }
  throw new ConfigurationError(
    `the binding of the keyed stage "${stage}" does not say how many partitions its topic was made with: deploy it again.`,
  )
}
