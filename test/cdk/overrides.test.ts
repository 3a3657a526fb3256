import { App, Duration, Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import type { CfnGlobalTable } from 'aws-cdk-lib/aws-dynamodb'
import type { CfnStream } from 'aws-cdk-lib/aws-kinesis'
import { Stream } from 'aws-cdk-lib/aws-kinesis'
import type { CfnEventSourceMapping, CfnFunction } from 'aws-cdk-lib/aws-lambda'
import { bind, CustomSink, KinesisSink, KinesisSource, type StageResources } from '../../lib/cdk/index.ts'
import { ridesIn } from './rides.ts'
import { newStack, newStream, shopIn } from './world.ts'

const unbundled = { 'aws:cdk:bundling-stacks': [] }

/** What synth refuses of the application of rides, after `change` did what it liked to one stage. */
function refusalsOf(stage: string, change: (resources: StageResources) => void): string[] {
  const app = new App({ context: unbundled })
  change(ridesIn(new Stack(app, 'Test')).stage(stage))
  try {
    app.synth()
    return []
  } catch (error) {
    return (error as Error).message.split('\n').filter((line) => line.includes('[Test/'))
  }
}

const mappingOf = ({ mapping }: StageResources) => mapping.node.defaultChild as CfnEventSourceMapping

/** Everything that may be said of a mapping, and should not be. */
function spoil(resources: StageResources): void {
  const mapping = mappingOf(resources)
  mapping.tumblingWindowInSeconds = 30
  mapping.addPropertyOverride('FilterCriteria', { Filters: [{ Pattern: '{"data":{"type":["a"]}}' }] })
  mapping.addPropertyOverride('ParallelizationFactor', 10)
  mapping.bisectBatchOnFunctionError = false
  mapping.maximumRetryAttempts = 3
  mapping.maximumRecordAgeInSeconds = 60
  mapping.addPropertyDeletionOverride('FunctionResponseTypes')
  mapping.startingPosition = 'LATEST'
  mapping.addPropertyOverride('ProvisionedPollerConfig', { MinimumPollers: 1 })
}

const sendTo = (destination: string) => (resources: StageResources) =>
  mappingOf(resources).addPropertyOverride('DestinationConfig', { OnFailure: { Destination: destination } })

const everywhere: readonly [string, string][] = [
  ['TumblingWindowInSeconds 30', 'allow no parallelization: leave it out, and declare a window in the topology'],
  ['BisectBatchOnFunctionError false', 'leave it at true'],
  ['MaximumRetryAttempts 3', 'Lambda would drop records that were never processed: leave it out'],
  ['MaximumRecordAgeInSeconds 60', 'Lambda would drop records that were never processed: leave it out'],
  ['FunctionResponseTypes undefined', 'leave it at ["ReportBatchItemFailures"]'],
  ['StartingPosition "LATEST"', 'use TRIM_HORIZON'],
  ['ProvisionedPollerConfig', 'leave it out'],
]
const whereOrderCounts: readonly [string, string][] = [
  ['FilterCriteria', 'filter in the topology, behind the source'],
  ['ParallelizationFactor 10', 'leave it at 1, and give the stream more shards'],
]

describe.each([
  ['by-city', 'keyed'],
  ['rides', 'that feeds a keyed one'],
])('of the mapping of stage %s, which is one %s, synth refuses', (stage) => {
  const refusals = refusalsOf(stage, spoil)

  it.each([...everywhere, ...whereOrderCounts])('%s, with what to do', (value, remedy) => {
    const [refusal] = refusals.filter((line) => line.includes(`the mapping of stage "${stage}" has ${value}`))
    expect(refusal).toContain(remedy)
  })

  it('nothing else, and each once', () => {
    expect(refusals).toHaveLength(everywhere.length + whereOrderCounts.length)
  })

  it('a destination, as nothing would come there', () => {
    expect(refusalsOf(stage, sendTo('arn:aws:sqs:eu-west-1:111122223333:q'))).toEqual([
      expect.stringContaining('say `deadLetters` to the application'),
    ])
  })
})

describe('of the mapping of a stage that keeps nothing, synth', () => {
  it('refuses the same, but for filters and parallelization', () => {
    const refusals = refusalsOf('visits', spoil).join('\n')
    for (const [value] of everywhere) expect(refusals).toContain(`the mapping of stage "visits" has ${value}`)
    for (const [value] of whereOrderCounts) expect(refusals).not.toContain(value)
  })

  it('takes an end of retries where what is given up goes somewhere, but not to a topic of Kafka', () => {
    const endTo = (destination: string) => (resources: StageResources) => {
      mappingOf(resources).maximumRetryAttempts = 3
      sendTo(destination)(resources)
    }
    expect(refusalsOf('visits', endTo('arn:aws:sqs:eu-west-1:111122223333:q'))).toEqual([])
    expect(refusalsOf('visits', endTo('kafka://failures'))).toEqual([
      expect.stringContaining('only a mapping of Kafka may send to a topic'),
    ])
  })
})

it('a mapping that is tuned within its bounds is taken', () => {
  expect(
    refusalsOf('by-city', (resources) => {
      const mapping = mappingOf(resources)
      mapping.batchSize = 10_000
      mapping.maximumBatchingWindowInSeconds = 10
      mapping.maximumRetryAttempts = -1
      mapping.addPropertyOverride('MetricsConfig', { Metrics: ['EventCount'] })
    }),
  ).toEqual([])
})

it.each(['CapacityProviderConfig', 'TenancyConfig', 'DurableConfig'])('%s of a function is refused', (property) => {
  const change = ({ function: target }: StageResources) =>
    (target.node.defaultChild as CfnFunction).addPropertyOverride(property, { Any: 1 })
  expect(refusalsOf('visits', change)).toEqual([
    expect.stringMatching(`the function of stage "visits" has ${property}, and with it .*: leave it out`),
  ])
})

it('a runtime below the one that the bundle is made for is refused', () => {
  const change = ({ function: target }: StageResources) => {
    ;(target.node.defaultChild as CfnFunction).runtime = 'nodejs16.x'
  }
  expect(refusalsOf('visits', change)).toEqual([
    expect.stringContaining('has the runtime nodejs16.x, and its bundle is made for Node 24: leave it at nodejs24.x'),
  ])
})

it('a function that no longer knows its streams is refused', () => {
  const change = ({ function: target }: StageResources) => {
    const resource = target.node.defaultChild as CfnFunction
    resource.environment = { variables: { LEVEL: 'x' } }
  }
  expect(refusalsOf('visits', change)).toEqual([
    expect.stringContaining('has lost the variable MILLRACE_BINDINGS, without which it knows no stream'),
  ])
})

describe('a stream whose order counts is refused', () => {
  it.each([
    ['set', (stream: CfnStream) => (stream.recordDistributionStrategy = 'AUTO')],
    ['overridden', (stream: CfnStream) => stream.addPropertyOverride('RecordDistributionStrategy', 'AUTO')],
  ])('with a record distribution that is %s', (_, change) => {
    expect(refusalsOf('by-city', ({ stream }) => change(stream.node.defaultChild as CfnStream))).toEqual([
      expect.stringMatching(
        /stream of stage "by-city" has the record distribution AUTO.*leave it at USER_PARTITION_KEY/,
      ),
    ])
  })

  it('with records that Lambda cannot hand over', () => {
    const change = ({ stream }: StageResources) => {
      ;(stream.node.defaultChild as CfnStream).maxRecordSizeInKiB = 10_240
    }
    expect(refusalsOf('by-city', change)).toEqual([
      expect.stringMatching(/takes records of 10240 KiB.*set maxRecordSizeInKiB to 4096 or less/),
    ])
  })

  it('as the source of a stage that feeds a keyed one, and taken as that of one that keeps nothing', () => {
    const spoiltSource = (source: 'In' | 'Visits') => {
      const stack = new Stack(new App({ context: unbundled }), 'Test')
      ridesIn(stack)
      const stream = stack.node.findChild(source).node.defaultChild as CfnStream
      stream.recordDistributionStrategy = 'AUTO'
      return expect(() => (stack.node.root as App).synth())
    }
    spoiltSource('In').toThrow(
      /stream of the source "rides", which feeds a keyed stage, has the record distribution AUTO/,
    )
    spoiltSource('Visits').not.toThrow()
  })

  it('as a sink that keeps the order of a key, and taken as one that does not', () => {
    const withSink = (ordering: 'per-key' | 'none') => {
      const stack = new Stack(new App({ context: unbundled }), 'Test')
      const out = new Stream(stack, 'Out')
      ;(out.node.defaultChild as CfnStream).recordDistributionStrategy = 'AUTO'
      shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
        bind: [
          bind(orders, new KinesisSource(newStream(stack, 'A'))),
          bind(refunds, new KinesisSource(newStream(stack, 'B'))),
          bind(ledger, new KinesisSink(out, { ordering })),
          bind(audit, new CustomSink()),
        ],
      }))
      return expect(() => (stack.node.root as App).synth())
    }
    withSink('per-key').toThrow(/stream Test\/Out has the record distribution AUTO.*\{ ordering: 'none' \}/)
    withSink('none').not.toThrow()
  })
})

describe('a table of a stage is refused', () => {
  const tableOf = ({ table }: StageResources) => table.node.defaultChild as CfnGlobalTable
  it.each<[string, (table: CfnGlobalTable) => void, string]>([
    [
      'whose time to live is off',
      (table) => table.addPropertyOverride('TimeToLiveSpecification.Enabled', false),
      'off',
    ],
    [
      'without time to live',
      (table) => table.addPropertyDeletionOverride('TimeToLiveSpecification'),
      'no time to live',
    ],
    [
      'with another time to live',
      (table) => table.addPropertyOverride('TimeToLiveSpecification.AttributeName', 'expires'),
      'its time to live in "expires"',
    ],
    [
      'without a sort key',
      (table) => table.addPropertyOverride('KeySchema', [{ AttributeName: 'pk', KeyType: 'HASH' }]),
      'has the key pk (S): its partition key must be "pk" and its sort key "sk"',
    ],
  ])('%s', (_, change, message) => {
    expect(refusalsOf('rides', (resources) => change(tableOf(resources)))).toEqual([expect.stringContaining(message)])
  })
})

it.each<[string, object, string]>([
  ['filters', { filters: [] }, 'has the setting filters, which is not offered: what a mapping filters out'],
  ['retryAttempts', { retryAttempts: 3 }, 'a record that fails becomes a dead letter of the stage itself'],
  ['onFailure', { onFailure: {} }, 'say `deadLetters` to the application'],
  ['provisionedPollerConfig', { provisionedPollerConfig: {} }, 'it belongs to a source on Kafka'],
  ['runtime', { runtime: 'nodejs16.x' }, 'functions run on Node 24'],
])('the setting %s is refused to who does not compile with types', (_, settings, message) => {
  expect(() => ridesIn(newStack(), { visits: settings })).toThrow(message)
})

it('the mapping of a keyed stage can be made anew from another position, as after a restore', () => {
  const anew = (resources: StageResources) => {
    const mapping = mappingOf(resources)
    mapping.startingPosition = 'AT_TIMESTAMP'
    mapping.startingPositionTimestamp = 1_764_374_400
  }
  expect(refusalsOf('by-driver', anew)).toEqual([])
})

it('a retention that is overridden is what the function is told', () => {
  const stack = newStack()
  const application = ridesIn(stack, { 'by-driver': { stream: { retentionPeriod: Duration.days(30) } } })
  ;(application.stage('by-city').stream.node.defaultChild as CfnStream).addPropertyOverride('RetentionPeriodHours', 48)
  const template = Template.fromStack(stack).toJSON().Resources
  const told = (stage: string, what = /retentionMs\D+(\d+)/) => {
    const id = stack.getLogicalId(application.stage(stage).function.node.defaultChild as CfnFunction)
    return JSON.stringify(template[id].Properties.Environment.Variables.MILLRACE_BINDINGS).match(what)?.[1]
  }
  expect([told('by-driver'), told('by-city'), told('rides')]).toEqual(['2592000000', '172800000', undefined])
  // The source keeps a day, and the stream of by-driver, which feeds by-city, 30.
  const before = ['by-driver', 'by-city', 'rides'].map((stage) => told(stage, /upstreamRetentionMs\D+(\d+)/))
  expect(before).toEqual(['86400000', '2678400000', undefined])
})
