/** What an override of a mapping of Kafka may not set: the CDK takes all of it. */
import type { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import type { CfnEventSourceMapping } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import { type ClusterConnection, KafkaCluster, KafkaSource } from '../../../lib/cdk/index.ts'
import { newStack } from '../world.ts'
import { linesIn, mskIn, networkIn } from './world.ts'

/** A synthesis with a property of the mapping overridden; undefined takes it away. */
function synthesised(mode: 'on-demand' | 'provisioned', overrides: Readonly<Record<string, unknown>>): () => Template {
  const stack = newStack()
  const source = new KafkaSource(mskIn(stack), 'lines', mode === 'provisioned' ? { pollers: {} } : {})
  const { mapping } = linesIn(stack, { source }).stage('lines')
  const resource = mapping.node.defaultChild as CfnEventSourceMapping
  for (const [property, value] of Object.entries(overrides)) {
    if (value === undefined) resource.addPropertyDeletionOverride(property)
    else resource.addPropertyOverride(property, value)
  }
  return () => Template.fromStack(stack)
}

const needsPollers = /only provisioned pollers have it, and Lambda refuses the mapping: give the KafkaSource `pollers`/
const registry = { SchemaRegistryConfig: { SchemaRegistryURI: 'arn:aws:glue:us-east-1:111122223333:registry/shop' } }
const to = (destination: string) => ({ OnFailure: { Destination: destination } })
const queue = 'arn:aws:sqs:us-east-1:111122223333:failed'

describe('on demand is refused', () => {
  it.each<[string, unknown]>([
    ['FunctionResponseTypes', ['ReportBatchItemFailures']],
    ['BisectBatchOnFunctionError', true],
    ['MaximumRetryAttempts', 3],
    ['MaximumRetryAttempts', -1],
    ['MaximumRecordAgeInSeconds', 3_600],
    ['AmazonManagedKafkaEventSourceConfig', registry],
    ['SelfManagedKafkaEventSourceConfig', registry],
    ['DestinationConfig', to('kafka://failed')],
    ['LoggingConfig', { SystemLogLevel: 'DEBUG' }],
  ])('%s %j', (property, value) => {
    const synthesise = synthesised('on-demand', { [property]: value })
    expect(synthesise).toThrow(needsPollers)
    expect(synthesise).toThrow(`the mapping of stage "lines" has ${property}`)
  })

  it('what is left of a mapping whose pollers were taken away', () => {
    expect(synthesised('provisioned', { ProvisionedPollerConfig: undefined })).toThrow(needsPollers)
  })
})

describe('with provisioned pollers is refused', () => {
  it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['no answer by record', { FunctionResponseTypes: undefined }, /take a batch of which a part failed for done/],
    ['no bisecting', { BisectBatchOnFunctionError: false }, /a record that kills the function is found by bisecting/],
    ['giving up without a destination', { MaximumRetryAttempts: 3 }, /would drop records that were never processed/],
    ['an age without a destination', { MaximumRecordAgeInSeconds: 60 }, /would drop records that were never processed/],
  ])('%s', (_, overrides, message) => {
    expect(synthesised('provisioned', overrides)).toThrow(message)
  })

  it('pollers that the function was not told of', () => {
    expect(synthesised('on-demand', { ProvisionedPollerConfig: { MinimumPollers: 1 } })).toThrow(
      /take a batch of which a part failed for done/,
    )
  })
})

describe('a destination', () => {
  const capped = /with a destination Lambda ends endless retries after ten, without a word/

  it.each(['on-demand', 'provisioned'] as const)('of endless retries is refused, %s', (mode) => {
    expect(synthesised(mode, { DestinationConfig: to(queue) })).toThrow(capped)
  })

  it('of a number of retries is taken', () => {
    const overrides = { DestinationConfig: to(queue), MaximumRetryAttempts: 5 }
    expect(synthesised('provisioned', overrides)).not.toThrow()
    const topic = { DestinationConfig: to('kafka://failed'), MaximumRetryAttempts: 5 }
    expect(synthesised('provisioned', topic)).not.toThrow()
  })

  it('that is the topic itself is refused', () => {
    const overrides = { DestinationConfig: to('kafka://lines'), MaximumRetryAttempts: 5 }
    expect(synthesised('provisioned', overrides)).toThrow(
      /a topic that a mapping reads: what was given up would come back/,
    )
  })

  /** A stack in which one mapping gives up to a topic that another one reads, in the cluster that `readBy` names. */
  const givenUpTo = (readBy: (stack: Stack) => ClusterConnection) => () => {
    const stack = newStack()
    const source = new KafkaSource(mskIn(stack), 'lines', { pollers: {} })
    const { mapping } = linesIn(stack, { source }).stage('lines')
    const resource = mapping.node.defaultChild as CfnEventSourceMapping
    resource.addPropertyOverride('MaximumRetryAttempts', 5)
    resource.addPropertyOverride('DestinationConfig', to('kafka://refunds'))
    linesIn(new Construct(stack, 'Second'), { source: new KafkaSource(readBy(stack), 'refunds') })
    return Template.fromStack(stack)
  }

  it('that another mapping of the cluster reads is refused', () => {
    expect(givenUpTo((stack) => mskIn(new Construct(stack, 'Again')))).toThrow(/a topic that a mapping reads/)
  })

  it('of the name of a topic in another cluster is taken', () => {
    const elsewhere = (stack: Stack) =>
      KafkaCluster.selfManaged({ brokers: ['kafka:9092'], auth: 'none', network: networkIn(stack) })
    expect(givenUpTo(elsewhere)).not.toThrow()
  })
})

it('a log of the pollers is taken with provisioned ones', () => {
  expect(synthesised('provisioned', { LoggingConfig: { SystemLogLevel: 'DEBUG' } })).not.toThrow()
})

it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
  ['LATEST', { StartingPosition: 'LATEST' }, /what arrives until the mapping polls/],
  [
    'two batches at a time',
    { ParallelizationFactor: 2 },
    /Lambda has it for shards only: leave it out, and give the topic/,
  ],
  ['a tumbling window', { TumblingWindowInSeconds: 60 }, /declare a window in the topology/],
  [
    'a filter by something else than the value',
    { FilterCriteria: { Filters: [{ Pattern: '{"value":{}}' }, { Pattern: '{"data":{"type":["paid"]}}' }] } },
    /Lambda filters records of a topic by their `value` only/,
  ],
  [
    'a share group',
    { SelfManagedKafkaEventSourceConfig: { ConsumptionMode: 'Queue' } },
    /keeps no order of a partition/,
  ],
])('is refused in either mode: %s', (_, overrides, message) => {
  expect(synthesised('on-demand', overrides)).toThrow(message)
  expect(synthesised('provisioned', overrides)).toThrow(message)
})
