import { App, Stack } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { AttributeType, TableEncryptionV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { Stream, StreamEncryption } from 'aws-cdk-lib/aws-kinesis'
import { type IKey, Key } from 'aws-cdk-lib/aws-kms'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Bucket, BucketEncryption } from 'aws-cdk-lib/aws-s3'
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs'
import { bind, DeadLetters, DynamoDbTableSink, KinesisSink, KinesisSource } from '../../lib/cdk/index.ts'
import { ridesIn } from './rides.ts'
import { grantsOfRole, shopIn, validated } from './world.ts'

/** In a region that is known: TableV2 renders a key of one's own for a replica there. */
const stackSomewhere = () =>
  new Stack(new App({ context: validated }), 'Test', { env: { account: '111122223333', region: 'eu-west-1' } })

const keyIn = (stack: Stack, id: string) => new Key(stack, id, { enableKeyRotation: true })

const streamOf = (stack: Stack, id: string, encryptionKey: IKey) =>
  new Stream(stack, id, { encryption: StreamEncryption.KMS, encryptionKey })

const keyGrants = (stack: Stack, target: IFunction | undefined): string[] =>
  target ? grantsOfRole(stack, target).filter((grant) => grant.startsWith('kms:')) : ['no function']

const wholeTable = ['Decrypt', 'DescribeKey', 'Encrypt', 'GenerateDataKey', 'ReEncryptFrom', 'ReEncryptTo']
const actionsOn = (key: string, ...actions: readonly string[]) => actions.map((action) => `kms:${action} ${key}`)

describe('with keys of one’s own, each function may use each key for what it does, and no more', () => {
  const stack = stackSomewhere()
  const tableKey = keyIn(stack, 'TableKey')
  const table = { encryption: TableEncryptionV2.customerManagedKey(tableKey) }
  const application = ridesIn(stack, {
    rides: { table },
    'by-driver': { stream: { encryptionKey: keyIn(stack, 'DriverKey') } },
    'by-city': { stream: { encryptionKey: keyIn(stack, 'CityKey') }, table },
  })
  const of = (stage: string) => keyGrants(stack, application.stage(stage).function)

  it('a keyed stage decrypts its stream and uses the key of its table', () => {
    expect(of('by-city')).toEqual([...actionsOn('CityKey', 'Decrypt'), ...actionsOn('TableKey', ...wholeTable)].sort())
  })

  it('a stage that feeds it makes data keys for the stream', () => {
    expect(of('by-driver')).toEqual(
      [...actionsOn('DriverKey', 'Decrypt'), ...actionsOn('CityKey', 'GenerateDataKey')].sort(),
    )
    expect(of('rides')).toEqual(
      [...actionsOn('DriverKey', 'GenerateDataKey'), ...actionsOn('TableKey', ...wholeTable)].sort(),
    )
  })

  it('a stage that touches none may use none', () => {
    expect(of('visits')).toEqual([])
  })

  it('the announcer looks at the streams, writes to them, and reads the tables', () => {
    expect(keyGrants(stack, application.announcer?.function)).toEqual([
      ...actionsOn('CityKey', 'Decrypt'),
      ...actionsOn('DriverKey', 'Decrypt'),
      ...actionsOn('TableKey', 'Decrypt', 'DescribeKey'),
      ...actionsOn('CityKey', 'GenerateDataKey'),
      ...actionsOn('DriverKey', 'GenerateDataKey'),
    ])
  })

  it('streams and tables are encrypted with them', () => {
    const template = Template.fromStack(stack)
    template.hasResourceProperties('AWS::Kinesis::Stream', {
      StreamEncryption: { EncryptionType: 'KMS', KeyId: stack.resolve(keyArn(stack, 'CityKey')) },
    })
    template.hasResourceProperties('AWS::DynamoDB::GlobalTable', {
      Replicas: [Match.objectLike({ SSESpecification: { KMSMasterKeyId: stack.resolve(tableKey.keyArn) } })],
    })
  })
})

const keyArn = (stack: Stack, id: string): string => (stack.node.findChild(id) as Key).keyArn

it('sources, sinks and dead letters with keys of one’s own are granted by what is done with them', () => {
  const stack = stackSomewhere()
  const application = shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
    bind: [
      bind(orders, new KinesisSource(streamOf(stack, 'Orders', keyIn(stack, 'OrdersKey')))),
      bind(refunds, new KinesisSource(streamOf(stack, 'Refunds', keyIn(stack, 'RefundsKey')))),
      bind(audit, new KinesisSink(streamOf(stack, 'Audit', keyIn(stack, 'AuditKey')))),
      bind(
        ledger,
        new DynamoDbTableSink(
          new TableV2(stack, 'Ledger', {
            partitionKey: { name: 'id', type: AttributeType.STRING },
            encryption: TableEncryptionV2.customerManagedKey(keyIn(stack, 'LedgerKey')),
          }),
        ),
      ),
    ],
    deadLetters: DeadLetters.queue(
      new Queue(stack, 'Letters', { encryption: QueueEncryption.KMS, encryptionMasterKey: keyIn(stack, 'QueueKey') }),
      {
        offloadBucket: new Bucket(stack, 'Payloads', {
          encryption: BucketEncryption.KMS,
          encryptionKey: keyIn(stack, 'BucketKey'),
        }),
      },
    ),
  }))
  const common = [
    ...actionsOn('BucketKey', 'GenerateDataKey'),
    ...actionsOn('LedgerKey', ...wholeTable),
    ...actionsOn('QueueKey', 'Decrypt', 'GenerateDataKey'),
  ]
  expect(keyGrants(stack, application.stage('refunds').function)).toEqual(
    [...common, ...actionsOn('RefundsKey', 'Decrypt')].sort(),
  )
  expect(keyGrants(stack, application.stage('orders').function)).toEqual(
    [...common, ...actionsOn('OrdersKey', 'Decrypt'), ...actionsOn('AuditKey', 'GenerateDataKey')].sort(),
  )
})
