import { App, Duration, Fn, Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { Stream } from 'aws-cdk-lib/aws-kinesis'
import { CfnFunction } from 'aws-cdk-lib/aws-lambda'
import {
  bind,
  CustomSink,
  KinesisSink,
  KinesisSource,
  type StageProps,
  StreamApplication,
} from '../../lib/cdk/index.ts'
import { Topology, text } from '../../lib/index.ts'
import { bindingsOf, entry, findingsIn, grantsOf, newStack, newStream, shopIn, validated } from './world.ts'

describe('a deployed topology', () => {
  it('has one function, log group and mapping per stage, with ids that follow the names', () => {
    // GIVEN
    const stack = newStack()
    // WHEN
    const application = shopIn(stack)
    // THEN
    expect(application.stages.map((stage) => stage.node.path)).toEqual(['Test/Shop/orders', 'Test/Shop/refunds'])
    const template = Template.fromStack(stack)
    template.resourceCountIs('AWS::Lambda::Function', 2)
    template.resourceCountIs('AWS::Lambda::EventSourceMapping', 2)
    template.resourcePropertiesCountIs('AWS::Logs::LogGroup', { RetentionInDays: 30 }, 2)
    template.allResourcesProperties('AWS::Lambda::Function', {
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      MemorySize: 512,
      Timeout: 60,
      Handler: 'index.handler',
      TracingConfig: Match.absent(),
      Environment: { Variables: Match.objectLike({ NODE_OPTIONS: '--enable-source-maps' }) },
    })
  })

  it('gives logical ids that hold the name of the stage and no number', () => {
    const stack = newStack()
    const { function: refunds } = shopIn(stack).stage('refunds')
    expect(stack.resolve(refunds.functionArn)).toEqual({
      'Fn::GetAtt': [expect.stringMatching(/^ShoprefundsFunction[0-9A-F]{8}$/), 'Arn'],
    })
  })

  it('maps without dropping anything: no end of retries, bisecting, and answers by record', () => {
    const stack = newStack()
    shopIn(stack)
    Template.fromStack(stack).allResourcesProperties('AWS::Lambda::EventSourceMapping', {
      StartingPosition: 'TRIM_HORIZON',
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: -1,
      MaximumRecordAgeInSeconds: Match.absent(),
      DestinationConfig: Match.absent(),
      BatchSize: 500,
      MaximumBatchingWindowInSeconds: 1,
      ParallelizationFactor: 1,
    })
  })

  it('shows the hints of the plan at synth', () => {
    // GIVEN a topology that names a key and keeps nothing by it
    const stack = newStack()
    const app = new Topology('keyed-for-nothing')
    const lines = app.source('lines', text())
    const out = app.sink<string>('out')
    lines.keyBy('by-line', (line) => line).to(out)
    // WHEN
    new StreamApplication(stack, 'App', {
      topology: app,
      entry,
      bind: [
        bind(lines, new KinesisSource(newStream(stack, 'In'))),
        bind(out, new KinesisSink(newStream(stack, 'Out'))),
      ],
    })
    // THEN
    Annotations.fromStack(stack).hasInfo('/Test/App', Match.stringLikeRegexp('keyBy "by-line": no step behind it'))
  })

  it('warns of what the plan warns of', () => {
    // GIVEN a stage that counts the last results of batches
    const stack = newStack()
    const app = new Topology('counted-batches')
    const lines = app.source('lines', text())
    const out = app.sink<string>('out')
    const self = (line: string) => line
    const longest = lines.keyBy('first', self).reduce('longest', self, { emit: 'per-batch' })
    longest.map(self).keyBy('second', self).reduce('last', self, { emit: 'on-update' }).to(out)
    // WHEN
    new StreamApplication(stack, 'App', {
      topology: app,
      entry,
      bind: [
        bind(lines, new KinesisSource(newStream(stack, 'In'))),
        bind(out, new KinesisSink(newStream(stack, 'Out'))),
      ],
    })
    // THEN
    Annotations.fromStack(stack).hasWarning(
      '/Test/App',
      Match.stringLikeRegexp('what is counted behind it depends on where batches are cut'),
    )
  })

  it('starts at a timestamp where the source says so', () => {
    const stack = newStack()
    shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'A'), { startingPosition: new Date('2026-11-29T00:00:00Z') })),
        bind(refunds, new KinesisSource(newStream(stack, 'B'))),
        bind(ledger, new CustomSink()),
        bind(audit, new CustomSink()),
      ],
    }))
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      StartingPosition: 'AT_TIMESTAMP',
      StartingPositionTimestamp: 1_795_910_400,
    })
  })

  it('tunes one stage and leaves the others', () => {
    const stack = newStack()
    shopIn(stack, () => ({
      stages: {
        refunds: {
          memorySize: 1_024,
          timeout: Duration.minutes(5),
          batchSize: 10_000,
          maxBatchingWindow: Duration.seconds(0),
          parallelizationFactor: 10,
          enabled: false,
          environment: { GREETING: 'hello' },
          function: { reservedConcurrentExecutions: 7 },
        },
      },
    }))
    const template = Template.fromStack(stack)
    template.hasResourceProperties('AWS::Lambda::Function', {
      MemorySize: 1_024,
      Timeout: 300,
      ReservedConcurrentExecutions: 7,
      Environment: { Variables: Match.objectLike({ GREETING: 'hello' }) },
    })
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      BatchSize: 10_000,
      MaximumBatchingWindowInSeconds: 0,
      ParallelizationFactor: 10,
      Enabled: false,
    })
    template.resourcePropertiesCountIs('AWS::Lambda::Function', { MemorySize: 512 }, 1)
    template.resourcePropertiesCountIs('AWS::Lambda::EventSourceMapping', { BatchSize: 500 }, 1)
  })

  it('tells each function only of what it reads and writes', () => {
    const stack = newStack()
    const application = shopIn(stack)
    expect(bindingsOf(stack, application, 'refunds')).toEqual({
      formatVersion: 1,
      topology: 'shop',
      sources: [{ name: 'refunds', kind: 'kinesis', streamArn: 'Refunds' }],
      sinks: [{ name: 'ledger', kind: 'kinesis', streamArn: 'Ledger', ordering: 'per-key' }],
      deadLetters: {
        kind: 'sqs',
        queueUrl: expect.stringContaining('ShopDeadLetters'),
        offloadBucket: expect.stringContaining('ShopDeadLetterPayloads'),
      },
    })
  })

  it('grants each function exactly what it needs', () => {
    const stack = newStack()
    const application = shopIn(stack)
    expect(grantsOf(stack, application, 'refunds')).toEqual([
      'kinesis:DescribeStream Refunds',
      'kinesis:DescribeStreamSummary Refunds',
      'kinesis:GetRecords Refunds',
      'kinesis:GetShardIterator Refunds',
      'kinesis:ListShards Refunds',
      'kinesis:PutRecords Ledger',
      'logs:CreateLogStream ShoprefundsLogs',
      'logs:PutLogEvents ShoprefundsLogs',
      's3:PutObject ShopDeadLetterPayloads/*',
      'sqs:SendMessage ShopDeadLetters',
    ])
    expect(grantsOf(stack, application, 'orders')).toContain('kinesis:PutRecords Audit')
  })

  it('reaches every stage by name, and names the stages where there is none', () => {
    const application = shopIn(newStack())
    expect(application.stage('orders').function.node.path).toBe('Test/Shop/orders/Function')
    expect(() => application.stage('order')).toThrow('no stage "order": its stages are "orders", "refunds"')
  })

  it('passes the offline validator of the CDK without a finding', () => {
    const app = new App({ context: validated })
    shopIn(new Stack(app, 'Test'))
    expect(findingsIn(app.synth().directory)).toEqual([])
  })

  it('would not pass it with a runtime that Lambda no longer takes', () => {
    const printed = jest.spyOn(console, 'error').mockImplementation()
    const app = new App({ context: validated })
    const code = { zipFile: 'x' }
    const role = 'arn:aws:iam::111122223333:role/r'
    new CfnFunction(new Stack(app, 'Test'), 'Old', { code, role, runtime: 'nodejs16.x', handler: 'i.h' })
    expect(findingsIn(app.synth().directory)).toEqual([expect.stringContaining("'nodejs16.x' was deprecated")])
    printed.mockRestore()
  })
})

describe('what cannot run is refused at synth', () => {
  const refused = (change: Parameters<typeof shopIn>[1]) => {
    const stack = newStack()
    return expect(() => shopIn(stack, change))
  }

  it('a name that is not bound', () => {
    const stack = newStack()
    refused(({ orders, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'A'))),
        bind(ledger, new CustomSink()),
        bind(audit, new CustomSink()),
      ],
    })).toThrow('source "refunds" of topology "shop" is not bound')
  })

  it('a name that is bound twice', () => {
    const stack = newStack()
    refused(({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'A'))),
        bind(refunds, new KinesisSource(newStream(stack, 'B'))),
        bind(ledger, new CustomSink()),
        bind(audit, new CustomSink()),
        bind(audit, new CustomSink()),
      ],
    })).toThrow('sink "audit-trail" of topology "shop" is bound twice')
  })

  it('two sources on one stream', () => {
    const stream = newStream(newStack(), 'A')
    refused(({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(stream)),
        bind(refunds, new KinesisSource(stream)),
        bind(ledger, new CustomSink()),
        bind(audit, new CustomSink()),
      ],
    })).toThrow('sources "orders" and "refunds" of topology "shop" are bound to one resource (Test/A)')
  })

  it.each([
    ['by its ARN', 'arn:aws:kinesis:eu-west-1:111122223333:stream/loop'],
    ['by a reference', Fn.importValue('LoopArn')],
  ])('records that would go in a circle, through a stream that is imported twice %s', (_, arn) => {
    const stack = newStack()
    refused(({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(Stream.fromStreamArn(stack, 'In', arn))),
        bind(refunds, new KinesisSource(newStream(stack, 'B'))),
        bind(ledger, new CustomSink()),
        bind(audit, new KinesisSink(Stream.fromStreamArn(stack, 'Out', arn))),
      ],
    })).toThrow('topology "shop" is cyclic: source "orders" > sink "audit-trail" > source "orders"')
  })

  it('tuning of a stage that does not exist', () => {
    refused(() => ({ stages: { order: {} } })).toThrow('has no stage "order": its stages are "orders", "refunds"')
  })

  it.each<[string, StageProps, string]>([
    ['batchSize 0', { batchSize: 0 }, 'has batchSize 0: give a whole number from 1 to 10,000'],
    ['batchSize 10001', { batchSize: 10_001 }, 'has batchSize 10001'],
    ['memorySize 127', { memorySize: 127 }, 'has memorySize 127: give a whole number from 128 to 10,240'],
    [
      'parallelizationFactor 11',
      { parallelizationFactor: 11 },
      'has parallelizationFactor 11: give a whole number from 1 to 10',
    ],
    [
      'a window of 301 s',
      { maxBatchingWindow: Duration.seconds(301) },
      'has maxBatchingWindow 301 s: give whole seconds from 0 to 300',
    ],
    ['a window of half a second', { maxBatchingWindow: Duration.millis(500) }, 'has maxBatchingWindow 0.5 s'],
    ['a timeout of 16 min', { timeout: Duration.minutes(16) }, 'has timeout 960 s: give whole seconds from 1 to 900'],
    ['a tumbling window', { tumblingWindow: Duration.seconds(30) } as object, 'tumblingWindow, which is not offered'],
  ])('%s', (_, settings, message) => {
    refused(() => ({ stages: { orders: settings } })).toThrow(message)
  })

  it('a source that would start at LATEST, with the reason', () => {
    const stream = new Stream(new Stack(), 'A')
    expect(() => new KinesisSource(stream, { startingPosition: 'LATEST' as never })).toThrow(
      /LATEST, which loses what arrives/,
    )
    expect(() => new KinesisSource(stream, { startingPosition: new Date(Number.NaN) })).toThrow('Invalid Date')
  })

  it.each([undefined, '', 7])('an entry that is %j', (none) => {
    refused(() => ({ entry: none as never })).toThrow(
      /^"entry" is (undefined|""|7): give StreamApplication the path of the file that exports the handler/,
    )
  })

  it('a handler that its entry does not export', () => {
    refused(() => ({ stages: { orders: { handler: 'hander' } } })).toThrow(
      /^stage "orders" has the handler "hander", and .*fixtures\/handler\.ts exports handler: export it there/,
    )
  })

  it('a handler file that is not there', () => {
    refused(() => ({ entry: 'functions/nowhere/handler.ts' })).toThrow(
      /there is no handler file \/.*functions\/nowhere\/handler.ts/,
    )
  })
})
