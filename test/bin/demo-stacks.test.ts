import { App } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { EnrichmentStack, PartitionsStack, PaymentsStack } from '../../bin/demos/demo-stacks.ts'

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
