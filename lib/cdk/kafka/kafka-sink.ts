/** Kafka topics as sinks. */
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { SinkBinding } from '../../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../../topology/graph.ts'
import type { SinkConnection } from '../bind.ts'
import type { ClusterConnection } from './cluster.ts'
import { checkedTopic, topicIdentity } from './topic-name.ts'

/**
 * A sink that writes each value to a Kafka topic, the sink's key as the record's, in order, by an idempotent producer.
 *
 * Grants: to write to that topic and to see its partitions, in the way to sign in that the cluster says. The function stands in the
 * cluster's `network`, unless the stage's settings say a VPC; from there it must reach DynamoDB, Secrets Manager and whatever else it
 * uses, through endpoints or a NAT.
 *
 * @example
 * bind(paidOrders, new KafkaSink(cluster, 'paid-orders'))
 */
export class KafkaSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly cluster: ClusterConnection
  readonly topic: string

  /** Throws a {@link ConfigurationError} for a name that is none of a topic. */
  constructor(cluster: ClusterConnection, topic: string) {
    this.cluster = cluster
    this.topic = checkedTopic(topic, cluster.identity)
    this.resource = topicIdentity(cluster, topic)
  }

  bindingFor({ name }: SinkDeclaration): SinkBinding {
    return { name, kind: 'kafka', topic: this.topic, cluster: this.cluster.cluster }
  }

  connect(target: IFunction): void {
    this.cluster.grant(target, 'produce', this.topic)
  }
}
