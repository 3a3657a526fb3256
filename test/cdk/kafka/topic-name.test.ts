/** Whether two topics are one, whose names only the deployment knows. */
import { App, CfnResource, Fn, Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { Construct } from 'constructs'
import { DeadLetters, KafkaCluster, KafkaSink, KafkaSource } from '../../../lib/cdk/index.ts'
import { newStack, validated } from '../world.ts'
import { linesIn, mappingOf, mskIn } from './world.ts'

test('topics of other imports are others', () => {
  const stack = newStack()
  const cluster = mskIn(stack)
  linesIn(stack, {
    source: new KafkaSource(cluster, Fn.importValue('lines')),
    sink: new KafkaSink(cluster, Fn.importValue('out')),
    more: { deadLetters: DeadLetters.topic(cluster, Fn.importValue('failed')) },
  })
  expect(mappingOf(stack).Topics).toEqual([{ 'Fn::ImportValue': 'lines' }])
})

test('topics of one import are one, however often it is made, and are named without a token', () => {
  const stack = newStack()
  const cluster = mskIn(stack)
  const topic = () => `shop-${Fn.importValue('lines')}`
  const source = new KafkaSource(cluster, topic())
  expect(source.resource).not.toContain('Token')
  expect(() => linesIn(stack, { source, sink: new KafkaSink(cluster, topic()) })).toThrow(/is cyclic/)
  const again = new Construct(stack, 'Again')
  const deadLetters = DeadLetters.topic(cluster, topic())
  expect(() => linesIn(again, { source, more: { deadLetters } })).toThrow(/they would come back for ever/)
})

test('topics that two attributes of one construct name are two', () => {
  const stack = newStack()
  const cluster = mskIn(stack)
  const made = new CfnResource(stack, 'Made', { type: 'Custom::Made' })
  const topic = (attribute: string) => made.getAtt(attribute).toString()
  const source = new KafkaSource(cluster, topic('In'))
  expect(() => linesIn(stack, { source, sink: new KafkaSink(cluster, topic('Out')) })).not.toThrow()
  const again = new Construct(stack, 'Again')
  expect(() => linesIn(again, { source, sink: new KafkaSink(cluster, topic('In')) })).toThrow(/is cyclic/)
})

describe('what two stacks make under one id', () => {
  const app = new App({ context: validated })
  const made = ['One', 'Other'].map((id) => {
    const resource = new CfnResource(new Stack(app, id), 'Made', { type: 'Custom::Made' })
    return { name: resource.getAtt('Name').toString(), clusterArn: resource.getAtt('Arn').toString() }
  })
  const [one, other] = made as [(typeof made)[0], (typeof made)[0]]

  it('are two topics', () => {
    const stack = new Stack(app, 'Topics')
    const cluster = mskIn(stack)
    linesIn(stack, { source: new KafkaSource(cluster, one.name), sink: new KafkaSink(cluster, other.name) })
    expect(() => Template.fromStack(stack)).not.toThrow()
  })

  it('are two clusters', () => {
    const stack = new Stack(app, 'Clusters')
    const clusterOf = (id: string, { clusterArn }: { clusterArn: string }) =>
      KafkaCluster.msk(stack, id, { clusterArn, brokers: ['b-1:9098'] })
    const source = new KafkaSource(clusterOf('From', one), 'lines')
    expect(() => linesIn(stack, { source, sink: new KafkaSink(clusterOf('To', other), 'lines') })).not.toThrow()
    const again = new Construct(stack, 'Again')
    expect(() => linesIn(again, { source, sink: new KafkaSink(clusterOf('Back', one), 'lines') })).toThrow(/is cyclic/)
  })
})
