/** Where functions stand: in the cluster's network where they speak to it, and nowhere where Lambda's pollers read for them. */
import { Fn, type Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2'
import { Construct } from 'constructs'
import {
  bind,
  type ClusterConnection,
  type ClusterNetwork,
  CustomSink,
  DeadLetters,
  KafkaCluster,
  KafkaSink,
  KafkaSource,
  KeyedStreams,
  KinesisSource,
  type MskOptions,
  type SourceConnection,
  type StageProps,
  StreamApplication,
} from '../../../lib/cdk/index.ts'
import { Topology, text } from '../../../lib/index.ts'
import { entry, newStack, newStream } from '../world.ts'
import { linesIn, mskIn, networkIn } from './world.ts'

/** The `VpcConfig` of the function of a construct, with logical ids in short. */
function networkOf(stack: Stack, target: Construct) {
  const id = stack.getLogicalId(target.node.defaultChild as never)
  const { VpcConfig } = Template.fromStack(stack).toJSON().Resources[id].Properties
  return VpcConfig === undefined ? undefined : JSON.stringify(VpcConfig).match(/\w+?(?=[0-9A-F]{8}")/g)
}

interface KeyedParts {
  readonly source?: SourceConnection
  readonly keyedStreams?: KeyedStreams
}

/** A keyed stage behind lines of a topic; its frames go through Kinesis unless said. */
function keyedIn(stack: Stack, cluster: ClusterConnection, { source, ...more }: KeyedParts = {}) {
  const app = new Topology('counts-app')
  const lines = app.source('lines', text())
  const out = app.sink<number>('out')
  lines
    .keyBy('by-line', (line) => line)
    .aggregate('count', { init: () => 0, add: (n) => n + 1, result: (n) => n }, { emit: 'on-update' })
    .to(out)
  return new StreamApplication(stack, 'App', {
    topology: app,
    entry,
    bind: [bind(lines, source ?? new KafkaSource(cluster, 'lines')), bind(out, new CustomSink())],
    ...more,
  })
}

const inVpc = ['VpcClients', 'VpcPrivateSubnet1Subnet', 'VpcPrivateSubnet2Subnet']

describe('a function stands', () => {
  it('outside where it only reads a topic', () => {
    const stack = newStack()
    const source = new KafkaSource(mskIn(stack, { network: networkIn(stack) }), 'lines')
    const application = linesIn(stack, { source })
    expect(networkOf(stack, application.stage('lines').function)).toBeUndefined()
  })

  it("in the cluster's network where it writes to a topic", () => {
    const stack = newStack()
    const cluster = mskIn(stack, { network: networkIn(stack) })
    const application = linesIn(stack, {
      sink: new KafkaSink(cluster, 'out'),
      source: new KafkaSource(cluster, 'lines'),
    })
    expect(networkOf(stack, application.stage('lines').function)).toEqual(inVpc)
    Template.fromStack(stack).hasResourceProperties('AWS::IAM::Role', {
      Policies: [{ PolicyDocument: { Statement: [{ Resource: '*' }] } }],
    })
  })

  it('there where its dead letters are in a topic', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { network: networkIn(stack) })
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
    })
    expect(networkOf(stack, application.stage('lines').function)).toEqual(inVpc)
  })

  it('there where it feeds a keyed stage, and so does the announcer, but not what reads Kinesis', () => {
    const stack = newStack()
    const application = keyedIn(stack, mskIn(stack, { network: networkIn(stack) }))
    expect(networkOf(stack, application.stage('lines').function)).toEqual(inVpc)
    expect(application.announcer && networkOf(stack, application.announcer.function)).toEqual(inVpc)
    expect(networkOf(stack, application.stage('by-line').function)).toBeUndefined()
  })

  it('there where it feeds a topic, though it reads Kinesis', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { network: networkIn(stack) })
    const parts = { source: new KinesisSource(newStream(stack, 'In')), keyedStreams: KeyedStreams.topics(cluster) }
    const application = keyedIn(stack, cluster, parts)
    expect(networkOf(stack, application.stage('lines').function)).toEqual(inVpc)
  })

  it('where the user says, before all', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { network: networkIn(stack) })
    const own = new Vpc(stack, 'Own', { maxAzs: 1 })
    const application = linesIn(stack, { sink: new KafkaSink(cluster, 'out'), stage: { function: { vpc: own } } })
    expect(networkOf(stack, application.stage('lines').function)?.join()).toMatch(/Own/)
    expect(networkOf(stack, application.stage('lines').function)?.join()).not.toMatch(/Clients/)
  })

  it('in a security group of its own where the network names none', () => {
    const stack = newStack()
    const { vpc } = networkIn(stack)
    const application = linesIn(stack, { sink: new KafkaSink(mskIn(stack, { network: { vpc } }), 'out') })
    expect(networkOf(stack, application.stage('lines').function)?.join()).toMatch(/ApplinesFunctionSecurityGroup/)
    expect(application.stage('lines').function.connections.securityGroups).toHaveLength(1)
  })
})

describe('brokers that are looked up, which the VPC alone reaches', () => {
  const warned = (stack: Stack) =>
    Annotations.fromStack(stack)
      .findWarning('*', Match.stringLikeRegexp('stands in no VPC'))
      .map(({ entry: { data } }) => String(data))
  const written = (options: Partial<MskOptions>, stage: StageProps = {}, stack = newStack()) => {
    const cluster = mskIn(stack, options)
    linesIn(stack, { source: new KafkaSource(cluster, 'lines'), sink: new KafkaSink(cluster, 'out'), stage })
    return warned(stack)
  }

  it('are warned of where a function stands in no VPC', () => {
    expect(written({})).toEqual([expect.stringMatching(/App\/lines\/Function .*give the cluster its `network`, or/)])
  })

  it('are warned of where it only looks at a topic, as the announcer does, or makes topics', () => {
    const looked = newStack()
    keyedIn(looked, mskIn(looked))
    expect(warned(looked)).toEqual([expect.stringContaining('App/Announcer/Function')])
    const made = newStack()
    const source = new KinesisSource(newStream(made, 'In'))
    keyedIn(made, mskIn(made), { source, keyedStreams: KeyedStreams.topics(mskIn(new Construct(made, 'Of'))) })
    expect(warned(made).join()).toContain('App/Topics/Function')
  })

  it('are no trouble to what stands in a VPC, to pollers, and where brokers are given', () => {
    const [inNetwork, inVpcOfUser, onlyRead] = [newStack(), newStack(), newStack()]
    expect(written({ network: networkIn(inNetwork) }, {}, inNetwork)).toEqual([])
    expect(written({}, { function: { vpc: networkIn(inVpcOfUser).vpc } }, inVpcOfUser)).toEqual([])
    expect(written({ brokers: ['b-1-public.shop:9198'] })).toEqual([])
    linesIn(onlyRead)
    expect(warned(onlyRead)).toEqual([])
  })
})

describe('two clusters', () => {
  /** Lines of one cluster that go to another, and whose dead letters are in the first. */
  const between = (stack: Stack, network: ClusterNetwork, ofOther: ClusterNetwork) => {
    const cluster = mskIn(stack, { network })
    const brokers = ['kafka:9092']
    const other = KafkaCluster.selfManaged({ brokers, auth: 'none', network: ofOther })
    return linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      sink: new KafkaSink(other, 'out'),
      more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
    })
  }

  it('of one VPC are reached with the security groups of both', () => {
    const stack = newStack()
    const network = networkIn(stack)
    const securityGroups = [new SecurityGroup(stack, 'OtherClients', { vpc: network.vpc })]
    const application = between(stack, network, { vpc: network.vpc, securityGroups })
    expect(networkOf(stack, application.stage('lines').function)).toEqual(
      expect.arrayContaining(['OtherClients', ...inVpc]),
    )
  })

  it('of one VPC that is imported for each are reached as of one', () => {
    const stack = newStack()
    const imported = (id: string): ClusterNetwork => ({
      vpc: Vpc.fromVpcAttributes(stack, id, {
        vpcId: Fn.importValue('vpc'),
        availabilityZones: ['us-east-1a'],
        privateSubnetIds: ['subnet-0a1b2c3d'],
      }),
      securityGroups: [SecurityGroup.fromSecurityGroupId(stack, `${id}Clients`, 'sg-0a1b2c3d')],
    })
    const { function: target } = between(stack, imported('One'), imported('Other')).stage('lines')
    const { VpcConfig } =
      Template.fromStack(stack).toJSON().Resources[stack.getLogicalId(target.node.defaultChild as never)].Properties
    expect(VpcConfig).toEqual({ SubnetIds: ['subnet-0a1b2c3d'], SecurityGroupIds: ['sg-0a1b2c3d'] })
  })

  it('of two VPCs are refused', () => {
    const stack = newStack()
    expect(() => between(stack, networkIn(stack), networkIn(stack, 'Other'))).toThrow(
      /the function of stage "lines" reaches the clusters .* which are in several VPCs, and a function stands in one: give it a VPC/,
    )
  })
})
