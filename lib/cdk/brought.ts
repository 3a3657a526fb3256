/** Streams, topics and tables that the user brings for stages: each belongs to its stage alone. */
import { ConfigurationError } from '../core/errors.ts'
import type { BoundName } from '../plan/bindings.ts'
import type { DeadLetterTarget } from './dead-letters.ts'
import type { ClusterConnection } from './kafka/cluster.ts'
import { topicIdentity } from './kafka/topic-name.ts'
import { isBrought } from './keyed-resources.ts'
import { resourceIdentity } from './resource-identity.ts'
import type { StageProps } from './stage-settings.ts'

/** What else an application reads and writes. */
export interface OtherUses {
  readonly sources: readonly BoundName[]
  readonly sinks: readonly BoundName[]
  readonly deadLetters: DeadLetterTarget
  /** The cluster of the topics of keyed stages. @default none */
  readonly topicsIn: ClusterConnection | undefined
}

/**
 * Throws a {@link ConfigurationError} where a stream, a topic or a table that is brought has another use in the application: a keyed stage
 * takes every record of its stream for a frame, and every item of its table for its own.
 */
export function refuseSharedResources(stages: Readonly<Record<string, StageProps>>, others: OtherUses): void {
  const uses = new Map<string, string>()
  for (const { name, resource } of others.sources) uses.set(resource, `source "${name}"`)
  for (const { name, resource } of others.sinks) uses.set(resource, `sink "${name}"`)
  const { deadLetters, topicsIn } = others
  if (deadLetters.kind === 'kinesis')
    uses.set(resourceIdentity(deadLetters.stream, deadLetters.stream.streamArn), 'where dead letters go')
  if (deadLetters.kind === 'kafka')
    uses.set(topicIdentity(deadLetters.cluster, deadLetters.topic), 'where dead letters go')
  for (const [stage, { stream, table, topic }] of Object.entries(stages)) {
    if (topicsIn && topic?.name !== undefined)
      take(uses, topicIdentity(topicsIn, topic.name), `the topic of stage "${stage}"`)
    if (isBrought(stream)) take(uses, resourceIdentity(stream, stream.streamArn), `the stream of stage "${stage}"`)
    if (isBrought(table)) take(uses, resourceIdentity(table, table.tableArn), `the table of stage "${stage}"`)
  }
}

function take(uses: Map<string, string>, resource: string, use: string): void {
  const other = uses.get(resource)
  if (other === undefined) {
    uses.set(resource, use)
    return
  }
  throw new ConfigurationError(
    `${use} is ${resource}, which is also ${other}: the stage takes all that is in it for its own; bring one that nothing else uses.`,
  )
}
