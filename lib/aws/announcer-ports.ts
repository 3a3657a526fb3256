/** What the announcer of an application runs on: the streams and the state tables of all its stages. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import type { Plan } from '../plan/plan.ts'
import type { StreamPlace } from '../plan/stage-bindings.ts'
import type { AnnouncerPorts } from '../runtime/announcer/knowledge.ts'
import type { Logger } from '../runtime/ports.ts'
import { DynamoDBStateStore } from './dynamodb-state-store.ts'
import { kinesisFramePublisher } from './frame-publisher-kinesis.ts'
import { kinesisLineage } from './kinesis-lineage.ts'
import { systemClock } from './system-clock.ts'

export interface AnnouncerPlaces {
  /** The stream that a keyed or feeding stage reads, and from when on where that is not all of it, in ms since 1970 UTC. */
  readonly streamOf: (stage: string) => StreamPlace & { readonly startingAtMs?: number }
  /** The name or the ARN of the table that a keyed or feeding stage keeps its progress in. */
  readonly tableOf: (stage: string) => string
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
  {
    kinesis,
    dynamodb,
    logger,
  }: { readonly kinesis: KinesisClient; readonly dynamodb: DynamoDBClient; readonly logger: Logger },
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
    withState.map(({ name }) => [name, kinesisLineage({ client: kinesis, ...streamOf(name), clock: systemClock })]),
  )
  const publishers = new Map(
    withState.flatMap((stage) => {
      if (stage.kind !== 'keyed') return []
      const options = { client: kinesis, ...streamOf(stage.name), slots: stage.slots, clock: systemClock, logger }
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
