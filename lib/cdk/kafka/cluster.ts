/** Kafka clusters, as the functions of an application reach them: MSK, MSK Serverless, and clusters of the user's own. */
import { Fn, Stack, Token } from 'aws-cdk-lib'
import type { ISecurityGroup, IVpc, SubnetSelection } from 'aws-cdk-lib/aws-ec2'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../../core/errors.ts'
import type { KafkaCluster as ClusterBinding } from '../../plan/stage-bindings.ts'
import { valueIdentity } from '../resource-identity.ts'
import { BootstrapBrokers } from './bootstrap-brokers.ts'
import { type ClusterUse, grantMsk, grantPollerNetwork, grantSecrets, warnOutOfReach } from './cluster-grants.ts'

/** Where functions stand that speak to the brokers. */
export interface ClusterNetwork {
  readonly vpc: IVpc
  /** @default the private subnets of the VPC */
  readonly vpcSubnets?: SubnetSelection
  /**
   * Of the functions; the cluster's own must let them in.
   * @default one of each function: `application.stage(name).function.connections` is what to let in
   */
  readonly securityGroups?: readonly ISecurityGroup[]
}

/** A Kafka cluster. Made by {@link KafkaCluster}. */
export interface ClusterConnection {
  /** Tells two clusters apart, and is free of tokens. */
  readonly identity: string
  readonly kind: 'msk' | 'self-managed'
  /** Of MSK, as events carry it. */
  readonly clusterArn?: string
  /**
   * What functions are told of it. Brokers that are looked up at deployment are a token, and one text names all of them; the first
   * that asks makes what looks them up.
   */
  readonly cluster: ClusterBinding
  /** Where functions must stand to reach it. @default anywhere */
  readonly network?: ClusterNetwork
  /** The user of SASL/SCRAM. @default none */
  readonly scram?: ScramUser
  /** What Lambda's pollers read the authority of the brokers' certificates from. @default an authority that everybody knows */
  readonly authoritySecret?: ISecret
  /**
   * Grants what a use of a topic takes: with IAM the `kafka-cluster` actions on cluster, topic and group; the user of SASL/SCRAM and
   * its key; nothing more where the cluster is open. `group` is that of 'consume'. @default any group
   */
  grant(target: IFunction, use: ClusterUse, topic: string, group?: string): void
}

export interface ScramUser {
  /**
   * Holds `{"username":"...","password":"..."}`. MSK takes it under a key of your own only, and with a name that begins with
   * "AmazonMSK_". An imported one must say its `encryptionKey`, so that functions are granted to decrypt with it.
   */
  readonly secret: ISecret
  /** MSK has SHA-512 only. @default 'SCRAM-SHA-512' */
  readonly mechanism?: 'SCRAM-SHA-512' | 'SCRAM-SHA-256'
}

export interface MskOptions {
  /** Of a cluster of MSK in the region of the stack, such as `cluster.attrArn`. */
  readonly clusterArn: string
  /**
   * 'iam' by the role of each function; a user of SASL/SCRAM; or 'none', where the cluster takes clients that say nothing of
   * themselves.
   * @default 'iam'
   */
  readonly auth?: 'iam' | 'none' | ScramUser
  /** Whether connections are encrypted. Only with `auth: 'none'` may it be false. @default true */
  readonly tls?: boolean
  /**
   * Where functions stand that write to topics, or look at them. A function that only reads a topic needs no network: Lambda's pollers
   * stand in the cluster's.
   * @default outside of any VPC, from where only brokers with public access are reached: say which, as `brokers`
   */
  readonly network?: ClusterNetwork
  /**
   * Where a client begins, each as `host:port`, those of the cluster for this way to sign in; or a list that only the deployment knows.
   * @default those that clients in the cluster's VPC have, looked up when the stack is first deployed
   */
  readonly brokers?: readonly string[]
}

/** MSK Serverless knows IAM only, and is always encrypted. */
export type MskServerlessOptions = Omit<MskOptions, 'auth' | 'tls'>

export interface SelfManagedOptions {
  /** Where a client begins, each as `host:port`; or a list that only the deployment knows, such as the value of a parameter. */
  readonly brokers: readonly string[]
  /** 'none', which takes a `network`, or a user of SASL/SCRAM. */
  readonly auth: 'none' | ScramUser
  /**
   * Whether connections are encrypted; of certificates that no public authority signed, the authority, see {@link PrivateAuthority}.
   * A user of SASL/SCRAM needs it, since Lambda's pollers sign in over TLS only.
   * @default true with a user, else false
   */
  readonly tls?: boolean | PrivateAuthority
  /** Where the brokers are reached from: by functions, and by Lambda's pollers too. @default the internet */
  readonly network?: ClusterNetwork
}

/** Who signed the certificates of the brokers. It is no secret; Lambda's pollers yet read it from Secrets Manager. */
export interface PrivateAuthority {
  /** The certificate of the authority, in PEM: functions are told it. */
  readonly caPem: string
  /** A secret with the same, as `{"certificate":"-----BEGIN CERTIFICATE-----..."}`. Needed where a source reads a topic. @default none */
  readonly secret?: ISecret
}

/** The kinds of clusters. */
export const KafkaCluster = {
  /**
   * A cluster of MSK, of provisioned brokers. Where `brokers` are not given they are looked up when the stack is first deployed, by one
   * custom resource: CloudFormation knows no attribute of them. Throws a {@link ConfigurationError} for options that contradict.
   *
   * @example
   * const cluster = KafkaCluster.msk(stack, 'Kafka', { clusterArn, network: { vpc, securityGroups: [clients] } })
   * bind(orders, new KafkaSource(cluster, 'orders'))
   */
  msk(scope: Construct, id: string, options: MskOptions): ClusterConnection {
    return new Msk(scope, id, options)
  },

  /**
   * A cluster of MSK Serverless. Throws a {@link ConfigurationError} as `msk` does.
   *
   * @example
   * const cluster = KafkaCluster.mskServerless(stack, 'Kafka', { clusterArn: serverless.attrArn, network: { vpc } })
   */
  mskServerless(scope: Construct, id: string, options: MskServerlessOptions): ClusterConnection {
    // The types refuse them; plain JavaScript does not.
    const { auth = 'iam', tls = true } = options as MskOptions
    if (auth === 'iam' && tls) return new Msk(scope, id, options)
    throw new ConfigurationError(
      `the cluster ${valueIdentity(options.clusterArn)} is of MSK Serverless, which knows IAM over TLS only: leave \`auth\` and \`tls\` out, or say KafkaCluster.msk for a cluster of provisioned brokers.`,
    )
  },

  /**
   * Any other cluster. Throws a {@link ConfigurationError} for options that contradict.
   *
   * @example
   * const cluster = KafkaCluster.selfManaged({ brokers: ['kafka.example.com:9096'], auth: { secret } })
   */
  selfManaged(options: SelfManagedOptions): ClusterConnection {
    return new SelfManaged(options)
  },
} as const

class Msk implements ClusterConnection {
  readonly kind = 'msk'
  readonly identity: string
  readonly clusterArn: string
  readonly network?: ClusterNetwork
  readonly scram?: ScramUser
  readonly #scope: Construct
  readonly #id: string
  readonly #options: MskOptions
  #cluster: ClusterBinding | undefined

  constructor(scope: Construct, id: string, options: MskOptions) {
    const { clusterArn, auth = 'iam', network, tls = true } = options
    this.#scope = scope
    this.#id = id
    this.#options = options
    this.clusterArn = clusterArn
    this.identity = valueIdentity(clusterArn)
    if (!Token.isUnresolved(clusterArn) && !/^arn:[\w-]+:kafka:[\w-]+:\d*:cluster\/[^/]+\/[^/]+$/.test(clusterArn)) {
      throw new ConfigurationError(
        `the clusterArn ${clusterArn} is none of a cluster of MSK: give it whole, as arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID.`,
      )
    }
    if (network) this.network = network
    checkAuth(this.identity, auth, ['iam', 'none'])
    if (typeof auth === 'object') this.scram = auth
    if (typeof auth === 'object' && auth.mechanism === 'SCRAM-SHA-256') {
      throw new ConfigurationError(
        `the cluster ${this.identity} has the mechanism SCRAM-SHA-256, which MSK does not have: leave \`mechanism\` out.`,
      )
    }
    if (tls || auth === 'none') return
    throw new ConfigurationError(
      `the cluster ${this.identity} has \`tls: false\`, and MSK lets clients sign in over TLS only: leave \`tls\` out, or say auth: 'none'.`,
    )
  }

  get cluster(): ClusterBinding {
    this.#cluster ??= this.#told()
    return this.#cluster
  }

  #told(): ClusterBinding {
    const { auth = 'iam', tls = true, brokers, clusterArn } = this.#options
    const scope = this.#scope
    return {
      brokers: checkedBrokers(this.identity, brokers) ?? [
        new BootstrapBrokers(scope, this.#id, { clusterArn, auth: kindOf(auth), tls }).text,
      ],
      auth: auth === 'iam' ? { kind: 'iam', region: Stack.of(scope).region } : toldOf(auth),
      tls,
    }
  }

  grant(target: IFunction, use: ClusterUse, topic: string, group?: string): void {
    const { auth = 'iam', brokers } = this.#options
    const { identity, clusterArn } = this
    if (use !== 'consume' && brokers === undefined) warnOutOfReach(target, identity)
    grantMsk(target, { identity, clusterArn, auth: kindOf(auth), scope: this.#scope }, { use, topic, group })
    grantSecrets(target, use, this)
  }
}

class SelfManaged implements ClusterConnection {
  readonly kind = 'self-managed'
  readonly identity: string
  readonly network?: ClusterNetwork
  readonly scram?: ScramUser
  readonly authoritySecret?: ISecret
  readonly cluster: ClusterBinding

  constructor({ brokers, auth, network, tls = auth !== 'none' }: SelfManagedOptions) {
    const given = checkedBrokers('of the user', brokers) ?? []
    this.identity = `kafka://${given.map(valueIdentity).toSorted().join(',')}`
    checkAuth(this.identity, auth, ['none'])
    if (typeof auth === 'object' && tls === false) {
      throw new ConfigurationError(
        `the cluster ${this.identity} has a user and \`tls: false\`, and Lambda's pollers sign in over TLS only: leave \`tls\` out, or give { caPem } where no public authority signed the brokers' certificates.`,
      )
    }
    if (network) this.network = network
    if (typeof auth === 'object') this.scram = auth
    if (typeof tls === 'object' && tls.secret) this.authoritySecret = tls.secret
    this.cluster = {
      brokers: given,
      auth: toldOf(auth),
      tls: typeof tls === 'object' ? { caPem: tls.caPem } : tls,
    }
  }

  grant(target: IFunction, use: ClusterUse): void {
    if (this.network && use === 'consume') grantPollerNetwork(target)
    grantSecrets(target, use, this)
  }
}

const kindOf = (auth: 'iam' | 'none' | ScramUser): ClusterBinding['auth']['kind'] =>
  typeof auth === 'object' ? 'scram' : auth

function toldOf(auth: 'none' | ScramUser): ClusterBinding['auth'] {
  if (auth === 'none') return { kind: 'none' }
  const { secret, mechanism } = auth
  return { kind: 'scram', secretArn: secret.secretArn, ...(mechanism ? { mechanism } : {}) }
}

/** The types refuse it too; plain JavaScript and a cast do not. */
function checkAuth(identity: string, auth: unknown, named: readonly string[]): void {
  if (named.includes(auth as string) || Object(auth).secret !== undefined) return
  throw new ConfigurationError(
    `the cluster ${identity} has the auth ${typeof auth === 'string' ? `"${auth}"` : JSON.stringify(Object.keys(Object(auth)))}: give ${named.map((name) => `'${name}'`).join(', ')} or a user of SASL/SCRAM as { secret }; client certificates (mTLS) and SASL/PLAIN are not offered, as the client of the functions cannot sign in by them.`,
  )
}

function checkedBrokers(which: string, brokers: readonly string[] | undefined): readonly string[] | undefined {
  if (brokers === undefined) return undefined
  // One text names several then, as that of brokers that are looked up does.
  if (Token.isUnresolved(brokers)) return [Fn.join(',', [...brokers])]
  if (brokers.some((broker) => Token.isUnresolved([broker]))) {
    throw new ConfigurationError(
      `the cluster ${which} has a list that only the deployment knows among its brokers: give that list alone, or its text, as Fn.join(',', list) makes it.`,
    )
  }
  const wrong = brokers.find((broker) => !Token.isUnresolved(broker) && !/^[^\s:,/]+:\d+$/.test(broker))
  if (brokers.length > 0 && wrong === undefined) return brokers
  throw new ConfigurationError(
    `the cluster ${which} has ${wrong === undefined ? 'no brokers' : `the broker "${wrong}"`}: give one or more, each as "host:port".`,
  )
}
