/** What the tests of constructs on Kafka share. */
import type { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2'
import type { Construct } from 'constructs'
import {
  bind,
  type ClusterNetwork,
  CustomSink,
  KafkaCluster,
  KafkaSource,
  type MskOptions,
  type SinkConnection,
  type SourceConnection,
  type StageProps,
  StreamApplication,
  type StreamApplicationProps,
} from '../../../lib/cdk/index.ts'
import { Topology, text } from '../../../lib/index.ts'
import { entry } from '../world.ts'

export const clusterArn = 'arn:aws:kafka:us-east-1:111122223333:cluster/shop/0a1b2c3d-1'
const topicArn = clusterArn.replace(':cluster/', ':topic/')
/** The ARNs of what the tests name, as grants show them. */
export const arns = {
  cluster: `"${clusterArn}"`,
  topic: (name: string) => `"${topicArn}/${name}"`,
  group: (name: string) => `"${clusterArn.replace(':cluster/', ':group/')}/${name}"`,
}

export interface Parts {
  readonly source?: SourceConnection
  readonly sink?: SinkConnection
  readonly stage?: StageProps
  readonly more?: Partial<StreamApplicationProps>
}

/** Lines from a source to a sink, from a topic where nothing else is said. */
export function linesIn(stack: Construct, { source, sink, stage = {}, more }: Parts = {}): StreamApplication {
  const app = new Topology('lines-app')
  const from = app.source('lines', text())
  const out = app.sink<string>('out')
  from.to(out)
  return new StreamApplication(stack, 'App', {
    topology: app,
    entry,
    bind: [bind(from, source ?? new KafkaSource(mskIn(stack), 'lines')), bind(out, sink ?? new CustomSink())],
    stages: { lines: stage },
    ...more,
  })
}

export const mskIn = (stack: Construct, options: Partial<MskOptions> = {}) =>
  KafkaCluster.msk(stack, 'Msk', { clusterArn, ...options })

/** A VPC with a security group of clients. */
export function networkIn(stack: Stack, id = 'Vpc'): ClusterNetwork & { readonly securityGroups: SecurityGroup[] } {
  const vpc = new Vpc(stack, id, { maxAzs: 2 })
  return { vpc, securityGroups: [new SecurityGroup(stack, `${id}Clients`, { vpc })] }
}

/** The properties of the only resource of a type, or of the first. */
export const propertiesOf = (stack: Stack, type: string) =>
  Object.values(Template.fromStack(stack).findResources(type))[0]?.Properties

export const mappingOf = (stack: Stack) => propertiesOf(stack, 'AWS::Lambda::EventSourceMapping')

/** Grants beside those that any stage has. */
export const ofKafka = (grants: readonly string[]) =>
  grants.filter((grant) => !/DeadLetters|Payloads|logs:|Logs/.test(grant))
