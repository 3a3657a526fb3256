/** What AWS's rules for solutions, and the offline validator of the CDK, say of applications on Kafka. */
import { App, Stack, Validations } from 'aws-cdk-lib'
import { SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2'
import { Key } from 'aws-cdk-lib/aws-kms'
import { CfnServerlessCluster } from 'aws-cdk-lib/aws-msk'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { AwsSolutionsChecks } from 'cdk-nag'
import { type ClusterNetwork, DeadLetters, KafkaCluster, KafkaSink, KafkaSource } from '../../../lib/cdk/index.ts'
import { findingsAfterSynth, validated } from '../world.ts'
import { clusterArn, linesIn } from './world.ts'

/** What is found in a stack, and in one that it shares a VPC with. */
function findingsOf(build: (stack: Stack, network: ClusterNetwork, shared: Stack) => void): string[] {
  const app = new App({ context: validated })
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app))
  const shared = new Stack(app, 'Shared')
  const vpc = new Vpc(shared, 'Vpc', { flowLogs: { All: {} }, natGateways: 0 })
  const securityGroups = [new SecurityGroup(shared, 'Clients', { vpc })]
  build(new Stack(app, 'Test'), { vpc, vpcSubnets: { subnets: vpc.isolatedSubnets }, securityGroups }, shared)
  return findingsAfterSynth(app).filter((finding) => !finding.includes('millrace.lock.json'))
}

it('nothing is found in one on MSK Serverless that another stack makes', () => {
  const findings = findingsOf((stack, network, shared) => {
    const serverless = new CfnServerlessCluster(shared, 'Cluster', {
      clusterName: 'shop',
      clientAuthentication: { sasl: { iam: { enabled: true } } },
      vpcConfigs: [{ subnetIds: network.vpc.isolatedSubnets.map(({ subnetId }) => subnetId) }],
    })
    const cluster = KafkaCluster.mskServerless(stack, 'Kafka', { clusterArn: serverless.attrArn, network })
    linesIn(stack, {
      source: new KafkaSource(cluster, 'lines', { pollers: {} }),
      sink: new KafkaSink(cluster, 'out'),
      more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
    })
  })
  expect(findings).toEqual([])
}, 120_000)

it('nothing is found in one on MSK with a user that is imported without its whole name', () => {
  const findings = findingsOf((stack, network) => {
    const secret = Secret.fromSecretAttributes(stack, 'User', {
      secretPartialArn: 'arn:aws:secretsmanager:us-east-1:111122223333:secret:AmazonMSK_shop',
      encryptionKey: Key.fromKeyArn(stack, 'Key', 'arn:aws:kms:us-east-1:111122223333:key/1'),
    })
    const cluster = KafkaCluster.msk(stack, 'Kafka', { clusterArn, auth: { secret }, network })
    linesIn(stack, { source: new KafkaSource(cluster, 'lines'), sink: new KafkaSink(cluster, 'out') })
  })
  expect(findings).toEqual([])
}, 120_000)

it('nothing is found in one on a cluster of the user', () => {
  const findings = findingsOf((stack, network) => {
    const cluster = KafkaCluster.selfManaged({ brokers: ['kafka:9092'], auth: 'none', network })
    linesIn(stack, { source: new KafkaSource(cluster, 'lines'), sink: new KafkaSink(cluster, 'out') })
  })
  expect(findings).toEqual([])
}, 120_000)
