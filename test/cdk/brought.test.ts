import { App, Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { AttributeType, type ITable, Table, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { type CfnStream, Stream, StreamEncryption } from 'aws-cdk-lib/aws-kinesis'
import type { StageProps } from '../../lib/cdk/index.ts'
import { DeadLetters } from '../../lib/cdk/index.ts'
import { ridesIn } from './rides.ts'
import { bindingsOf, bindingsOfFunction, grantsOf, newStack, newStream } from './world.ts'

const text = (name: string) => ({ name, type: AttributeType.STRING })
const stateKeys = { partitionKey: text('pk'), sortKey: text('sk'), timeToLiveAttribute: 'ttl' }

describe('a stream and a table that the user brings', () => {
  const stack = newStack()
  const stream = newStream(stack, 'OwnStream')
  const table = new Table(stack, 'OwnTable', stateKeys)
  const progress = new TableV2(stack, 'OwnProgress', stateKeys)
  const application = ridesIn(stack, { 'by-city': { stream, table }, rides: { table: progress } })

  it('take the place of ours, and can be reached as ours can', () => {
    expect(application.stage('by-city').stream).toBe(stream)
    expect(application.stage('by-city').table).toBe(table)
    expect(application.stage('rides').table).toBe(progress)
    const template = Template.fromStack(stack).toJSON().Resources
    const made = Object.keys(template).filter((id) => /^Rides.*(Stream|Table)[0-9A-F]{8}$/.test(id))
    expect(made).toEqual([expect.stringMatching(/^RidesbydriverStream/), expect.stringMatching(/^RidesbydriverTable/)])
  })

  it('are what the stage, those that feed it and the announcer are told of', () => {
    expect(bindingsOf(stack, application, 'by-city')).toMatchObject({
      sources: [{ name: 'by-city', streamArn: 'OwnStream' }],
      state: { tableName: expect.stringContaining('OwnTable') },
      retentionMs: 86_400_000,
    })
    expect(bindingsOf(stack, application, 'by-driver').feeds).toMatchObject([
      { stage: 'by-city', streamArn: 'OwnStream' },
    ])
    const { announcer } = application
    expect(announcer && bindingsOfFunction(stack, announcer.function).announces).toMatchObject([
      { stage: 'rides', state: { tableName: expect.stringContaining('OwnProgress') } },
      { stage: 'by-driver' },
      { stage: 'by-city', streamArn: 'OwnStream', state: { tableName: expect.stringContaining('OwnTable') } },
    ])
  })

  it('are granted as ours are', () => {
    const ofCity = grantsOf(stack, application, 'by-city').filter((grant) => /Own/.test(grant))
    expect(ofCity).toEqual([
      ...['BatchGetItem', 'BatchWriteItem', 'DeleteItem', 'GetItem', 'PutItem', 'Query'].map(
        (action) => `dynamodb:${action} OwnTable`,
      ),
      ...['DescribeStream', 'DescribeStreamSummary', 'GetRecords', 'GetShardIterator', 'ListShards'].map(
        (action) => `kinesis:${action} OwnStream`,
      ),
    ])
    expect(grantsOf(stack, application, 'rides').filter((grant) => /Own/.test(grant))).toEqual([
      'dynamodb:GetItem OwnProgress',
      'dynamodb:PutItem OwnProgress',
    ])
  })
})

describe('a stream that is imported', () => {
  const arn = 'arn:aws:kinesis:eu-west-1:111122223333:stream/frames'

  it('is taken; synth says what cannot be seen of it, and the function is told no retention', () => {
    const stack = newStack()
    const stream = Stream.fromStreamArn(stack, 'Own', arn)
    const application = ridesIn(stack, { 'by-city': { stream } })
    expect(bindingsOf(stack, application, 'by-city')).not.toHaveProperty('retentionMs')
    expect(bindingsOf(stack, application, 'by-city').sources).toMatchObject([{ streamArn: arn }])
    Annotations.fromStack(stack).hasInfo(
      '/Test/Rides/by-city',
      Match.stringLikeRegexp('stream of stage "by-city" is imported.*must be USER_PARTITION_KEY'),
    )
  })
})

/** What synth refuses where a stage has these settings. */
const refused = (settings: (stack: Stack) => Readonly<Record<string, StageProps>>, deadLetters?: 'Own') => {
  const stack = new Stack(new App({ context: { 'aws:cdk:bundling-stacks': [] } }), 'Test', {
    env: { account: '111122223333', region: 'eu-west-1' },
  })
  return expect(() => {
    const stages = settings(stack)
    const stream = stack.node.tryFindChild('Own') as Stream
    ridesIn(stack, stages, deadLetters ? { deadLetters: DeadLetters.stream(stream) } : {})
    ;(stack.node.root as App).synth()
  })
}

describe('what cannot be a stream of a stage is refused', () => {
  it('one whose records Kinesis places by itself', () => {
    refused((stack) => {
      const stream = new Stream(stack, 'Own', { encryption: StreamEncryption.MANAGED })
      ;(stream.node.defaultChild as CfnStream).recordDistributionStrategy = 'AUTO'
      return { 'by-city': { stream } }
    }).toThrow(/stream of stage "by-city" has the record distribution AUTO/)
  })

  it('one that two stages would read', () => {
    refused((stack) => {
      const stream = newStream(stack, 'Own')
      return { 'by-city': { stream }, 'by-driver': { stream } }
    }).toThrow('the stream of stage "by-driver" is Test/Own, which is also the stream of stage "by-city"')
  })

  it('where dead letters go', () => {
    refused((stack) => ({ 'by-city': { stream: newStream(stack, 'Own') } }), 'Own').toThrow(
      'the stream of stage "by-city" is Test/Own, which is also where dead letters go',
    )
  })

  it('one in another region', () => {
    refused((stack) => ({
      'by-city': { stream: Stream.fromStreamArn(stack, 'Own', 'arn:aws:kinesis:us-east-1:111122223333:stream/x') },
    })).toThrow(/is in the region us-east-1/)
  })

  it('and one of a stage that is not keyed', () => {
    refused((stack) => ({ rides: { stream: newStream(stack, 'Own') } })).toThrow('but only a keyed stage has a stream')
  })
})

describe('what cannot be a table of a stage is refused', () => {
  const withTable = (table: (stack: Stack) => ITable) => refused((stack) => ({ 'by-city': { table: table(stack) } }))

  it.each([
    ['TableV2', TableV2],
    ['Table', Table],
  ])('a %s of another key', (_, TableOf) => {
    withTable((stack) => new TableOf(stack, 'Own', { ...stateKeys, sortKey: text('at') })).toThrow(
      /table of stage "by-city" has the key pk \(S\), at \(S\): its partition key must be "pk" and its sort key "sk"/,
    )
    const numbered = { name: 'sk', type: AttributeType.NUMBER }
    withTable((stack) => new TableOf(stack, 'Own', { ...stateKeys, sortKey: numbered })).toThrow(
      /has the key pk \(S\), sk \(N\)/,
    )
  })

  it.each([
    ['TableV2', TableV2],
    ['Table', Table],
  ])('a %s without time to live, or with another', (_, TableOf) => {
    const { timeToLiveAttribute: _ttl, ...keys } = stateKeys
    withTable((stack) => new TableOf(stack, 'Own', keys)).toThrow(/has no time to live, so that nothing that expires/)
    withTable((stack) => new TableOf(stack, 'Own', { ...keys, timeToLiveAttribute: 'gone' })).toThrow(
      /its time to live in "gone"/,
    )
  })

  it('one that two stages would write', () => {
    refused((stack) => {
      const table = new TableV2(stack, 'Own', stateKeys)
      return { rides: { table }, 'by-city': { table } }
    }).toThrow('the table of stage "by-city" is Test/Own, which is also the table of stage "rides"')
  })

  it.each(['arn:aws:dynamodb:us-east-1:111122223333:table/x', 'arn:aws:dynamodb:eu-west-1:444455556666:table/x'])(
    'one that is elsewhere: %s',
    (arn) => {
      withTable((stack) => Table.fromTableArn(stack, 'Own', arn)).toThrow(
        /table of stage "by-city" is arn:.*bring a table of that account and region/,
      )
    },
  )

  it('but an imported one of the same place is taken, as its key cannot be seen', () => {
    const arn = 'arn:aws:dynamodb:eu-west-1:111122223333:table/x'
    withTable((stack) => Table.fromTableArn(stack, 'Own', arn)).not.toThrow()
  })
})
