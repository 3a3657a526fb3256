/** The group of a mapping is its own. */
import { App, type Environment, Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { type CfnEventSourceMapping, EventSourceMapping, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import {
  bind,
  type ClusterConnection,
  CustomSink,
  KafkaCluster,
  KafkaSource,
  StreamApplication,
} from '../../../lib/cdk/index.ts'
import { Topology, text } from '../../../lib/index.ts'
import { entry, newStack, validated } from '../world.ts'
import { clusterArn, linesIn, mskIn, networkIn } from './world.ts'

const message = (one: string, other: string) =>
  `the mapping ${one} has the consumerGroupId "shop" of the cluster`.concat(
    ' ',
    clusterArn,
    `, as the mapping ${other}`,
  )

/** Lines of a topic that are read in the group "shop". */
const readIn = (scope: Construct, cluster: ClusterConnection, topic = 'lines', consumerGroupId = 'shop') =>
  linesIn(scope, { source: new KafkaSource(cluster, topic, { consumerGroupId }) })

const stacksOf = (...envs: Environment[]) => {
  const app = new App({ context: validated })
  return envs.map((env, index) => new Stack(app, `Of${index}`, { env }))
}

describe('one group of two mappings is refused', () => {
  it('in one application', () => {
    const stack = newStack()
    const cluster = mskIn(stack)
    const topology = new Topology('two-sources')
    const [lines, words] = [topology.source('lines', text()), topology.source('words', text())]
    const out = topology.sink<string>('out')
    lines.to(out)
    words.to(out)
    const of = (topic: string) => new KafkaSource(cluster, topic, { consumerGroupId: 'shop' })
    new StreamApplication(stack, 'App', {
      topology,
      entry,
      bind: [bind(lines, of('lines')), bind(words, of('words')), bind(out, new CustomSink())],
    })
    const synthesise = () => Template.fromStack(stack)
    expect(synthesise).toThrow(message('Test/App/lines/Mapping', 'Test/App/words/Mapping'))
    expect(synthesise).toThrow('give each a group of its own, or leave `consumerGroupId` out')
  })

  it('in two applications of a stack, though they read one topic', () => {
    const stack = newStack()
    readIn(stack, mskIn(stack))
    readIn(new Construct(stack, 'Second'), mskIn(new Construct(stack, 'Again')))
    expect(() => Template.fromStack(stack)).toThrow(message('Test/App/lines/Mapping', 'Test/Second/App/lines/Mapping'))
  })

  it('in two stacks of an app', () => {
    const [one, other] = stacksOf({ region: 'us-east-1', account: '111122223333' }, {})
    for (const stack of [one, other]) readIn(stack as Stack, mskIn(stack as Stack))
    expect(() => Template.fromStack(one as Stack)).toThrow(message('Of0/App/lines/Mapping', 'Of1/App/lines/Mapping'))
  })

  it('where another mapping is none of ours, or an override says the group', () => {
    const [byHand, overridden] = [newStack(), newStack()]
    readIn(byHand, mskIn(byHand))
    new EventSourceMapping(byHand, 'ByHand', {
      target: LambdaFunction.fromFunctionName(byHand, 'Own', 'own'),
      eventSourceArn: clusterArn,
      kafkaTopic: 'words',
      kafkaConsumerGroupId: 'shop',
    })
    expect(() => Template.fromStack(byHand)).toThrow(message('Test/App/lines/Mapping', 'Test/ByHand'))
    readIn(overridden, mskIn(overridden))
    const { mapping } = linesIn(new Construct(overridden, 'Second')).stage('lines')
    const resource = mapping.node.defaultChild as CfnEventSourceMapping
    resource.addPropertyOverride('AmazonManagedKafkaEventSourceConfig.ConsumerGroupId', 'shop')
    expect(() => Template.fromStack(overridden)).toThrow(
      message('Test/App/lines/Mapping', 'Test/Second/App/lines/Mapping'),
    )
  })

  it('of a cluster of the user, in whatever order its brokers are said', () => {
    const stack = newStack()
    const network = networkIn(stack)
    const clusterOf = (...brokers: string[]) => KafkaCluster.selfManaged({ brokers, auth: 'none', network })
    readIn(stack, clusterOf('kafka-1:9092', 'kafka-2:9092'))
    readIn(new Construct(stack, 'Second'), clusterOf('kafka-2:9092', 'kafka-1:9092'))
    expect(() => Template.fromStack(stack)).toThrow(
      /has the consumerGroupId "shop" of the cluster kafka:\/\/kafka-1:9092,/,
    )
  })
})

describe('is taken', () => {
  it('one group in two clusters, and two groups in one', () => {
    const stack = newStack()
    readIn(stack, mskIn(stack))
    const other = KafkaCluster.selfManaged({ brokers: ['kafka:9092'], auth: 'none', network: networkIn(stack) })
    readIn(new Construct(stack, 'Second'), other)
    readIn(new Construct(stack, 'Third'), mskIn(new Construct(stack, 'Again')), 'lines', 'cellar')
    linesIn(new Construct(stack, 'Fourth'))
    expect(() => Template.fromStack(stack)).not.toThrow()
  })

  it('one group at brokers of one name in two accounts, where they are two clusters', () => {
    const [one, other] = stacksOf({ account: '111122223333' }, { account: '999999999999' })
    for (const stack of [one, other] as Stack[]) {
      readIn(stack, KafkaCluster.selfManaged({ brokers: ['kafka:9092'], auth: 'none', network: networkIn(stack) }))
    }
    expect(() => Template.fromStack(one as Stack)).not.toThrow()
  })
})
