/**
 * What a function is granted on a Kafka cluster, by what it does there. The CDK adds none of the `kafka-cluster` actions.
 *
 * @see https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control-use-cases.html
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-msk-permissions.html
 */
import { Annotations, Fn, Stack, Token, TokenComparison } from 'aws-cdk-lib'
import { Grant, PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../../core/errors.ts'
import type { KafkaCluster } from '../../plan/stage-bindings.ts'
import { acknowledgeWildcard, flattened } from '../acknowledge.ts'
import { checkPlaceOf, type Place } from '../place.ts'

/**
 * 'consume': Lambda's pollers read the topic for the function, by its role. 'produce': the function writes to it. 'look': it lists the
 * partitions and reads records, in no group. 'inspect': it sees the partitions and the settings, and no record. 'administer': it makes
 * the topic and changes it. 'remove': it deletes the topic.
 */
export type ClusterUse = 'consume' | 'produce' | 'look' | 'inspect' | 'administer' | 'remove'

interface Actions {
  readonly onCluster: readonly string[]
  readonly onTopic: readonly string[]
  readonly onGroup?: readonly string[]
}

const kafkaActions: Readonly<Record<ClusterUse, Actions>> = {
  consume: {
    onCluster: ['Connect', 'DescribeClusterDynamicConfiguration'],
    onTopic: ['DescribeTopic', 'ReadData'],
    onGroup: ['AlterGroup', 'DescribeGroup'],
  },
  // All our producers are idempotent, which clusters before Kafka 2.8 let nobody be without the second.
  produce: { onCluster: ['Connect', 'WriteDataIdempotently'], onTopic: ['DescribeTopic', 'WriteData'] },
  look: { onCluster: ['Connect'], onTopic: ['DescribeTopic', 'ReadData'] },
  inspect: { onCluster: ['Connect'], onTopic: ['DescribeTopic', 'DescribeTopicDynamicConfiguration'] },
  administer: {
    onCluster: ['Connect'],
    onTopic: ['AlterTopicDynamicConfiguration', 'CreateTopic', 'DescribeTopic', 'DescribeTopicDynamicConfiguration'],
  },
  remove: { onCluster: ['Connect'], onTopic: ['DeleteTopic', 'DescribeTopic'] },
}

/** What Lambda does for a mapping in a VPC, beside calling the cluster. EC2 takes no resource for most of it. */
const pollerNetworkActions = [
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSecurityGroups',
  'ec2:DescribeSubnets',
  'ec2:DescribeVpcs',
]

export interface MskPlace {
  readonly identity: string
  readonly clusterArn: string
  readonly auth: KafkaCluster['auth']['kind']
  readonly scope: Construct
}

export interface TopicUse {
  readonly use: ClusterUse
  readonly topic: string
  /** @default any group */
  readonly group?: string | undefined
}

/** Grants a use of a topic of MSK, all but what is secret. */
export function grantMsk(target: IFunction, { identity, clusterArn, auth, scope }: MskPlace, what: TopicUse): void {
  const { use, topic, group } = what
  const { onCluster, onTopic, onGroup } = kafkaActions[use]
  const place = placeOf(identity, clusterArn, scope)
  checkPlaceOf(target, place, named(onTopic))
  if (use === 'consume') refuseOtherAccount(target, place)
  if (use === 'consume') {
    const calls = ['kafka:DescribeClusterV2', 'kafka:GetBootstrapBrokers']
    allow(target, auth === 'scram' ? [...calls, 'kafka:ListScramSecrets'] : calls, clusterArn)
    grantPollerNetwork(target)
  }
  if (auth !== 'iam') return
  allow(target, named(onCluster), clusterArn)
  const topicArn = `${besideCluster(clusterArn, 'topic')}/${topic}`
  allow(target, named(onTopic), topicArn)
  if (topic.endsWith('*')) {
    acknowledgeAtSynth(target, topicArn, 'The deployment gives the topic a name of its own behind that prefix.')
  }
  if (!onGroup) return
  const groupArn = `${besideCluster(clusterArn, 'group')}/${group ?? '*'}`
  allow(target, named(onGroup), groupArn)
  if (group !== undefined) return
  acknowledgeAtSynth(
    target,
    groupArn,
    'The group of a mapping is its id, which is known only once it is made: who names a group has no wildcard.',
  )
}

function placeOf(identity: string, clusterArn: string, scope: Construct): Place {
  const [, , , region, account] = Token.isUnresolved(clusterArn) ? [] : clusterArn.split(':')
  const { region: ownRegion, account: ownAccount } = Stack.of(scope)
  return { identity, region: region ?? ownRegion, account: account ?? ownAccount }
}

/** Lambda reads a cluster of another account through a managed connection of MSK, which has an ARN of its own and no topics. */
function refuseOtherAccount(target: IFunction, { identity, account }: Place): void {
  const own = Stack.of(target).account
  if (Token.compareStrings(account, own) !== TokenComparison.DIFFERENT) return
  throw new ConfigurationError(
    `the cluster ${identity} is in the account ${account}, and the function ${target.node.path} in ${own}: a source reads a cluster of its own account only; deploy the application there, or let it write to a topic or a stream here.`,
  )
}

/** Says at synth that a function outside of any VPC is told of brokers that only clients in the cluster's VPC reach. */
export function warnOutOfReach(target: IFunction, cluster: string): void {
  if (target.isBoundToVpc) return
  Annotations.of(target).addWarningV2(
    'millrace:brokers-out-of-reach',
    `the function ${target.node.path} stands in no VPC, and the brokers of ${cluster} that are looked up for it are reached from the cluster's VPC only: give the cluster its \`network\`, or the \`brokers\` that it has for public access.`,
  )
}

const named = (actions: readonly string[]): string[] => actions.map((action) => `kafka-cluster:${action}`)

const allow = (target: IFunction, actions: string[], resource: string): void =>
  target.addToRolePolicy(new PolicyStatement({ actions, resources: [resource] }))

/** The ARN under which a cluster has its topics, or its groups. */
function besideCluster(clusterArn: string, what: 'topic' | 'group'): string {
  const parts = Fn.split(':cluster/', clusterArn)
  return `${Fn.select(0, parts)}:${what}/${Fn.select(1, parts)}`
}

/** What pollers need that stand in a VPC. */
export function grantPollerNetwork(target: IFunction): void {
  allow(target, pollerNetworkActions, '*')
  acknowledgeWildcard(
    target.role ?? target,
    '*',
    'EC2 takes no resource for the calls by which Lambda puts pollers into a VPC.',
  )
}

export interface ClusterSecrets {
  readonly scram?: { readonly secret: ISecret }
  readonly authoritySecret?: ISecret
}

/** Grants the user of a cluster, and to Lambda's pollers the authority that its certificates are of. */
export function grantSecrets(target: IFunction, use: ClusterUse, { scram, authoritySecret }: ClusterSecrets): void {
  if (scram) grantSecret(target, use, scram.secret)
  if (authoritySecret && use === 'consume') grantSecret(target, use, authoritySecret)
}

function grantSecret(target: IFunction, use: ClusterUse, secret: ISecret): void {
  const actions = ['secretsmanager:GetSecretValue']
  if (use === 'consume') actions.unshift('secretsmanager:DescribeSecret')
  const whole = secret.secretFullArn ?? `${secret.secretArn}-??????`
  Grant.addToPrincipal({ grantee: target, actions, resourceArns: [whole] })
  secret.encryptionKey?.grant(target, 'kms:Decrypt')
  if (secret.secretFullArn !== undefined) return
  acknowledgeAtSynth(
    target,
    whole,
    'The secret is imported without the six characters that Secrets Manager adds to its name.',
  )
}

/** At synth the name of what another stack makes has become what a finding says. */
function acknowledgeAtSynth(target: IFunction, arn: string, why: string): void {
  const scope = target.role ?? target
  scope.node.addValidation({
    validate: () => {
      acknowledgeWildcard(scope, flattened(Stack.of(scope).resolve(arn)), why)
      return []
    },
  })
}
