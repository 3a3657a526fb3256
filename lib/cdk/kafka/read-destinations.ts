import { Stack } from 'aws-cdk-lib'
import { EventSourceMapping } from 'aws-cdk-lib/aws-lambda'
import type { IConstruct } from 'constructs'
import { type RenderedProperties, refuseAtSynth, renderedProperties } from '../rendered.ts'

/** Lambda sends to a topic of the cluster that it reads from. */
const clusterOf = ({ EventSourceArn, SelfManagedEventSource }: RenderedProperties): string =>
  JSON.stringify(EventSourceArn ?? SelfManagedEventSource)

const topicsOf = ({ Topics }: RenderedProperties): readonly unknown[] => (Array.isArray(Topics) ? Topics : [])

/**
 * Refuses at synth an override by which a mapping of Kafka sends what it gives up to a topic that a mapping of the stack reads: it
 * would come back.
 */
export function refuseDestinationsThatAreRead(scope: IConstruct, mapping: EventSourceMapping): void {
  refuseAtSynth(scope, mapping, (properties) => {
    const destination = String(Object(Object(properties.DestinationConfig).OnFailure).Destination)
    if (!destination.startsWith('kafka://')) return []
    const topic = destination.slice('kafka://'.length)
    const isRead = Stack.of(scope)
      .node.findAll()
      .filter((construct) => construct instanceof EventSourceMapping)
      .map((other) => renderedProperties(other) ?? {})
      .some((other) => clusterOf(other) === clusterOf(properties) && topicsOf(other).includes(topic))
    if (!isRead) return []
    return [
      `the mapping ${mapping.node.path} has DestinationConfig ${JSON.stringify(properties.DestinationConfig)}, a topic that a mapping reads: what was given up would come back for ever; give a topic that nothing here reads.`,
    ]
  })
}
