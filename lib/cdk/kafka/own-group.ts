import { Fn, Stack, Token, TokenComparison } from 'aws-cdk-lib'
import { type CfnEventSourceMapping, EventSourceMapping } from 'aws-cdk-lib/aws-lambda'
import type { IConstruct } from 'constructs'
import { renderedProperties } from '../rendered.ts'
import { valueIdentity } from '../resource-identity.ts'

/**
 * Refuses at synth a mapping of Kafka whose group another mapping of the app has on the same cluster, whoever made that: Kafka deals the
 * records of a group out to its members.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-consumer-group-id.html
 */
export function refuseSharedGroup(scope: IConstruct, mapping: EventSourceMapping): void {
  scope.node.addValidation({
    validate: () => {
      const group = groupOf(mapping)
      if (group === undefined) return []
      const other = scope.node.root.node
        .findAll()
        .filter((construct) => construct instanceof EventSourceMapping)
        .find((another) => another !== mapping && groupOf(another) === group && haveOneCluster(another, mapping))
      if (other === undefined) return []
      return [
        `the mapping ${mapping.node.path} has the consumerGroupId ${group} of the cluster ${clusterOf(mapping)}, as the mapping ${other.node.path} has: each would get a part of the records only; give each a group of its own, or leave \`consumerGroupId\` out.`,
      ]
    },
  })
}

/** Its own or an override's. What only the deployment knows is compared within a stack. */
function groupOf(mapping: EventSourceMapping): string | undefined {
  const { AmazonManagedKafkaEventSourceConfig, SelfManagedKafkaEventSourceConfig } = renderedProperties(mapping) ?? {}
  const group = Object(AmazonManagedKafkaEventSourceConfig ?? SelfManagedKafkaEventSourceConfig).ConsumerGroupId
  if (group === undefined || typeof group === 'string') return group && `"${group}"`
  return `${JSON.stringify(group)} of ${Stack.of(mapping).node.path}`
}

/** A name may stand for another cluster in another account or region. */
function haveOneCluster(one: EventSourceMapping, other: EventSourceMapping): boolean {
  const [stack, otherStack] = [Stack.of(one), Stack.of(other)]
  const areApart = (['account', 'region'] as const).some(
    (what) => Token.compareStrings(stack[what], otherStack[what]) === TokenComparison.DIFFERENT,
  )
  return !areApart && clusterOf(one) === clusterOf(other)
}

function clusterOf(mapping: EventSourceMapping): string {
  const { eventSourceArn, selfManagedEventSource } = mapping.node.defaultChild as CfnEventSourceMapping
  if (eventSourceArn !== undefined) return valueIdentity(eventSourceArn)
  const { kafkaBootstrapServers } = Object(Object(selfManagedEventSource).endpoints)
  return `kafka://${valueIdentity(Fn.join(',', Array.from<string>(kafkaBootstrapServers).toSorted()))}`
}
