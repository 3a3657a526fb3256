import { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { AttributeType, Table, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { Stream, StreamEncryption } from 'aws-cdk-lib/aws-kinesis'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Bucket } from 'aws-cdk-lib/aws-s3'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { bind, CustomSink, DeadLetters, DynamoDbTableSink, KinesisSink, KinesisSource } from '../../lib/cdk/index.ts'
import { bindingsOf, grantsOf, newStack, newStream, shopIn } from './world.ts'

const stringKey = (name: string) => ({ name, type: AttributeType.STRING })
const keyed = { name: 'ledger', key: () => 'k' }

describe('handles', () => {
  it('are bound by type: a source to a source, a sink to a sink', () => {
    const stack = newStack()
    shopIn(stack, ({ orders, ledger }) => {
      const stream = newStream(stack, 'Any')
      // @ts-expect-error a source cannot be bound to what is written to
      bind(orders, new KinesisSink(stream))
      // @ts-expect-error a sink cannot be bound to what is read
      bind(ledger, new KinesisSource(stream))
      return {}
    })
  })
})

describe('a DynamoDB table as a sink', () => {
  const withTable = (sink: (stack: Stack) => DynamoDbTableSink) => {
    const stack = newStack()
    const application = shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'Orders'))),
        bind(refunds, new KinesisSource(newStream(stack, 'Refunds'))),
        bind(ledger, sink(stack)),
        bind(audit, new CustomSink()),
      ],
    }))
    return { stack, application }
  }

  it.each([
    [
      'TableV2',
      (stack: Stack) => new TableV2(stack, 'Ledger', { partitionKey: stringKey('id'), sortKey: stringKey('at') }),
    ],
    [
      'Table',
      (stack: Stack) => new Table(stack, 'Ledger', { partitionKey: stringKey('id'), sortKey: stringKey('at') }),
    ],
  ])('takes the key attributes from a %s, and is granted UpdateItem alone', (_, table) => {
    const { stack, application } = withTable((scope) => new DynamoDbTableSink(table(scope)))
    expect(bindingsOf(stack, application, 'refunds').sinks).toEqual([
      {
        name: 'ledger',
        kind: 'dynamodb',
        tableName: 'Ledger',
        partitionKey: 'id',
        partitionKeyType: 'S',
        sortKey: 'at',
        sortKeyType: 'S',
      },
    ])
    expect(grantsOf(stack, application, 'refunds').filter((grant) => grant.startsWith('dynamodb:'))).toEqual([
      'dynamodb:UpdateItem Ledger',
    ])
  })

  it('needs the key attribute of an imported table to be said', () => {
    const imported = Table.fromTableArn(new Stack(), 'T', 'arn:aws:dynamodb:eu-west-1:111122223333:table/ledger')
    expect(() => new DynamoDbTableSink(imported)).toThrow(
      'the table arn:aws:dynamodb:eu-west-1:111122223333:table/ledger is imported, so its key is not known here',
    )
    expect(new DynamoDbTableSink(imported, { partitionKey: 'id' }).bindingFor(keyed)).toEqual({
      name: 'ledger',
      kind: 'dynamodb',
      tableName: 'arn:aws:dynamodb:eu-west-1:111122223333:table/ledger',
      partitionKey: 'id',
    })
  })

  it.each([
    ['TableV2', TableV2],
    ['Table', Table],
  ])('refuses a %s whose partition key cannot hold the text of a key function', (_, TableOf) => {
    const number = { name: 'id', type: AttributeType.NUMBER }
    const sink = new DynamoDbTableSink(
      new TableOf(new Stack(), 'T', { partitionKey: number, sortKey: stringKey('at') }),
    )
    expect(() => sink.bindingFor(keyed)).toThrow(
      /^the sink "ledger" has a key function, whose text is the partition key, and the partition key "id" of the table .*T has the type N: declare the sink without `key`/,
    )
    expect(sink.bindingFor({ name: 'ledger', key: undefined })).toMatchObject({
      partitionKeyType: 'N',
      sortKeyType: 'S',
    })
  })

  it("refuses a key that is not the table's", () => {
    const table = new TableV2(new Stack(), 'T', { partitionKey: stringKey('id') })
    expect(() => new DynamoDbTableSink(table, { sortKey: 'at' })).toThrow('has the key "id", not "id" and "at"')
  })
})

describe("a sink of the user's own", () => {
  it('gets its environment and its grants on the stages that write to it, and on no other', () => {
    const stack = newStack()
    const granted: string[] = []
    shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'A'))),
        bind(refunds, new KinesisSource(newStream(stack, 'B'))),
        bind(ledger, new KinesisSink(newStream(stack, 'C'))),
        bind(audit, new CustomSink({ environment: { AUDIT_URL: 'x' }, grant: (fn) => granted.push(fn.node.path) })),
      ],
    }))
    expect(granted).toEqual(['Test/Shop/orders/Function'])
    const functions = Object.values(Template.fromStack(stack).findResources('AWS::Lambda::Function'))
    expect(functions.map((fn) => fn.Properties.Environment.Variables.AUDIT_URL)).toEqual(['x', undefined])
  })
})

describe('dead letters', () => {
  it('go to an encrypted queue of 14 days and an encrypted bucket that outlive the stack, unless said', () => {
    const stack = newStack()
    shopIn(stack)
    const template = Template.fromStack(stack)
    template.hasResource('AWS::SQS::Queue', {
      DeletionPolicy: 'Retain',
      Properties: { MessageRetentionPeriod: 1_209_600, SqsManagedSseEnabled: true },
    })
    template.hasResource('AWS::S3::Bucket', {
      DeletionPolicy: 'Retain',
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
        },
        LifecycleConfiguration: { Rules: [{ ExpirationInDays: 30, Status: 'Enabled' }] },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
      },
    })
  })

  it('go to a stream, with PutRecords', () => {
    const stack = newStack()
    const application = shopIn(stack, () => ({ deadLetters: DeadLetters.stream(newStream(stack, 'Failures')) }))
    expect(grantsOf(stack, application, 'refunds')).toContain('kinesis:PutRecords Failures')
    expect(bindingsOf(stack, application, 'refunds').deadLetters.kind).toBe('kinesis')
    Template.fromStack(stack).resourceCountIs('AWS::SQS::Queue', 0)
  })

  it('go to a bucket, with PutObject and without an offload bucket', () => {
    const stack = newStack()
    const application = shopIn(stack, () => ({ deadLetters: DeadLetters.bucket(new Bucket(stack, 'Failures')) }))
    expect(grantsOf(stack, application, 'refunds').filter((grant) => grant.startsWith('s3:'))).toEqual([
      's3:PutObject Failures/*',
    ])
    expect(bindingsOf(stack, application, 'refunds').deadLetters).toEqual({
      kind: 's3',
      bucket: expect.stringContaining('Failures'),
    })
  })

  it('never go to a source of the same application, nor to a FIFO queue', () => {
    const stack = newStack()
    const stream = newStream(stack, 'Loop')
    expect(() =>
      shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
        bind: [
          bind(orders, new KinesisSource(stream)),
          bind(refunds, new KinesisSource(newStream(stack, 'B'))),
          bind(ledger, new CustomSink()),
          bind(audit, new CustomSink()),
        ],
        deadLetters: DeadLetters.stream(stream),
      })),
    ).toThrow('dead letters go to Test/Loop, which is also source "orders"')
    expect(() => DeadLetters.queue(new Queue(stack, 'Q', { fifo: true }))).toThrow('FIFO queue Test/Q')
  })
})

describe("keys of the user's own", () => {
  it('are granted with the resource: to decrypt what is read, to make data keys for what is written', () => {
    const stack = newStack()
    const encrypted = (id: string) =>
      new Stream(stack, id, { encryption: StreamEncryption.KMS, encryptionKey: new Key(stack, `${id}Key`) })
    const tableKey = new Key(stack, 'TableKey')
    const application = shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
      bind: [
        bind(orders, new KinesisSource(newStream(stack, 'A'))),
        bind(refunds, new KinesisSource(encrypted('In'))),
        bind(ledger, new KinesisSink(encrypted('Out'))),
        bind(
          audit,
          new DynamoDbTableSink(new Table(stack, 'T', { partitionKey: stringKey('id'), encryptionKey: tableKey })),
        ),
      ],
      deadLetters: DeadLetters.queue(new Queue(stack, 'Q', { encryptionMasterKey: new Key(stack, 'QueueKey') })),
    }))
    const keys = (stage: string) => grantsOf(stack, application, stage).filter((grant) => grant.startsWith('kms:'))
    expect(keys('refunds')).toEqual([
      'kms:Decrypt InKey',
      'kms:Decrypt QueueKey',
      'kms:GenerateDataKey OutKey',
      'kms:GenerateDataKey QueueKey',
    ])
    expect(keys('orders')).toEqual(expect.arrayContaining(['kms:Decrypt TableKey', 'kms:Encrypt TableKey']))
  })
})
