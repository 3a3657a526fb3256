/** How the clients reach a cluster, made of what a binding says of it. Secrets are read when a connection is made, and never kept long. */
import type { KafkaCluster } from '../../plan/stage-bindings.ts'
import type { KafkaConnection } from './kafka-client.ts'
import type { ScramUser } from './scram-secret.ts'

/** Where secrets and tokens come from. */
export interface ConnectionPorts {
  /** The user in a secret of Secrets Manager. */
  readonly scramUser: (secretArn: string) => Promise<ScramUser>
  /** A token of SASL/OAUTHBEARER for MSK with IAM. */
  readonly iamToken: (region: string) => Promise<string>
  /** In ms since 1970 UTC. */
  readonly nowMs: () => number
}

/** For so long a secret is not read again, in ms: a rotated one is taken up soon, and one connection reads it once. */
const keptMs = 60_000

/** A user's name and password, which the client asks for one by one. */
function userOf(secretArn: string, { scramUser, nowMs }: ConnectionPorts) {
  let kept: { readonly user: Promise<ScramUser>; readonly untilMs: number } | undefined
  const user = () => {
    if (kept === undefined || nowMs() >= kept.untilMs) {
      const read = scramUser(secretArn)
      kept = { user: read, untilMs: nowMs() + keptMs }
      read.catch(() => {
        kept = undefined
      })
    }
    return kept.user
  }
  return { username: async () => (await user()).username, password: async () => (await user()).password }
}

function saslOf({ auth }: KafkaCluster, ports: ConnectionPorts): KafkaConnection['sasl'] {
  switch (auth.kind) {
    case 'none':
      return undefined
    case 'iam':
      return { mechanism: 'OAUTHBEARER', token: () => ports.iamToken(auth.region) }
    case 'scram':
      return { mechanism: auth.mechanism ?? 'SCRAM-SHA-512', ...userOf(auth.secretArn, ports) }
  }
}

/**
 * The connection of a cluster.
 *
 * @example
 * const connection = connectionOf(binding.cluster, { scramUser, iamToken, nowMs: Date.now })
 */
export function connectionOf(cluster: KafkaCluster, ports: ConnectionPorts): KafkaConnection {
  const { brokers, tls } = cluster
  const sasl = saslOf(cluster, ports)
  return {
    bootstrapBrokers: brokers.flatMap((several) => several.split(',')),
    ...(tls === false ? {} : { tls: tls === true ? {} : { ca: tls.caPem } }),
    ...(sasl && { sasl }),
  }
}
