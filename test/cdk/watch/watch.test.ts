/** Alarms and the dashboard of an application, as CloudFormation gets them. */
import { Duration } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import type { CfnAlarm } from 'aws-cdk-lib/aws-cloudwatch'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { bind, KinesisSource, StreamApplication } from '../../../lib/cdk/index.ts'
import { hours, minutes } from '../../../lib/core/duration.ts'
import { Topology, text, valueState } from '../../../lib/index.ts'
import { assumptions } from '../../../lib/plan/cost.ts'
import { ridesIn } from '../rides.ts'
import { entry, newStack, newStream } from '../world.ts'

/** The names of the alarms of one stage, in their order. */
const namesOf = (application: ReturnType<typeof ridesIn>, scope: string): readonly string[] =>
  application.alarms?.all.flatMap(({ node }) => (node.scope?.node.id === scope ? node.id : [])) ?? []

test('a keyed stage has an alarm for each thing that can go wrong with it, other stages for what they have', () => {
  const application = ridesIn(newStack())
  expect(namesOf(application, 'Stage-by-driver')).toEqual([
    'iterator-age',
    'stream-age',
    'watermark-lag',
    'late',
    'dead-letters',
    'conflicts',
    'overtaken',
    'collapse',
    'item-size',
    'units',
    'duration',
    'errors',
    'throttles',
    'table-throttles',
    'stream-throttles',
  ])
  expect(namesOf(application, 'Stage-rides')).toEqual([
    'iterator-age',
    'stream-age',
    'watermark-lag',
    'dead-letters',
    'duration',
    'errors',
    'throttles',
    'table-throttles',
  ])
  expect(namesOf(application, 'Stage-visits')).toEqual([
    'iterator-age',
    'stream-age',
    'dead-letters',
    'duration',
    'errors',
    'throttles',
  ])
  expect(namesOf(application, 'Announcer')).toEqual(['errors', 'silent'])
})

test('the estimate of `millrace plan --cost` counts as many alarms as there are', () => {
  const application = ridesIn(newStack())
  const counted = ['Stage-visits', 'Stage-rides', 'Stage-by-city', 'Announcer'].map(
    (scope) => namesOf(application, scope).length,
  )
  const { stateless, feeding, keyed, announcer } = assumptions.alarms
  expect(counted).toEqual([stateless, feeding, keyed, announcer])
})

test('no alarm needs metric math, and none is composed of others', () => {
  const stack = newStack()
  ridesIn(stack)
  const template = Template.fromStack(stack)
  template.resourceCountIs('AWS::CloudWatch::CompositeAlarm', 0)
  for (const { Properties } of Object.values(template.findResources('AWS::CloudWatch::Alarm'))) {
    expect(Properties.Metrics).toBeUndefined()
    expect(Properties.MetricName).toEqual(expect.any(String))
    expect(Properties.TreatMissingData).toEqual(expect.any(String))
  }
})

test('what is emitted is looked at by application and stage, the rest by function and stream', () => {
  const stack = newStack()
  const { stage } = ridesIn(stack)
  expect(stage).toBeDefined()
  const template = Template.fromStack(stack)
  template.hasResourceProperties('AWS::CloudWatch::Alarm', {
    Namespace: 'Millrace',
    MetricName: 'units-per-1000-records',
    Dimensions: [
      { Name: 'application', Value: 'rides-app' },
      { Name: 'stage', Value: 'by-city' },
    ],
    Statistic: 'Average',
    Threshold: 10_000,
    ComparisonOperator: 'GreaterThanThreshold',
    TreatMissingData: 'notBreaching',
  })
  template.hasResourceProperties('AWS::CloudWatch::Alarm', {
    Namespace: 'AWS/Lambda',
    MetricName: 'IteratorAge',
    Dimensions: [{ Name: 'FunctionName', Value: { Ref: Match.stringLikeRegexp('Ridesbycity') } }],
    TreatMissingData: 'ignore',
  })
  template.hasResourceProperties('AWS::CloudWatch::Alarm', {
    Namespace: 'AWS/Kinesis',
    MetricName: 'GetRecords.IteratorAgeMilliseconds',
    Dimensions: [{ Name: 'StreamName', Value: { Ref: Match.stringLikeRegexp('RidesbycityStream') } }],
  })
})

test("the source's own stream is watched by its name", () => {
  const stack = newStack()
  ridesIn(stack)
  const alarms = Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Alarm'))
  const streams = alarms
    .filter(({ Properties }) => Properties.MetricName === 'GetRecords.IteratorAgeMilliseconds')
    .map(({ Properties }) => JSON.stringify(Properties.Dimensions[0].Value))
  expect(streams.some((name) => name.includes('In'))).toBe(true)
  expect(new Set(streams).size).toBe(4)
})

test('the alarm on time takes four fifths of the timeout, computed at synth', () => {
  const stack = newStack()
  ridesIn(stack, { 'by-driver': { timeout: Duration.minutes(5) } })
  const template = Template.fromStack(stack)
  const thresholds = Object.values(template.findResources('AWS::CloudWatch::Alarm'))
    .filter(({ Properties }) => Properties.MetricName === 'Duration')
    .map(({ Properties }) => Properties.Threshold)
  expect(thresholds.toSorted((a, b) => a - b)).toEqual([48_000, 48_000, 48_000, 240_000])
})

test('alarms go to the topic that is given, when they go off and when they are over', () => {
  const stack = newStack()
  const topic = new Topic(stack, 'Pager')
  const application = ridesIn(stack, {}, { alarms: { topic } })
  const alarms = Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Alarm'))
  expect(alarms).toHaveLength(application.alarms?.all.length ?? 0)
  for (const { Properties } of alarms) {
    expect(Properties.AlarmActions).toEqual([stack.resolve(topic.topicArn)])
    expect(Properties.OKActions).toEqual([stack.resolve(topic.topicArn)])
  }
})

test('thresholds are given for all stages, for one, and taken away', () => {
  const stack = newStack()
  const application = ridesIn(
    stack,
    {},
    {
      alarms: {
        thresholds: { 'iterator-age': minutes(30).ms, collapse: false },
        stages: { 'by-city': { 'iterator-age': hours(1).ms, late: false } },
        announcer: { silent: false },
      },
    },
  )
  const thresholdOf = (stage: string) => {
    const alarm = application.alarms?.of(stage, 'iterator-age')?.node.defaultChild as CfnAlarm | undefined
    return alarm?.threshold
  }
  expect([thresholdOf('by-driver'), thresholdOf('by-city')]).toEqual([1_800_000, 3_600_000])
  expect(application.alarms?.of('by-driver', 'late')).toBeDefined()
  expect(application.alarms?.of('by-city', 'late')).toBeUndefined()
  expect(application.alarms?.of('by-driver', 'collapse')).toBeUndefined()
  expect(application.alarms?.ofAnnouncer('silent')).toBeUndefined()
  expect(application.alarms?.ofAnnouncer('errors')).toBeDefined()
})

test.each([
  [
    'an alarm that is none',
    { thresholds: { lateness: 1 } as never },
    'alarms.thresholds names "lateness", which is no alarm',
  ],
  ['a stage that is none', { stages: { 'by-town': {} } }, 'topology "rides-app" has no stage "by-town"'],
  ['a threshold that is none', { announcer: { errors: Number.NaN } }, 'alarms.announcer has NaN for "errors"'],
  ['a negative threshold', { thresholds: { late: -1 } }, 'alarms.thresholds has -1 for "late"'],
])('%s is refused at synth', (_, alarms, message) => {
  expect(() => ridesIn(newStack(), {}, { alarms })).toThrow(message)
})

test('whoever wants neither has neither', () => {
  const stack = newStack()
  const application = ridesIn(stack, {}, { alarms: false, dashboard: false })
  expect([application.alarms, application.dashboard]).toEqual([undefined, undefined])
  const template = Template.fromStack(stack)
  template.resourceCountIs('AWS::CloudWatch::Alarm', 0)
  template.resourceCountIs('AWS::CloudWatch::Dashboard', 0)
})

test('an application with many stages shows all its alarms, a hundred in a widget at most', () => {
  const stack = newStack()
  const app = new Topology('many')
  const lines = app.source('lines', text())
  for (let stage = 0; stage < 8; stage++) {
    lines
      .keyBy(`by-${stage}`, (line) => line)
      .process(`last-${stage}`, { state: { last: valueState() }, step: () => undefined })
  }
  const { alarms } = new StreamApplication(stack, 'Many', {
    topology: app,
    entry,
    bind: [bind(lines, new KinesisSource(newStream(stack, 'Lines')))],
  })
  const [dashboard] = Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Dashboard'))
  const parts: unknown[] = dashboard?.Properties.DashboardBody['Fn::Join'][1]
  const body = JSON.parse(parts.map((part) => (typeof part === 'string' ? part : 'token')).join(''))
  const shown: number[] = body.widgets.flatMap(({ properties }: { properties: { alarms?: string[] } }) =>
    properties.alarms === undefined ? [] : properties.alarms.length,
  )
  expect(Math.max(...shown)).toBe(100)
  expect(shown.reduce((sum, count) => sum + count, 0)).toBe(alarms?.all.length)
})
