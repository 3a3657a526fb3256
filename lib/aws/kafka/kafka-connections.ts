/** Connections to the clusters that bindings name, with the role that the process has. */
import type { KafkaCluster } from '../../plan/stage-bindings.ts'
import { type Environment, endpointOf } from '../function-environment.ts'
import { systemClock } from '../system-clock.ts'
import { iamToken } from './iam-token.ts'
import type { KafkaConnection } from './kafka-client.ts'
import { connectionOf } from './kafka-connection.ts'
import { scramUserIn, secretsManager } from './scram-secret.ts'

/**
 * How a process with this environment reaches a cluster.
 *
 * @example
 * const reader = openReader(kafkaConnections(process.env)(binding.cluster))
 */
export function kafkaConnections(environment: Environment): (cluster: KafkaCluster) => KafkaConnection {
  const read = secretsManager(endpointOf('SECRETS_MANAGER', environment))
  return (cluster) =>
    connectionOf(cluster, {
      scramUser: async (secretArn) => scramUserIn(await read(secretArn), secretArn),
      iamToken: (region) => iamToken({ region }),
      nowMs: () => systemClock.nowMs(),
    })
}
