/** SQS queues and streams of tables as sources; SQS, EventBridge and Firehose as sinks. */
import { App, Duration, Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { AttributeType, StreamViewType, Table, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { CfnDeliveryStream, DeliveryStream } from 'aws-cdk-lib/aws-kinesisfirehose'
import { Key } from 'aws-cdk-lib/aws-kms'
import { FilterCriteria, FilterRule } from 'aws-cdk-lib/aws-lambda'
import { Queue, type QueueProps } from 'aws-cdk-lib/aws-sqs'
import {
  bind,
  CustomSink,
  DeadLetters,
  DynamoDbStreamSource,
  type DynamoDbStreamSourceOptions,
  DynamoDbTableSink,
  EventBridgeSink,
  FirehoseSink,
  type SinkConnection,
  type SourceConnection,
  SqsSink,
  SqsSource,
  type SqsSourceOptions,
  type StageProps,
  StreamApplication,
  type StreamApplicationProps,
} from '../../lib/cdk/index.ts'
import { ConfigurationError, Topology, text } from '../../lib/index.ts'
import { bindingsOf, entry, grantsOf, newStack, newStream, validated } from './world.ts'

interface Parts {
  readonly source?: SourceConnection
  readonly sink?: SinkConnection
  readonly stage?: StageProps
  readonly isKeyed?: boolean
  readonly hasKey?: boolean
  readonly more?: Partial<StreamApplicationProps>
}

/** Lines from a source to a sink, with a keyed stage between them where that is said. */
function lines(stack: Stack, { source, sink, stage = {}, isKeyed, hasKey, more }: Parts): StreamApplication {
  const app = new Topology('lines-app')
  const from = app.source('lines', text())
  const out = app.sink<string>('out', hasKey ? { key: (line) => line } : {})
  if (isKeyed) {
    const counts = from
      .keyBy('by-line', (line) => line)
      .aggregate('count', { init: () => 0, add: (n) => n + 1, result: (n) => n }, { emit: 'on-update' })
    counts.map(String).to(out)
  } else from.to(out)
  return new StreamApplication(stack, 'App', {
    topology: app,
    entry,
    bind: [bind(from, source ?? new SqsSource(queueIn(stack))), bind(out, sink ?? new CustomSink())],
    stages: { lines: stage },
    ...more,
  })
}

const queueIn = (stack: Stack, props: QueueProps = {}) =>
  new Queue(stack, 'In', { visibilityTimeout: Duration.seconds(361), ...props })
const withoutDeadLetters = (grants: readonly string[]) =>
  grants.filter((grant) => !/DeadLetters|Payloads|logs:|Logs/.test(grant))
const mappingOf = (stack: Stack) =>
  Object.values(Template.fromStack(stack).findResources('AWS::Lambda::EventSourceMapping'))[0]?.Properties

describe('a queue as a source', () => {
  it('has a mapping that answers by message, and nothing that only shards have', () => {
    const stack = newStack()
    const application = lines(stack, { source: new SqsSource(queueIn(stack), { maxConcurrency: 20 }) })
    expect(mappingOf(stack)).toMatchObject({
      BatchSize: 500,
      MaximumBatchingWindowInSeconds: 1,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ScalingConfig: { MaximumConcurrency: 20 },
      Enabled: true,
    })
    const ofShards = ['StartingPosition', 'BisectBatchOnFunctionError', 'MaximumRetryAttempts', 'ParallelizationFactor']
    for (const name of ofShards) expect(mappingOf(stack)).not.toHaveProperty(name)
    expect(bindingsOf(stack, application, 'lines').sources).toEqual([{ name: 'lines', kind: 'sqs', queueArn: 'In' }])
  })

  it('grants receiving and deleting, and decrypting with a key of its own', () => {
    const stack = newStack()
    const encryptionMasterKey = new Key(stack, 'Key')
    const application = lines(stack, { source: new SqsSource(queueIn(stack, { encryptionMasterKey })) })
    expect(withoutDeadLetters(grantsOf(stack, application, 'lines'))).toEqual([
      'kms:Decrypt Key',
      'sqs:DeleteMessage In',
      'sqs:GetQueueAttributes In',
      'sqs:ReceiveMessage In',
    ])
  })

  it('of FIFO has batches of ten and no window', () => {
    const stack = newStack()
    lines(stack, { source: new SqsSource(queueIn(stack, { fifo: true })) })
    expect(mappingOf(stack)).toMatchObject({ BatchSize: 10 })
    expect(mappingOf(stack)).not.toHaveProperty('MaximumBatchingWindowInSeconds')
  })

  it('takes filters', () => {
    const stack = newStack()
    const filters = [FilterCriteria.filter({ body: { type: FilterRule.isEqual('paid') } })]
    lines(stack, { source: new SqsSource(queueIn(stack), { filters }) })
    expect(mappingOf(stack).FilterCriteria.Filters).toEqual([{ Pattern: '{"body":{"type":["paid"]}}' }])
  })

  it.each<[string, QueueProps, StageProps, RegExp]>([
    [
      'the default of SQS',
      { visibilityTimeout: undefined as never },
      {},
      /timeout of 30 s, .*set visibilityTimeout to 361 s/,
    ],
    ['one below the advice', { visibilityTimeout: Duration.seconds(360) }, {}, /of 360 s, .* 361 s or more/],
    [
      'one for a longer function',
      {},
      { timeout: Duration.minutes(2) },
      /of 361 s, and its function a timeout of 120 s/,
    ],
  ])('with a visibility timeout that is too short is refused at synth: %s', (_, queue, stage, message) => {
    const stack = newStack()
    lines(stack, { source: new SqsSource(queueIn(stack, queue)), stage })
    expect(() => Template.fromStack(stack)).toThrow(message)
  })

  it('with exactly the advised visibility timeout is taken, and an imported one, of which nothing is known', () => {
    const stack = newStack()
    const visibilityTimeout = Duration.seconds(60)
    const stage = { timeout: Duration.seconds(10), maxBatchingWindow: Duration.seconds(0), batchSize: 10 }
    lines(stack, { source: new SqsSource(queueIn(stack, { visibilityTimeout })), stage })
    expect(() => Template.fromStack(stack)).not.toThrow()
    const other = newStack()
    const imported = Queue.fromQueueArn(other, 'In', 'arn:aws:sqs:us-east-1:111122223333:orders')
    lines(other, { source: new SqsSource(imported) })
    expect(() => Template.fromStack(other)).not.toThrow()
  })

  it('says what a missing dead-letter queue means, and warns of one that gives up early', () => {
    const stack = newStack()
    lines(stack, {})
    Annotations.fromStack(stack).hasInfo('/Test/App/lines', Match.stringLikeRegexp('no dead-letter queue of its own'))
    const other = newStack()
    const deadLetterQueue = { queue: new Queue(other, 'Dead'), maxReceiveCount: 2 }
    lines(other, { source: new SqsSource(queueIn(other, { deadLetterQueue })) })
    Annotations.fromStack(other).hasWarning('/Test/App/lines', Match.stringLikeRegexp('after 2 receives'))
  })

  it.each<[string, Omit<Parts, 'source'>, SqsSourceOptions, RegExp]>([
    ['parallelization', { stage: { parallelizationFactor: 2 } }, {}, /for shards only: .*say maxConcurrency/],
    [
      'a large batch without a window',
      { stage: { maxBatchingWindow: Duration.seconds(0) } },
      {},
      /batchSize 500 and no batching window.*set maxBatchingWindow to 1 s, or batchSize to 10/,
    ],
    ['too little concurrency', {}, { maxConcurrency: 1 }, /maxConcurrency 1: give a whole number from 2 to 1,000/],
    [
      'a keyed stage',
      { isKeyed: true },
      {},
      /source "lines" feeds the keyed stage "by-line", and cannot: .*Kinesis stream/,
    ],
  ])('refuses %s', (_, parts, options, message) => {
    const build = () => {
      const stack = newStack()
      lines(stack, { ...parts, source: new SqsSource(queueIn(stack), options) })
    }
    expect(build).toThrow(ConfigurationError)
    expect(build).toThrow(message)
  })

  it('refuses to be where its own dead letters go, and what its own sink writes to', () => {
    const stack = newStack()
    const queue = queueIn(stack)
    const source = new SqsSource(queue)
    expect(() => lines(stack, { source, more: { deadLetters: DeadLetters.queue(queue) } })).toThrow(
      /dead letters go to Test\/In, which is also source "lines".*a queue of their own/,
    )
    const other = newStack()
    const shared = queueIn(other)
    expect(() => lines(other, { source: new SqsSource(shared), sink: new SqsSink(shared) })).toThrow('is cyclic')
  })
})

describe('the stream of a table as a source', () => {
  const tableIn = (
    stack: Stack,
    dynamoStream: StreamViewType | undefined = StreamViewType.NEW_AND_OLD_IMAGES,
    more = {},
  ) =>
    new TableV2(stack, 'Orders', {
      partitionKey: { name: 'id', type: AttributeType.STRING },
      ...(dynamoStream === undefined ? {} : { dynamoStream }),
      ...more,
    })
  const from = (table: TableV2, options?: DynamoDbStreamSourceOptions) => new DynamoDbStreamSource(table, options)

  it('has a mapping that starts at the oldest change, gives nothing up and bisects', () => {
    const stack = newStack()
    const application = lines(stack, { source: from(tableIn(stack)), stage: { parallelizationFactor: 4 } })
    expect(mappingOf(stack)).toMatchObject({
      StartingPosition: 'TRIM_HORIZON',
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: -1,
      ParallelizationFactor: 4,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    })
    expect(bindingsOf(stack, application, 'lines').sources).toMatchObject([{ name: 'lines', kind: 'dynamodb-stream' }])
  })

  it('grants reading that stream, and decrypting with a key of its own, and nothing of the table', () => {
    const stack = newStack()
    const source = new DynamoDbStreamSource(
      new Table(stack, 'Orders', {
        partitionKey: { name: 'id', type: AttributeType.STRING },
        stream: StreamViewType.NEW_AND_OLD_IMAGES,
        encryptionKey: new Key(stack, 'Key'),
      }),
    )
    const grants = withoutDeadLetters(grantsOf(stack, lines(stack, { source }), 'lines'))
    expect(grants.map((grant) => grant.split(' ')[0])).toEqual([
      'dynamodb:DescribeStream',
      'dynamodb:GetRecords',
      'dynamodb:GetShardIterator',
      'dynamodb:ListStreams',
      'kms:Decrypt',
    ])
    expect(grants).toContain('dynamodb:ListStreams Orders/stream/*')
    expect(grants.filter((grant) => grant.includes('StreamArn'))).toHaveLength(3)
  })

  it('refuses a table without a stream, and at synth one without both images unless some will do', () => {
    const stack = newStack()
    const bare = new Table(stack, 'Bare', { partitionKey: { name: 'id', type: AttributeType.STRING } })
    expect(() => new DynamoDbStreamSource(bare)).toThrow(/Test\/Bare has no stream: give it one with the view type/)
    lines(stack, { source: from(tableIn(stack, StreamViewType.KEYS_ONLY)) })
    expect(() => Template.fromStack(stack)).toThrow(/view type KEYS_ONLY.*set it to NEW_AND_OLD_IMAGES/)
    const other = newStack()
    lines(other, { source: from(tableIn(other, StreamViewType.KEYS_ONLY), { images: 'some' }) })
    expect(() => Template.fromStack(other)).not.toThrow()
  })

  it('refuses a keyed stage and names the stream that the table can write to', () => {
    const stack = newStack()
    const build = () => lines(stack, { source: from(tableIn(stack)), isKeyed: true })
    expect(build).toThrow(/feeds the keyed stage "by-line", and cannot: .*`kinesisStream` of the table.*KinesisSource/)
  })

  it('refuses a sink that writes to the table: the changes would go in a circle', () => {
    const stack = newStack()
    const table = tableIn(stack)
    expect(() => lines(stack, { source: from(table), sink: new DynamoDbTableSink(table) })).toThrow('is cyclic')
  })
})

describe('a queue as a sink', () => {
  it('is told with its own limit, and granted sending and its key only', () => {
    const stack = newStack()
    const out = new Queue(stack, 'Out', { encryptionMasterKey: new Key(stack, 'Key'), maxMessageSizeBytes: 65_536 })
    const application = lines(stack, { sink: new SqsSink(out) })
    expect(bindingsOf(stack, application, 'lines').sinks).toEqual([
      {
        name: 'out',
        kind: 'sqs',
        queueUrl: expect.stringContaining('Out'),
        fifo: false,
        ordering: 'per-key',
        maxMessageBytes: 65_536,
      },
    ])
    const grants = withoutDeadLetters(grantsOf(stack, application, 'lines'))
    expect(grants.filter((grant) => !grant.endsWith(' In'))).toEqual([
      'kms:Decrypt Key',
      'kms:GenerateDataKey Key',
      'sqs:SendMessage Out',
    ])
  })

  it('of FIFO has an order', () => {
    const stack = newStack()
    const build = () => new SqsSink(new Queue(stack, 'Out', { fifo: true }), { ordering: 'none' })
    expect(build).toThrow(/has the ordering 'none', and a FIFO queue is there to keep order/)
  })

  it('of FIFO needs a key', () => {
    const stack = newStack()
    const out = new Queue(stack, 'Out', { fifo: true })
    const build = () => lines(stack, { sink: new SqsSink(out) })
    expect(build).toThrow(/sink "out" is bound to the FIFO queue Test\/Out and has no key function/)
    const other = newStack()
    const application = lines(other, { sink: new SqsSink(new Queue(other, 'Out', { fifo: true })), hasKey: true })
    expect(bindingsOf(other, application, 'lines').sinks).toMatchObject([{ kind: 'sqs', fifo: true }])
  })
})

describe('a bus as a sink', () => {
  it('is told by its ARN, with the sink as detail type unless said, and granted PutEvents only', () => {
    const stack = newStack()
    const bus = new EventBus(stack, 'Bus', { kmsKey: new Key(stack, 'Key') })
    const application = lines(stack, { sink: new EventBridgeSink(bus, { source: 'shop' }) })
    expect(bindingsOf(stack, application, 'lines').sinks).toEqual([
      { name: 'out', kind: 'eventbridge', eventBusName: 'Bus', source: 'shop', detailType: 'out', ordering: 'per-key' },
    ])
    const grants = withoutDeadLetters(grantsOf(stack, application, 'lines'))
    expect(grants.filter((grant) => !grant.endsWith(' In'))).toEqual(['events:PutEvents Bus'])
  })

  it.each([
    [{ source: 'aws.shop' }, /keeps "aws\." for the services of AWS/],
    [{ source: '' }, /has the source "": EventBridge takes 1 to 256 characters/],
    [{ source: 'shop', detailType: 'd'.repeat(129) }, /takes 1 to 128 characters/],
  ])('refuses %p', (options, message) => {
    const stack = newStack()
    expect(() => new EventBridgeSink(EventBus.fromEventBusName(stack, 'B', 'default'), options)).toThrow(message)
  })
})

describe('a Firehose stream as a sink', () => {
  const arn = (account: string) => `arn:aws:firehose:us-east-1:${account}:deliverystream/lake`

  it('is told by its name, and granted PutRecordBatch only', () => {
    const stack = newStack()
    const lake = DeliveryStream.fromDeliveryStreamArn(stack, 'Lake', arn('111122223333'))
    const application = lines(stack, { sink: new FirehoseSink(lake) })
    expect(bindingsOf(stack, application, 'lines').sinks).toEqual([
      { name: 'out', kind: 'firehose', deliveryStreamName: 'lake', delimiter: '\n', ordering: 'per-key' },
    ])
    const grants = withoutDeadLetters(grantsOf(stack, application, 'lines'))
    expect(grants.filter((grant) => !grant.endsWith(' In'))).toEqual([
      expect.stringContaining('firehose:PutRecordBatch'),
    ])
  })

  it('of another account is refused', () => {
    const stack = new Stack(new App({ context: validated }), 'Test', {
      env: { account: '111122223333', region: 'us-east-1' },
    })
    const lake = DeliveryStream.fromDeliveryStreamArn(stack, 'Lake', arn('999922223333'))
    expect(() => lines(stack, { sink: new FirehoseSink(lake) })).toThrow(/streams of one's own account only/)
  })

  it('that reads a Kinesis stream is refused at synth', () => {
    const stack = newStack()
    const lake = DeliveryStream.fromDeliveryStreamArn(stack, 'Lake', arn('111122223333'))
    // An L2 stream needs a destination; what counts here is the type of its L1.
    lake.node.addDependency(newStream(stack, 'Source'))
    new CfnDeliveryStream(lake, 'Resource', { deliveryStreamType: 'KinesisStreamAsSource' })
    lines(stack, { sink: new FirehoseSink(lake) })
    expect(() => Template.fromStack(stack)).toThrow(/has the type KinesisStreamAsSource/)
  })
})

describe('where it is', () => {
  const home = { region: 'eu-central-1', account: '111122223333' }
  const uses: [string, (stack: Stack, arn: (service: string, resource: string) => string) => Parts][] = [
    ['a queue to read', (stack, arn) => ({ source: new SqsSource(Queue.fromQueueArn(stack, 'I', arn('sqs', 'x'))) })],
    ['a queue to write to', (stack, arn) => ({ sink: new SqsSink(Queue.fromQueueArn(stack, 'I', arn('sqs', 'x'))) })],
    [
      'a bus',
      (stack, arn) => ({
        sink: new EventBridgeSink(EventBus.fromEventBusArn(stack, 'I', arn('events', 'event-bus/x')), { source: 's' }),
      }),
    ],
    [
      'the stream of a table',
      (stack, arn) => {
        const tableArn = arn('dynamodb', 'table/x')
        const tableStreamArn = `${tableArn}/stream/2026-01-01T00:00:00.000`
        return { source: new DynamoDbStreamSource(Table.fromTableAttributes(stack, 'I', { tableArn, tableStreamArn })) }
      },
    ],
  ]
  const deployed = (place: typeof home, use: (typeof uses)[0][1]) => {
    const stack = new Stack(new App({ context: validated }), 'Test', { env: home })
    const arn = (service: string, resource: string) => `arn:aws:${service}:${place.region}:${place.account}:${resource}`
    lines(stack, use(stack, arn))
    return stack
  }

  it.each(uses)('another region is refused for %s', (_, use) => {
    expect(() => deployed({ ...home, region: 'us-east-1' }, use)).toThrow(
      /is in the region us-east-1, and the function/,
    )
  })

  it.each(uses)('another account is told for %s, with what its policy must allow', (_, use) => {
    const stack = deployed({ ...home, account: '999922223333' }, use)
    Annotations.fromStack(stack).hasWarning('*', Match.stringLikeRegexp('in the account 999922223333.*must allow'))
  })
})

it('a stage whose environments are kept ready reads through its alias, with the same checks and grants', () => {
  const stack = newStack()
  const stage = { provisionedConcurrency: 1, timeout: Duration.minutes(2) }
  const application = lines(stack, { source: new SqsSource(queueIn(stack)), stage })
  expect(() => Template.fromStack(stack)).toThrow(/its function a timeout of 120 s/)
  const other = newStack()
  const table = new TableV2(other, 'Orders', {
    partitionKey: { name: 'id', type: AttributeType.STRING },
    dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES,
  })
  const reading = lines(other, { source: new DynamoDbStreamSource(table), stage: { provisionedConcurrency: 1 } })
  expect(grantsOf(other, reading, 'lines')).toContain('dynamodb:ListStreams Orders/stream/*')
  expect(application.stage('lines').alias).toBeDefined()
})
