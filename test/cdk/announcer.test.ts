import { Duration } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { bind, KinesisSink, KinesisSource, type SourceConnection, StreamApplication } from '../../lib/cdk/index.ts'
import { Topology, text } from '../../lib/index.ts'
import { ridesIn } from './rides.ts'
import { bindingsOf, bindingsOfFunction, entry, grantsOfRole, newStack, newStream, shopIn } from './world.ts'

const announcerOf = ({ announcer }: StreamApplication) => {
  if (announcer === undefined) throw new Error('the application has no announcer')
  return announcer
}

describe('the announcer of an application', () => {
  it('is one function, with the entry and the bundle of a stage', () => {
    // GIVEN
    const stack = newStack()
    // WHEN
    const application = ridesIn(stack)
    // THEN
    expect(stack.getLogicalId(announcerOf(application).function.node.defaultChild as never)).toMatch(
      /^RidesAnnouncerFunction[0-9A-F]{8}$/,
    )
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::Function', {
      Description: 'Announcer of the topology "rides-app"',
      Handler: 'index.handler',
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      MemorySize: 256,
      Timeout: 60,
    })
  })

  it('is invoked by a rule each minute with an event that the handler recognises, and a failed round is not repeated', () => {
    const stack = newStack()
    const { function: target } = announcerOf(ridesIn(stack))
    const template = Template.fromStack(stack)
    template.resourceCountIs('AWS::Events::Rule', 1)
    template.hasResourceProperties('AWS::Events::Rule', {
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
      Targets: [
        {
          Arn: stack.resolve(target.functionArn),
          Input: '{"millrace":{"announce":true}}',
          RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 },
        },
      ],
    })
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 60,
    })
  })

  it('is told of the stream and the table of every stage that keeps progress, and of no other', () => {
    const stack = newStack()
    const bindings = bindingsOfFunction(stack, announcerOf(ridesIn(stack)).function)
    const table = (id: string) => ({ tableName: expect.stringMatching(id) })
    expect(bindings).toEqual({
      formatVersion: 1,
      topology: 'rides-app',
      announces: [
        { stage: 'rides', streamArn: 'In', state: table('RidesridesTable') },
        { stage: 'by-driver', streamArn: 'RidesbydriverStream', state: table('RidesbydriverTable') },
        { stage: 'by-city', streamArn: 'RidesbycityStream', state: table('RidesbycityTable') },
      ],
    })
  })

  it('is told from when on a source is read, as its stage is', () => {
    const stack = newStack()
    const app = new Topology('lines-app')
    const lines = app.source('lines', text())
    const out = app.sink<string>('out')
    lines
      .keyBy('by-line', (line) => line)
      .reduce('last', (_, line) => line, { emit: 'on-update' })
      .to(out)
    const startingPosition = new Date('2026-11-01T00:00:00Z')
    const application = new StreamApplication(stack, 'Lines', {
      topology: app,
      entry,
      bind: [
        bind(lines, new KinesisSource(newStream(stack, 'In'), { startingPosition })),
        bind(out, new KinesisSink(newStream(stack, 'Out'))),
      ],
    })
    const startingAtMs = startingPosition.getTime()
    const { announces } = bindingsOfFunction(stack, announcerOf(application).function)
    expect(announces).toMatchObject([{ stage: 'lines', startingAtMs }, { stage: 'by-line' }])
    expect(announces[1]).not.toHaveProperty('startingAtMs')
    expect(bindingsOf(stack, application, 'lines').sources).toEqual([
      { name: 'lines', kind: 'kinesis', streamArn: 'In', startingAtMs },
    ])
  })

  it('may look at all streams, write to those of keyed stages, and read progress; it sees no key', () => {
    const stack = newStack()
    const { function: target } = announcerOf(ridesIn(stack))
    const looks = (stream: string) =>
      ['GetRecords', 'GetShardIterator', 'ListShards'].map((action) => `kinesis:${action} ${stream}`)
    expect(grantsOfRole(stack, target).filter((grant) => /^(kinesis|dynamodb):/.test(grant))).toEqual(
      [
        'dynamodb:GetItem RidesbycityTable',
        'dynamodb:GetItem RidesbydriverTable',
        'dynamodb:GetItem RidesridesTable',
        ...looks('In'),
        ...looks('RidesbycityStream'),
        ...looks('RidesbydriverStream'),
        'kinesis:PutRecords RidesbycityStream',
        'kinesis:PutRecords RidesbydriverStream',
      ].sort(),
    )
    Template.fromStack(stack).hasResourceProperties('AWS::IAM::Policy', {
      PolicyName: Match.stringLikeRegexp('^RidesAnnouncerRole'),
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: 'dynamodb:GetItem',
            Condition: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['progress#*'] } },
          }),
        ]),
      },
    })
  })

  it('can be tuned', () => {
    const stack = newStack()
    ridesIn(stack, {}, { announcer: { memorySize: 512, every: Duration.minutes(5), environment: { LEVEL: 'x' } } })
    const template = Template.fromStack(stack)
    template.hasResourceProperties('AWS::Events::Rule', { ScheduleExpression: 'rate(5 minutes)' })
    template.hasResourceProperties('AWS::Lambda::Function', {
      Description: 'Announcer of the topology "rides-app"',
      MemorySize: 512,
      Environment: { Variables: Match.objectLike({ LEVEL: 'x' }) },
    })
  })

  it('is refused a handler that the entry does not export', () => {
    expect(() => ridesIn(newStack(), {}, { announcer: { handler: 'announce' } })).toThrow(
      /^the announcer has the handler "announce", and .*handler\.ts exports handler/,
    )
  })
})

it('an application without keyed stages has none', () => {
  const stack = newStack()
  expect(shopIn(stack).announcer).toBeUndefined()
  Template.fromStack(stack).resourceCountIs('AWS::Events::Rule', 0)
  expect(() => shopIn(newStack(), () => ({ announcer: { memorySize: 512 } }))).toThrow(
    'topology "shop" has no keyed stage, and so no announcer',
  )
})

it('a source whose partitions cannot be listed does not feed a keyed stage', () => {
  // GIVEN
  const stack = newStack()
  const app = new Topology('lines-app')
  const lines = app.source('lines', text())
  const out = app.sink<string>('out')
  lines
    .keyBy('by-line', (line) => line)
    .reduce('last', (_, line) => line, { emit: 'on-update' })
    .to(out)
  const stream = new KinesisSource(newStream(stack, 'In'))
  const unlisted: SourceConnection = {
    type: 'source',
    resource: 'topic',
    bindingFor: (name) => ({ name, kind: 'kafka', topic: 'lines' }),
    connect: (scope, target, settings) => stream.connect(scope, target, settings),
  }
  // THEN
  expect(
    () =>
      new StreamApplication(stack, 'Lines', {
        topology: app,
        entry,
        bind: [bind(lines, unlisted), bind(out, new KinesisSink(newStream(stack, 'Out')))],
      }),
  ).toThrow('source "lines" feeds a keyed stage, and the announcer cannot list the partitions')
})
