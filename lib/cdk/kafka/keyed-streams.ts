/** Where the keyed stages of an application have the logs that they read. */
import type { FunctionOverrides } from '../stage-settings.ts'
import type { ClusterConnection } from './cluster.ts'
import type { KeyedTopicProps } from './stage-topic.ts'

export interface KeyedTopicsProps extends KeyedTopicProps {
  /**
   * Any other option of the function that makes and checks the topics while the stack is deployed: `vpc`, `role`, `layers`. It wins over
   * ours. @default it stands in the cluster's `network`, and has a role of its own
   */
  readonly function?: FunctionOverrides
}

/** A choice, made with {@link KeyedStreams}. */
export interface KeyedStreams {
  readonly cluster: ClusterConnection
  readonly props: KeyedTopicsProps
}

/** The choices beside the default, which is a Kinesis stream for each keyed stage. */
export const KeyedStreams = {
  /**
   * Topics of a Kafka cluster, one for each keyed stage, which a custom resource makes and checks. A deployment is refused where a topic
   * was deleted, made again, has another number of partitions, or would lose frames. All stages that write to one, and the announcer,
   * stand in the cluster's `network`, unless their settings say a VPC; from there they must reach DynamoDB and whatever else they use,
   * through endpoints or a NAT.
   *
   * @example
   * new StreamApplication(stack, 'Rides', { topology, entry, bind, keyedStreams: KeyedStreams.topics(cluster, { partitions: 32 }) })
   */
  topics(cluster: ClusterConnection, props: KeyedTopicsProps = {}): KeyedStreams {
    return { cluster, props }
  },
} as const
