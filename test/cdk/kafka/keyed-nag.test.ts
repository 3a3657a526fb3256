/** What AWS's rules for solutions, and the offline validator of the CDK, say of keyed stages on topics. */
import { App, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib'
import { FlowLog, FlowLogResourceType, SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2'
import { AwsSolutionsChecks } from 'cdk-nag'
import { DeadLetters, KafkaCluster } from '../../../lib/cdk/index.ts'
import { findingsAfterSynth, validated } from '../world.ts'
import { ridesOnTopics } from './keyed-world.ts'
import { clusterArn } from './world.ts'

it('nothing is found where keyed stages read topics of MSK, made here or brought', () => {
  const app = new App({ context: validated })
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app))
  const stack = new Stack(app, 'Test', { env: { account: '111122223333', region: 'us-east-1' } })
  const vpc = new Vpc(stack, 'Vpc', { maxAzs: 2 })
  new FlowLog(stack, 'FlowLog', { resourceType: FlowLogResourceType.fromVpc(vpc) })
  const network = { vpc, securityGroups: [new SecurityGroup(stack, 'Clients', { vpc })] }
  const cluster = KafkaCluster.msk(stack, 'Msk', { clusterArn, network })
  ridesOnTopics(stack, {
    cluster,
    topics: { removalPolicy: RemovalPolicy.DESTROY, pollers: { minimum: 1 } },
    stages: { 'by-city': { topic: { name: 'city-frames' } } },
    more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
  })
  expect(findingsAfterSynth(app)).toEqual([])
}, 120_000)
