import { App, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import type { CfnStream } from 'aws-cdk-lib/aws-kinesis'
import { ridesIn } from './rides.ts'
import { bindingsOf, findingsIn, grantsOf, newStack, validated } from './world.ts'

/** The properties of what a construct of an application became. */
function propertiesOf(stack: Stack, type: string, idBegins: string) {
  const found = Object.entries(Template.fromStack(stack).findResources(type)).find(([id]) => id.startsWith(idBegins))
  return found?.[1]
}

describe('a keyed stage', () => {
  it('has a stream, a table, a function and a mapping, with ids that follow its name', () => {
    // GIVEN
    const stack = newStack()
    // WHEN
    const application = ridesIn(stack)
    // THEN
    expect(application.stages.map((stage) => stage.name)).toEqual(['rides', 'visits', 'by-driver', 'by-city'])
    const template = Template.fromStack(stack)
    // The announcer's is the fifth.
    template.resourceCountIs('AWS::Lambda::Function', 5)
    template.resourceCountIs('AWS::Lambda::EventSourceMapping', 4)
    // That of the stage that feeds is the third.
    template.resourceCountIs('AWS::DynamoDB::GlobalTable', 3)
    const { stream, table, function: handler } = application.stage('by-driver')
    expect(stack.resolve(stream.streamArn)['Fn::GetAtt'][0]).toMatch(/^RidesbydriverStream[0-9A-F]{8}$/)
    expect(stack.resolve(table.tableArn)['Fn::GetAtt'][0]).toMatch(/^RidesbydriverTable[0-9A-F]{8}$/)
    expect(stack.resolve(handler.functionArn)['Fn::GetAtt'][0]).toMatch(/^RidesbydriverFunction[0-9A-F]{8}$/)
  })

  it('has a stream on demand that keeps seven days, places records by their keys and outlives the stack', () => {
    const stack = newStack()
    ridesIn(stack)
    expect(propertiesOf(stack, 'AWS::Kinesis::Stream', 'Ridesbycity')).toMatchObject({
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        StreamModeDetails: { StreamMode: 'ON_DEMAND' },
        RetentionPeriodHours: 168,
        RecordDistributionStrategy: 'USER_PARTITION_KEY',
        StreamEncryption: { EncryptionType: 'KMS', KeyId: 'alias/aws/kinesis' },
      },
    })
  })

  it.each([
    ['has', 'Ridesbycity'],
    ['is fed by one that has', 'Ridesrides'],
  ])(
    '%s a table on demand with text keys, TTL, recovery and encryption, which outlives the stack',
    (_what, idBegins) => {
      const stack = newStack()
      ridesIn(stack)
      expect(propertiesOf(stack, 'AWS::DynamoDB::GlobalTable', idBegins)).toMatchObject({
        DeletionPolicy: 'Retain',
        UpdateReplacePolicy: 'Retain',
        Properties: {
          BillingMode: 'PAY_PER_REQUEST',
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'sk', KeyType: 'RANGE' },
          ],
          AttributeDefinitions: [
            { AttributeName: 'pk', AttributeType: 'S' },
            { AttributeName: 'sk', AttributeType: 'S' },
          ],
          TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
          SSESpecification: { SSEEnabled: true },
          Replicas: [{ PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } }],
        },
      })
    },
  )

  it('is read from its own stream without end, one batch of a shard at a time', () => {
    const stack = newStack()
    const application = ridesIn(stack)
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: stack.resolve(application.stage('by-city').stream.streamArn),
      FunctionName: stack.resolve(application.stage('by-city').function.functionName),
      StartingPosition: 'TRIM_HORIZON',
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: -1,
      MaximumRecordAgeInSeconds: Match.absent(),
      DestinationConfig: Match.absent(),
      ParallelizationFactor: 1,
    })
  })

  it('is told of its stream, its table and what it feeds; the stage before it of a table of its own; a stateless one of none', () => {
    const stack = newStack()
    const application = ridesIn(stack)
    const told = (stage: string) => {
      const { sources, state, feeds } = bindingsOf(stack, application, stage)
      return { sources, state, feeds }
    }
    const table = (id: string) => ({ tableName: expect.stringMatching(id) })
    expect(told('rides')).toEqual({
      sources: [{ name: 'rides', kind: 'kinesis', streamArn: 'In' }],
      state: table('RidesridesTable'),
      feeds: [{ stage: 'by-driver', slots: 128, streamArn: 'RidesbydriverStream' }],
    })
    expect(told('by-driver')).toEqual({
      sources: [{ name: 'by-driver', kind: 'kinesis', streamArn: 'RidesbydriverStream' }],
      state: table('RidesbydriverTable'),
      feeds: [{ stage: 'by-city', slots: 64, streamArn: 'RidesbycityStream' }],
    })
    expect(told('by-city')).toEqual({
      sources: [{ name: 'by-city', kind: 'kinesis', streamArn: 'RidesbycityStream' }],
      state: table('RidesbycityTable'),
      feeds: undefined,
    })
    expect(told('visits')).toMatchObject({ state: undefined, feeds: undefined })
  })
})

const reads = (stream: string) =>
  ['DescribeStream', 'DescribeStreamSummary', 'GetRecords', 'GetShardIterator', 'ListShards'].map(
    (action) => `kinesis:${action} ${stream}`,
  )
const itemsOf = (table: string, ...actions: string[]) => actions.map((action) => `dynamodb:${action} ${table}`)
const streamsAndTables = (grants: readonly string[]) => grants.filter((grant) => /^(kinesis|dynamodb):/.test(grant))

describe('grants', () => {
  it('let a keyed stage read its stream, read and write its items, and write where it feeds', () => {
    const stack = newStack()
    const application = ridesIn(stack)
    expect(streamsAndTables(grantsOf(stack, application, 'by-driver'))).toEqual([
      ...itemsOf('RidesbydriverTable', 'BatchGetItem', 'BatchWriteItem', 'DeleteItem', 'GetItem', 'PutItem', 'Query'),
      ...[...reads('RidesbydriverStream'), 'kinesis:ListShards RidesbycityStream'].sort(),
      'kinesis:PutRecords RidesbycityStream',
    ])
    expect(streamsAndTables(grantsOf(stack, application, 'by-city'))).toEqual([
      ...itemsOf('RidesbycityTable', 'BatchGetItem', 'BatchWriteItem', 'DeleteItem', 'GetItem', 'PutItem', 'Query'),
      ...reads('RidesbycityStream'),
      'kinesis:PutRecords Cities',
    ])
  })

  it('let a stage that feeds it keep progress in its own table, and touch no other', () => {
    const stack = newStack()
    const application = ridesIn(stack)
    expect(streamsAndTables(grantsOf(stack, application, 'rides'))).toEqual([
      ...itemsOf('RidesridesTable', 'GetItem', 'PutItem'),
      ...reads('In'),
      'kinesis:ListShards RidesbydriverStream',
      'kinesis:PutRecords RidesbydriverStream',
    ])
    Template.fromStack(stack).hasResourceProperties('AWS::IAM::Policy', {
      PolicyName: Match.stringLikeRegexp('^RidesridesRole'),
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: ['dynamodb:GetItem', 'dynamodb:PutItem'],
            Condition: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['progress#*', 'manifest#'] } },
          }),
        ]),
      },
    })
  })

  it('let a stateless stage touch neither', () => {
    const stack = newStack()
    expect(streamsAndTables(grantsOf(stack, ridesIn(stack), 'visits'))).toEqual([
      ...reads('Visits'),
      'kinesis:PutRecords Pages',
    ])
  })
})

describe('settings', () => {
  it('provision the stream by a number of shards, and let stream and table go with the stack where that is asked', () => {
    const stack = newStack()
    ridesIn(stack, {
      rides: { table: { removalPolicy: RemovalPolicy.DESTROY } },
      'by-city': {
        stream: { shardCount: 4, retentionPeriod: Duration.days(1), removalPolicy: RemovalPolicy.DESTROY },
        table: { removalPolicy: RemovalPolicy.DESTROY, deletionProtection: true },
      },
    })
    expect(propertiesOf(stack, 'AWS::Kinesis::Stream', 'Ridesbycity')).toMatchObject({
      DeletionPolicy: 'Delete',
      Properties: { ShardCount: 4, RetentionPeriodHours: 24, StreamModeDetails: { StreamMode: 'PROVISIONED' } },
    })
    expect(propertiesOf(stack, 'AWS::DynamoDB::GlobalTable', 'Ridesbycity')).toMatchObject({
      DeletionPolicy: 'Delete',
      Properties: {
        Replicas: [{ DeletionProtectionEnabled: true }],
        TimeToLiveSpecification: { AttributeName: 'ttl' },
      },
    })
    const fed = propertiesOf(stack, 'AWS::DynamoDB::GlobalTable', 'Ridesrides')
    expect(fed).toMatchObject({
      DeletionPolicy: 'Delete',
      Properties: { TimeToLiveSpecification: { AttributeName: 'ttl' } },
    })
  })

  it.each([
    ['rides', /stage "rides" has the parallelization factor 2, and it feeds the keyed stage "by-driver".*more shards/],
    ['by-city', /stage "by-city" has the parallelization factor 2, and it is a keyed stage.*more shards/],
  ])('refuse two batches of a shard at once on stage %s', (stage, message) => {
    expect(() => ridesIn(newStack(), { [stage]: { parallelizationFactor: 2 } })).toThrow(message)
  })

  it('allow them on a stateless stage of the same application', () => {
    expect(() => ridesIn(newStack(), { visits: { parallelizationFactor: 2 } })).not.toThrow()
  })

  it.each([
    ['stream', 'rides', 'but only a keyed stage has', 'has no stream of its own'],
    ['stream', 'visits', 'but only a keyed stage has', 'has no stream of its own'],
    ['table', 'visits', 'but it keeps nothing and has no table', 'has no table, as it keeps nothing'],
  ] as const)('refuse a %s on stage %s, which has none', (setting, stage, refusal, missing) => {
    expect(() => ridesIn(newStack(), { [stage]: { [setting]: {} } })).toThrow(
      `stage "${stage}" has the setting \`${setting}\`, ${refusal}`,
    )
    expect(() => ridesIn(newStack()).stage(stage)[setting]).toThrow(`stage "${stage}" ${missing}`)
  })

  it('let what a feeding stage keeps be reached', () => {
    const stack = newStack()
    const { table } = ridesIn(stack).stage('rides')
    expect(stack.resolve(table.tableArn)['Fn::GetAtt'][0]).toMatch(/^RidesridesTable[0-9A-F]{8}$/)
  })

  it('refuse a record distribution under which Kinesis ignores hash keys, at synth', () => {
    // GIVEN
    const app = new App({ context: validated })
    const application = ridesIn(new Stack(app, 'Test'))
    const resource = application.stage('by-city').stream.node.defaultChild as CfnStream
    // WHEN
    resource.recordDistributionStrategy = 'AUTO'
    // THEN
    expect(() => app.synth()).toThrow(/stream of stage "by-city" has the record distribution AUTO/)
  })
})

it('synthesises without findings of the offline validator', () => {
  const app = new App({ context: validated })
  ridesIn(new Stack(app, 'Test'))
  expect(findingsIn(app.synth().directory)).toEqual([])
})
