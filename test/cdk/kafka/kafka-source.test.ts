/** Topics as sources: what the mapping is told, what it costs, and what is refused where it is said. */
import { Duration, Fn, type Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { CfnRegistry } from 'aws-cdk-lib/aws-glue'
import { EventRecordFormat, FilterCriteria, FilterRule, KafkaSchemaValidationAttribute } from 'aws-cdk-lib/aws-lambda'
import { GlueSchemaRegistry } from 'aws-cdk-lib/aws-lambda-event-sources'
import {
  KafkaSink,
  KafkaSource,
  type KafkaSourceOptions,
  type Pollers,
  type StageProps,
} from '../../../lib/cdk/index.ts'
import { bindingsOf, newStack } from '../world.ts'
import { linesIn, mappingOf, mskIn } from './world.ts'

/** The lines, from a topic that is read with these options. */
const read = (stack: Stack, options: KafkaSourceOptions, stage: StageProps = {}) =>
  linesIn(stack, { source: new KafkaSource(mskIn(stack), 'lines', options), stage })

/** What Lambda has by provisioned pollers only. */
const ofPollers = [
  'ProvisionedPollerConfig',
  'FunctionResponseTypes',
  'BisectBatchOnFunctionError',
  'MaximumRetryAttempts',
  'MaximumRecordAgeInSeconds',
  'ParallelizationFactor',
]
const infosOf = (stack: Stack) =>
  Annotations.fromStack(stack)
    .findInfo('*', Match.anyValue())
    .map(({ entry }) => String(entry.data))

describe('on demand', () => {
  it('has nothing of what only provisioned pollers have, and its function is told so', () => {
    const stack = newStack()
    const application = read(stack, {})
    const mapping = mappingOf(stack)
    for (const property of ofPollers) expect(mapping).not.toHaveProperty(property)
    expect(mapping).toMatchObject({
      Topics: ['lines'],
      BatchSize: 500,
      MaximumBatchingWindowInSeconds: 1,
      StartingPosition: 'TRIM_HORIZON',
      Enabled: true,
    })
    expect(bindingsOf(stack, application, 'lines').sources[0]).toMatchObject({ mode: 'on-demand' })
    expect(infosOf(stack).join()).not.toContain('pollers')
  })

  it('refuses a schema registry', () => {
    const registry = GlueSchemaRegistry as never
    expect(() => read(newStack(), { schemaRegistry: registry })).toThrow(
      /has a schema registry, which only provisioned pollers ask: give it `pollers` too/,
    )
  })
})

describe('with provisioned pollers', () => {
  it('answers by record, bisects and retries without end', () => {
    const stack = newStack()
    const application = read(stack, { pollers: { minimum: 2, maximum: 8, group: 'shop' } })
    expect(mappingOf(stack)).toMatchObject({
      ProvisionedPollerConfig: { MinimumPollers: 2, MaximumPollers: 8, PollerGroupName: 'shop' },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: -1,
    })
    expect(mappingOf(stack)).not.toHaveProperty('ParallelizationFactor')
    expect(bindingsOf(stack, application, 'lines').sources[0]).toMatchObject({ mode: 'provisioned' })
  })

  it.each<[Pollers, RegExp]>([
    [
      {},
      /App\/lines\/Mapping has provisioned pollers, which cost at least \$135 a month: 1 event poller unit at \$0.185/,
    ],
    [{ minimum: 10 }, /at least \$135 a month/],
    [{ minimum: 11 }, /at least \$270 a month: 2 event poller units/],
    [{ group: 'shop' }, /more while it needs more; it is paid once for all of the group "shop"\./],
  ])('says at synth what they cost: %j', (pollers, message) => {
    const stack = newStack()
    read(stack, { pollers })
    expect(infosOf(stack).find((info) => info.includes('pollers'))).toMatch(message)
  })

  it('has a schema registry where one is given', () => {
    const stack = newStack()
    const schemaRegistry = new GlueSchemaRegistry({
      schemaRegistry: new CfnRegistry(stack, 'Registry', { name: 'shop' }),
      eventRecordFormat: EventRecordFormat.JSON,
      schemaValidationConfigs: [{ attribute: KafkaSchemaValidationAttribute.VALUE }],
    })
    read(stack, { pollers: {}, schemaRegistry })
    expect(mappingOf(stack).AmazonManagedKafkaEventSourceConfig.SchemaRegistryConfig).toMatchObject({
      EventRecordFormat: 'JSON',
      SchemaValidationConfigs: [{ Attribute: 'VALUE' }],
    })
  })

  it.each<[Pollers, RegExp]>([
    [{ minimum: 0 }, /has pollers with the minimum 0: give a whole number from 1 to 200/],
    [{ minimum: 201 }, /minimum 201: give a whole number from 1 to 200/],
    [{ maximum: 2_001 }, /maximum 2001: give a whole number from 1 to 2,000/],
    [{ minimum: 4, maximum: 2 }, /has pollers from 4 to 2: the maximum must not be below the minimum/],
    [{ group: 'a group' }, /has pollers of the group "a group": give a name of 1 to 128/],
  ])('refuses %j', (pollers, message) => {
    expect(() => read(newStack(), { pollers })).toThrow(message)
  })
})

it('begins where it is said, and both the mapping and the function are told', () => {
  const stack = newStack()
  const startingPosition = new Date('2026-11-01T00:00:00Z')
  const application = read(stack, { startingPosition })
  expect(mappingOf(stack)).toMatchObject({
    StartingPosition: 'AT_TIMESTAMP',
    StartingPositionTimestamp: startingPosition.getTime() / 1_000,
  })
  expect(bindingsOf(stack, application, 'lines').sources[0].startingAtMs).toBe(startingPosition.getTime())
})

it('takes filters, where no keyed stage counts the records', () => {
  const stack = newStack()
  read(stack, { filters: [FilterCriteria.filter({ value: { type: FilterRule.isEqual('paid') } })] })
  expect(mappingOf(stack).FilterCriteria.Filters).toEqual([{ Pattern: '{"value":{"type":["paid"]}}' }])
})

it.each<[string, KafkaSourceOptions, RegExp]>([
  ['LATEST', { startingPosition: 'LATEST' as never }, /would start at LATEST, which loses what arrives/],
  ['no group', { consumerGroupId: '' }, /has the consumerGroupId "": give 1 to 200 letters/],
  ['a group with a space', { consumerGroupId: 'my group' }, /has the consumerGroupId "my group"/],
  [
    'bisecting',
    { bisectBatchOnError: true } as never,
    /bisectBatchOnError, which is not offered: with `pollers` it is/,
  ],
  [
    'partial responses',
    { reportBatchItemFailures: true } as never,
    /without them Lambda reads no answer; leave it out/,
  ],
  ['retries', { retryAttempts: 3 } as never, /retryAttempts, which is not offered/],
  ['an age', { maxRecordAge: Duration.hours(1) } as never, /maxRecordAge, which is not offered/],
  ['a destination', { onFailure: {} } as never, /ends after ten attempts once there is a destination/],
  ["the CDK's pollers", { provisionedPollerConfig: {} } as never, /it is `pollers` here/],
])('refuses %s', (_, options, message) => {
  expect(() => read(newStack(), options)).toThrow(message)
})

describe('filters', () => {
  const filtered = (...filters: Record<string, unknown>[]) =>
    read(newStack(), { filters: filters.map((filter) => FilterCriteria.filter(filter)) })
  const isPaid = { type: FilterRule.isEqual('paid') }

  it('may say one or the other of a value', () => {
    expect(() => filtered({ $or: [{ value: isPaid }, { value: { open: [true] } }] })).not.toThrow()
  })

  it('may be what only the deployment knows', () => {
    expect(() => read(newStack(), { filters: [{ pattern: Fn.importValue('filter') }] })).not.toThrow()
  })

  it.each<[string, Record<string, unknown>]>([
    ['data', { data: isPaid }],
    ['key', { value: isPaid, key: ['u8'] }],
    ['topic', { $or: [{ value: isPaid }, { topic: ['lines'] }] }],
  ])('by %s are refused', (key, filter) => {
    expect(() => filtered({ value: isPaid }, filter)).toThrow(
      `, topic lines has a filter by "${key}", and Lambda filters records of a topic by their \`value\` only`,
    )
  })

  it('that are no JSON are refused', () => {
    expect(() => read(newStack(), { filters: [{ pattern: 'paid' }] })).toThrow(
      /has the filter "paid", which is no JSON/,
    )
  })
})

describe('a topic is refused', () => {
  it.each(['', 'a/b', 'two words', '.', '..', 'x'.repeat(250), undefined, null, 7])(
    'that Kafka has no name for: %j',
    (topic) => {
      const message = /has no name that Kafka takes: give 1 to 249/
      expect(() => new KafkaSource(mskIn(newStack()), topic as never)).toThrow(message)
      expect(() => new KafkaSink(mskIn(newStack()), topic as never)).toThrow(message)
    },
  )

  it.each(['a', '.orders'])('that no mapping reads, though a sink may write to it: %s', (topic) => {
    const cluster = mskIn(newStack())
    expect(() => new KafkaSource(cluster, topic)).toThrow(
      `topic ${topic} reads a topic whose name CloudFormation takes for no mapping: read one whose name has two characters`,
    )
    expect(() => new KafkaSink(cluster, topic)).not.toThrow()
  })
})

it('refuses more than one batch of a partition at a time', () => {
  expect(() => read(newStack(), {}, { parallelizationFactor: 2 })).toThrow(
    /parallelization factor 2, which Lambda has for shards only: leave it at 1, and give the topic more partitions/,
  )
})

describe('a timeout above 14 minutes', () => {
  const message = /App\/lines\/Function has a timeout of 841 s, and Lambda takes at most 14 minutes \(840 s\)/

  it('is refused where it is said', () => {
    expect(() => read(newStack(), {}, { timeout: Duration.seconds(841) })).toThrow(message)
  })

  it('is refused behind an alias too', () => {
    const stage = { timeout: Duration.seconds(841), provisionedConcurrency: 1 }
    expect(() => read(newStack(), {}, stage)).toThrow(message)
  })

  it.each<[string, StageProps]>([
    ['', {}],
    [', behind an alias too', { provisionedConcurrency: 1 }],
  ])('is refused at synth where an override sets it%s', (_, stage) => {
    const stack = newStack()
    const { function: target } = read(stack, {}, stage).stage('lines')
    Object(target.node.defaultChild).addPropertyOverride('Timeout', 841)
    expect(() => Template.fromStack(stack)).toThrow(message)
  })

  it('of exactly 14 is taken', () => {
    const stack = newStack()
    read(stack, {}, { timeout: Duration.minutes(14) })
    expect(() => Template.fromStack(stack)).not.toThrow()
  })
})
