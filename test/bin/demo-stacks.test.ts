import { App } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import {
  BookingsStack,
  BoundedStateStack,
  ClassicsStack,
  DriversStack,
  EnrichmentStack,
  MapStateStack,
  PartitionsStack,
  PaymentsStack,
  TableFirstStack,
} from '../../bin/demos/demo-stacks.ts'

import { DriversOnKafkaStack } from '../../bin/demos/kafka-stacks.ts'

/** Without bundling, which `npm run synth` does. */
const app = () => new App({ context: { 'aws:cdk:bundling-stacks': [] } })

test('S1: a stream of 24 shards feeds one function with partial responses', () => {
  const template = Template.fromStack(new PartitionsStack(app(), 'Partitions'))
  template.hasResourceProperties('AWS::Kinesis::Stream', { ShardCount: 24 })
  template.resourceCountIs('AWS::Kinesis::Stream', 2)
  template.resourceCountIs('AWS::Lambda::Function', 1)
  template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
    FunctionResponseTypes: ['ReportBatchItemFailures'],
    StartingPosition: 'TRIM_HORIZON',
  })
})

test('S2: 12 shards with a parallelization factor of 2, and a stream each for validated and rejected', () => {
  const template = Template.fromStack(new PaymentsStack(app(), 'Payments'))
  template.hasResourceProperties('AWS::Kinesis::Stream', { ShardCount: 12 })
  template.resourceCountIs('AWS::Kinesis::Stream', 3)
  template.hasResourceProperties('AWS::Lambda::EventSourceMapping', { ParallelizationFactor: 2 })
})

test('S3: the function is told where the reference service is', () => {
  const template = Template.fromStack(new EnrichmentStack(app(), 'Enrichment'))
  template.hasParameter('ReferenceUrl', { Type: 'String' })
  template.hasResourceProperties('AWS::Lambda::Function', {
    Environment: { Variables: Match.objectLike({ REFERENCE_URL: { Ref: 'ReferenceUrl' } }) },
  })
})

test.each([
  ['S4', new DriversStack(app(), 'Drivers')],
  ['S5', new BookingsStack(app(), 'Bookings')],
  ['S6', new BoundedStateStack(app(), 'BoundedState')],
  ['S7', new MapStateStack(app(), 'MapState')],
])('%s: a function and a table for the source and for the keyed stage, and a function that announces', (_, stack) => {
  const template = Template.fromStack(stack)
  template.resourceCountIs('AWS::Lambda::Function', 3)
  template.resourceCountIs('AWS::DynamoDB::GlobalTable', 2)
  template.hasResourceProperties('AWS::DynamoDB::GlobalTable', {
    TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
  })
})

test('S17: the drivers on Kafka alone, with pollers that share what is paid for', () => {
  const stack = new DriversOnKafkaStack(app(), 'DriversOnKafka')
  const template = Template.fromStack(stack)
  template.resourceCountIs('AWS::Kinesis::Stream', 0)
  template.resourceCountIs('AWS::SQS::Queue', 0)
  template.resourceCountIs('AWS::DynamoDB::GlobalTable', 2)
  const mappings = Object.values(template.findResources('AWS::Lambda::EventSourceMapping'))
  expect(mappings.map(({ Properties }) => Properties.ProvisionedPollerConfig.PollerGroupName)).toEqual([
    'drivers',
    'drivers',
  ])
  // Both stages and the announcer write to topics, and the function that makes the topic stands there too.
  template.resourcePropertiesCountIs('AWS::Lambda::Function', { VpcConfig: Match.anyValue() }, 4)
  // Asked for brokers once.
  template.resourceCountIs('Custom::MillraceKafkaBrokers', 1)
})

test('S8: five applications with a table per stage, one of them fed by two sources', () => {
  const stack = new ClassicsStack(app(), 'Classics')
  const template = Template.fromStack(stack)
  template.resourceCountIs('AWS::DynamoDB::GlobalTable', 11)
  // One per stage, and one per application that announces.
  template.resourceCountIs('AWS::Lambda::Function', 11 + 5)
  expect(stack.applications.map(({ plan }) => plan.stages.length)).toEqual([2, 2, 2, 2, 3])
})

test('S12: the table of the accounts streams old and new images, and nothing else is written', () => {
  const template = Template.fromStack(new TableFirstStack(app(), 'TableFirst'))
  template.hasResourceProperties('AWS::DynamoDB::GlobalTable', {
    StreamSpecification: { StreamViewType: 'NEW_AND_OLD_IMAGES' },
  })
  // That of the bookings, and that of the keyed stage.
  template.resourceCountIs('AWS::Kinesis::Stream', 2)
})
