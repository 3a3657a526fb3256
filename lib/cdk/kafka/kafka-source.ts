/** Kafka topics as sources. */
import { Fn, Token } from 'aws-cdk-lib'
import {
  Alias,
  EventSourceMapping,
  type EventSourceMappingOptions,
  type IFunction,
  type ISchemaRegistry,
  Function as LambdaFunction,
  type SourceAccessConfiguration,
  SourceAccessConfigurationType,
} from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../../core/errors.ts'
import type { SourceBinding } from '../../plan/stage-bindings.ts'
import type { MappingSettings, SourceConnection } from '../bind.ts'
import { refuseAtSynth } from '../rendered.ts'
import { type BeginsAt, checkedPosition, positionOf, startingAt } from '../starting-position.ts'
import type { ClusterConnection } from './cluster.ts'
import { refuseSharedGroup } from './own-group.ts'
import { checkedPollers, type Pollers, pollerConfigOf, sayPrice } from './pollers.ts'
import { refuseDestinationsThatAreRead } from './read-destinations.ts'
import { wrongFilter } from './topic-filter.ts'
import { checkedTopic, topicIdentity } from './topic-name.ts'

export interface KafkaSourceOptions {
  /**
   * Where reading begins when the mapping is first deployed: at the oldest record, or at the first that has that time or a later one.
   * There is no 'LATEST': a mapping starts minutes after it is created, and what arrives meanwhile would be lost. What a group has
   * committed already wins over it.
   * @default 'TRIM_HORIZON'
   * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-starting-positions.html
   */
  readonly startingPosition?: BeginsAt
  /**
   * The group whose offsets the mapping commits, 1 to 200 characters: its own among all mappings, and never changed, as with another
   * the mapping is made anew. Synth refuses one that another mapping of the app has. @default the id of the mapping
   */
  readonly consumerGroupId?: string
  /**
   * Provisioned pollers, which Lambda needs to read which records of a batch are not done, and to find a record that kills the
   * function. They are paid while nothing happens. @default pollers on demand: where a record fails the whole batch comes again
   */
  readonly pollers?: Pollers
  /**
   * What decodes the records, such as `new GlueSchemaRegistry(...)` of the CDK. Needs `pollers`. @default none: records come as they
   * are
   */
  readonly schemaRegistry?: ISchemaRegistry
  /** Which records are read, by their `value`, as `FilterCriteria.filter` makes them. @default all */
  readonly filters?: EventSourceMappingOptions['filters']
}

/** Lambda takes no function that runs longer behind a mapping of Kafka, in seconds. */
const mostSeconds = 14 * 60

/**
 * A source that reads a Kafka topic, each partition in its order; one batch may hold several. Headers and times are kept.
 *
 * Grants: what Lambda's pollers take to read that topic, in the way to sign in that the cluster says. The function itself needs no VPC,
 * unless it feeds a keyed stage, writes to a topic or has its dead letters in one: then it stands in the cluster's `network`. A
 * timeout above 14 minutes is refused at synth, and so are options of the mapping that need `pollers` without them.
 *
 * @example
 * bind(orders, new KafkaSource(cluster, 'orders', { pollers: { minimum: 1, maximum: 4 } }))
 */
export class KafkaSource implements SourceConnection {
  readonly type = 'source'
  readonly resource: string
  readonly cluster: ClusterConnection
  readonly topic: string
  /** Whether Lambda reads which records are not done. */
  readonly mode: 'on-demand' | 'provisioned'
  readonly #begins: BeginsAt
  readonly #options: KafkaSourceOptions

  /** Throws a {@link ConfigurationError} for options that Lambda does not take, or that would lose records. */
  constructor(cluster: ClusterConnection, topic: string, options: KafkaSourceOptions = {}) {
    this.cluster = cluster
    this.topic = checkedTopic(topic, cluster.identity)
    this.resource = topicIdentity(cluster, topic)
    refuseUnreadable(this.resource, topic)
    this.#begins = checkedPosition(options.startingPosition ?? 'TRIM_HORIZON', this.resource)
    refuseNotOffered(this.resource, options)
    const { pollers, consumerGroupId } = options
    this.mode = pollers === undefined ? 'on-demand' : 'provisioned'
    this.#options = pollers === undefined ? options : { ...options, pollers: checkedPollers(this.resource, pollers) }
    this.#refuseOnDemand()
    checkGroup(this.resource, consumerGroupId)
    checkFilters(this.resource, options.filters)
    refuseUnreachable(this.resource, cluster)
  }

  bindingFor(name: string, looks = false): SourceBinding {
    const { clusterArn } = this.cluster
    return {
      name,
      kind: 'kafka',
      topic: this.topic,
      mode: this.mode,
      ...(clusterArn === undefined ? {} : { clusterArn }),
      ...(looks ? { cluster: this.cluster.cluster } : {}),
      ...startingAt(this.#begins),
    }
  }

  grantLooking(target: IFunction): void {
    this.cluster.grant(target, 'look', this.topic)
  }

  connect(scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping {
    const { consumerGroupId, pollers, schemaRegistry, filters } = this.#options
    this.#checkSettings(target, settings)
    this.cluster.grant(target, 'consume', this.topic, consumerGroupId)
    const { enabled, batchSize, maxBatchingWindow } = settings
    const access = accessOf(this.cluster)
    const mapping = new EventSourceMapping(scope, 'Mapping', {
      target,
      kafkaTopic: this.topic,
      ...(this.cluster.clusterArn === undefined
        ? { kafkaBootstrapServers: listOf(this.cluster.cluster.brokers) }
        : { eventSourceArn: this.cluster.clusterArn }),
      ...(access.length === 0 ? {} : { sourceAccessConfigurations: access }),
      ...(consumerGroupId === undefined ? {} : { kafkaConsumerGroupId: consumerGroupId }),
      enabled,
      batchSize,
      maxBatchingWindow,
      ...positionOf(this.#begins),
      ...(filters === undefined ? {} : { filters }),
      ...(pollers === undefined ? {} : provisioned(settings, pollers)),
      ...(schemaRegistry === undefined ? {} : { schemaRegistryConfig: schemaRegistry }),
    })
    if (pollers) sayPrice(mapping, pollers)
    refuseAtSynth(scope, functionOf(target), ({ Timeout }) => timeoutFindings(target, Timeout))
    refuseDestinationsThatAreRead(scope, mapping)
    refuseSharedGroup(scope, mapping)
    return mapping
  }

  #refuseOnDemand(): void {
    if (this.mode === 'provisioned' || this.#options.schemaRegistry === undefined) return
    throw new ConfigurationError(
      `the source on ${this.resource} has a schema registry, which only provisioned pollers ask: give it \`pollers\` too, which are paid by the hour, or leave \`schemaRegistry\` out and decode the records in the topology.`,
    )
  }

  #checkSettings(target: IFunction, { parallelizationFactor }: MappingSettings): void {
    if (parallelizationFactor > 1) {
      throw new ConfigurationError(
        `the source on ${this.resource} has the parallelization factor ${parallelizationFactor}, which Lambda has for shards only: leave it at 1, and give the topic more partitions.`,
      )
    }
    const own = functionOf(target)
    const timeout = own instanceof LambdaFunction ? own.timeout : undefined
    if (timeout === undefined || timeout.isUnresolved()) return
    const [finding] = timeoutFindings(target, timeout.toSeconds())
    if (finding !== undefined) throw new ConfigurationError(finding)
  }
}

function timeoutFindings(target: IFunction, seconds: unknown): string[] {
  if (typeof seconds !== 'number' || seconds <= mostSeconds) return []
  return [
    `the function ${functionOf(target).node.path} has a timeout of ${seconds} s, and Lambda takes at most 14 minutes (${mostSeconds} s) behind a mapping of Kafka: set the stage's \`timeout\` to that or less.`,
  ]
}

const provisioned = (
  { retryAttempts, bisectBatchOnError, reportBatchItemFailures }: MappingSettings,
  pollers: Pollers,
): EventSourceMappingOptions => ({
  provisionedPollerConfig: pollerConfigOf(pollers),
  retryAttempts,
  bisectBatchOnError,
  reportBatchItemFailures,
})

const functionOf = (target: IFunction): IFunction => (target instanceof Alias ? target.version.lambda : target)

/** A text that only the deployment knows may name several. */
const listOf = (brokers: readonly string[]): string[] =>
  brokers.some((broker) => Token.isUnresolved(broker)) ? Fn.split(',', Fn.join(',', [...brokers])) : [...brokers]

/** How Lambda's pollers reach the cluster and sign in there. With IAM they do by the role of the function, of which nothing is said. */
function accessOf({ kind, network, scram, authoritySecret }: ClusterConnection) {
  const access: SourceAccessConfiguration[] = []
  const { SASL_SCRAM_256_AUTH, SASL_SCRAM_512_AUTH, SERVER_ROOT_CA_CERTIFICATE, VPC_SECURITY_GROUP, VPC_SUBNET } =
    SourceAccessConfigurationType
  if (scram) {
    const type = scram.mechanism === 'SCRAM-SHA-256' ? SASL_SCRAM_256_AUTH : SASL_SCRAM_512_AUTH
    access.push({ type, uri: scram.secret.secretArn })
  }
  if (authoritySecret) access.push({ type: SERVER_ROOT_CA_CERTIFICATE, uri: authoritySecret.secretArn })
  // Of MSK Lambda knows the network itself.
  if (kind === 'msk' || network === undefined) return access
  const { subnetIds } = network.vpc.selectSubnets(network.vpcSubnets)
  for (const uri of subnetIds) access.push({ type: VPC_SUBNET, uri })
  for (const { securityGroupId } of network.securityGroups ?? []) {
    access.push({ type: VPC_SECURITY_GROUP, uri: securityGroupId })
  }
  return access
}

/** What Lambda's pollers cannot reach, of a cluster of the user's own. */
function refuseUnreachable(resource: string, connection: ClusterConnection): void {
  if (connection.kind === 'msk') return
  const { network, scram, cluster, authoritySecret } = connection
  if (network === undefined && scram === undefined) {
    throw new ConfigurationError(
      `the source on ${resource} is in a cluster without a user, which Lambda's pollers reach inside of a VPC only: give the cluster its \`network\`, or a user of SASL/SCRAM as \`auth\`.`,
    )
  }
  if (network && (network.securityGroups ?? []).length === 0) {
    throw new ConfigurationError(
      `the source on ${resource} is in a cluster with a \`network\` without \`securityGroups\`, and Lambda's pollers need one: give one that the brokers let in.`,
    )
  }
  if (typeof cluster.tls === 'object' && authoritySecret === undefined) {
    throw new ConfigurationError(
      `the source on ${resource} is in a cluster whose certificates an authority of its own signed, and Lambda's pollers read that from Secrets Manager only: give \`tls: { caPem, secret }\`, a secret that holds {"certificate":"..."}.`,
    )
  }
}

/**
 * CloudFormation's schema of a mapping is narrower than Kafka is with names.
 *
 * @see https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventsourcemapping.html
 */
function refuseUnreadable(resource: string, topic: string): void {
  if (Token.isUnresolved(topic) || /^[^.]./.test(topic)) return
  throw new ConfigurationError(
    `the source on ${resource} reads a topic whose name CloudFormation takes for no mapping: read one whose name has two characters or more and does not begin with ".".`,
  )
}

function checkFilters(resource: string, filters: KafkaSourceOptions['filters'] = []): void {
  const wrong = filters.map(({ pattern }) => wrongFilter(pattern)).find((finding) => finding !== undefined)
  if (wrong !== undefined) throw new ConfigurationError(`the source on ${resource} has ${wrong}.`)
}

function checkGroup(resource: string, group: string | undefined): void {
  if (group === undefined || Token.isUnresolved(group) || /^[\w/*:+=.@-]{1,200}$/.test(group)) return
  throw new ConfigurationError(
    `the source on ${resource} has the consumerGroupId "${group}": give 1 to 200 letters, digits and characters of "-/*:_+=.@".`,
  )
}

/** What the mappings of the CDK take. The types refuse it too; plain JavaScript and a cast do not. */
const notOffered: Readonly<Record<string, string>> = {
  bisectBatchOnError: 'with `pollers` it is always on, and without them Lambda does not have it',
  reportBatchItemFailures:
    'with `pollers` the function always answers by record, and without them Lambda reads no answer',
  retryAttempts: 'Lambda would drop what it gives up, and without `pollers` does not have it',
  maxRecordAge: 'Lambda would drop what it gives up, and without `pollers` does not have it',
  onFailure:
    'the mapping retries without end, which Lambda ends after ten attempts once there is a destination; say `deadLetters` to the application',
  provisionedPollerConfig: 'it is `pollers` here',
}

function refuseNotOffered(resource: string, options: KafkaSourceOptions): void {
  for (const [option, why] of Object.entries(notOffered)) {
    if (!(option in options)) continue
    throw new ConfigurationError(
      `the source on ${resource} has the option ${option}, which is not offered: ${why}; leave it out.`,
    )
  }
}
