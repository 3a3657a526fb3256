/**
 * What a stage has of its own beside its function: a keyed one the stream that it reads, and a table for its state; one that
 * feeds it a table for its progress.
 */
import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import { AttributeType, Billing, TableEncryptionV2, type TablePropsV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { type CfnStream, Stream, StreamEncryption, StreamMode, type StreamProps } from 'aws-cdk-lib/aws-kinesis'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'

/** What is left to Kinesis' own construct. A number of shards makes the stream provisioned. */
export type StageStreamProps = Omit<StreamProps, 'streamMode'>

/** What is left to DynamoDB's own construct; keys and TTL are what the state store reads and writes. */
export type StageTableProps = Omit<TablePropsV2, 'partitionKey' | 'sortKey' | 'timeToLiveAttribute'>

/** The stream of a keyed stage. Kinesis must place frames by their hash key, so another record distribution is refused at synth. */
export function stageStream(scope: Construct, stage: string, props: StageStreamProps = {}): Stream {
  const stream = new Stream(scope, 'Stream', {
    streamMode: props.shardCount === undefined ? StreamMode.ON_DEMAND : StreamMode.PROVISIONED,
    retentionPeriod: Duration.days(7),
    encryption: props.encryptionKey === undefined ? StreamEncryption.MANAGED : StreamEncryption.KMS,
    removalPolicy: RemovalPolicy.RETAIN,
    ...props,
  })
  const resource = stream.node.defaultChild as CfnStream
  resource.recordDistributionStrategy = 'USER_PARTITION_KEY'
  scope.node.addValidation({
    validate: () =>
      resource.recordDistributionStrategy === 'AUTO'
        ? [
            `the stream of stage "${stage}" has the record distribution AUTO, under which Kinesis ignores ExplicitHashKey and the records of a key lose their order and their owner: leave it at USER_PARTITION_KEY.`,
          ]
        : [],
  })
  return stream
}

/** The table of a keyed stage, for keys and progress, or of one that feeds, for its progress. */
export function stageTable(scope: Construct, props: StageTableProps = {}): TableV2 {
  return new TableV2(scope, 'Table', {
    billing: Billing.onDemand(),
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    encryption: TableEncryptionV2.awsManagedKey(),
    removalPolicy: RemovalPolicy.RETAIN,
    ...props,
    partitionKey: { name: 'pk', type: AttributeType.STRING },
    sortKey: { name: 'sk', type: AttributeType.STRING },
    timeToLiveAttribute: 'ttl',
  })
}

/**
 * What the stage itself does with its table: it reads and puts items, alone and in transactions, and puts and deletes the
 * entries of what is due. A write in a batch needs the permissions of its single writes too.
 */
export function grantState(table: TableV2, target: IFunction): void {
  const reads = ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:Query']
  table.grant(target, ...reads, 'dynamodb:PutItem', 'dynamodb:DeleteItem', 'dynamodb:BatchWriteItem')
  table.encryptionKey?.grantEncryptDecrypt(target)
}

/** What a stage that feeds does with its table: it keeps its progress there, and nothing else. */
export function grantProgress(table: TableV2, target: IFunction): void {
  target.addToRolePolicy(
    new PolicyStatement({
      actions: ['dynamodb:GetItem', 'dynamodb:PutItem'],
      resources: [table.tableArn],
      conditions: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['progress#*'] } },
    }),
  )
  table.encryptionKey?.grantEncryptDecrypt(target)
}

/** What the announcer does with either table: it reads progress, sees no key and writes nothing. */
export function grantProgressReading(table: TableV2, target: IFunction): void {
  target.addToRolePolicy(
    new PolicyStatement({
      actions: ['dynamodb:GetItem'],
      resources: [table.tableArn],
      conditions: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['progress#*'] } },
    }),
  )
  table.encryptionKey?.grantDecrypt(target)
}
