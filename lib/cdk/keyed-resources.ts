/**
 * What a stage has of its own beside its function: a keyed one the stream that it reads, and a table for its state; one that
 * feeds it a table for its progress. We make them, or the user brings them.
 */
import { Annotations, Duration, RemovalPolicy } from 'aws-cdk-lib'
import {
  AttributeType,
  Billing,
  type ITable,
  TableEncryptionV2,
  type TablePropsV2,
  TableV2,
} from 'aws-cdk-lib/aws-dynamodb'
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam'
import {
  type CfnStream,
  type IStream,
  Stream,
  StreamEncryption,
  StreamMode,
  type StreamProps,
} from 'aws-cdk-lib/aws-kinesis'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import { refuseElsewhere } from './place.ts'
import { refuseAtSynth, renderedProperties } from './rendered.ts'
import { streamFindings, tableFindings } from './resource-rules.ts'

/** What is left to Kinesis' own construct. A number of shards makes the stream provisioned. */
export interface StageStreamProps extends Omit<StreamProps, 'streamMode'> {
  /**
   * MiB per second that a stream on demand takes at once, without growing first; the account must be in on-demand advantage mode.
   * @default what Kinesis gives a new stream
   */
  readonly warmThroughputMiBps?: number
}

/** What is left to DynamoDB's own construct; keys and TTL are what the state store reads and writes. */
export type StageTableProps = Omit<TablePropsV2, 'partitionKey' | 'sortKey' | 'timeToLiveAttribute'>

/** Whether the user brings a stream or a table, and does not say how ours should be. */
export function isBrought(given: StageStreamProps | IStream | undefined): given is IStream
export function isBrought(given: StageTableProps | ITable | undefined): given is ITable
export function isBrought(given: object | undefined): boolean {
  return Construct.isConstruct(given)
}

/**
 * The stream of a keyed stage: ours, or the one that is brought. Kinesis must place frames by their hash key, so another record
 * distribution is refused at synth.
 */
export function stageStream(scope: Construct, stage: string, given: StageStreamProps | IStream = {}): IStream {
  const stream = isBrought(given) ? given : newStream(scope, stage, given)
  refuseStreamOf(scope, `the stream of stage "${stage}"`, stream)
  return stream
}

/** Refuses at synth a stream in which records of a key would lose their order; one that is imported cannot be seen, which synth says. */
export function refuseStreamOf(scope: Construct, what: string, stream: IStream): void {
  refuseAtSynth(scope, stream, (properties) => streamFindings(what, properties))
  if (stream.node.defaultChild !== undefined) return
  Annotations.of(scope).addInfoV2(
    'millrace:imported-stream',
    `${what} is imported, so that its record distribution cannot be seen here: it must be USER_PARTITION_KEY, as \`aws kinesis describe-stream-summary\` shows it.`,
  )
}

function newStream(scope: Construct, stage: string, given: StageStreamProps): Stream {
  const { warmThroughputMiBps, ...props } = given
  if (warmThroughputMiBps !== undefined && props.shardCount !== undefined) {
    throw new ConfigurationError(
      `the stream of stage "${stage}" has both shardCount and warmThroughputMiBps: a number of shards makes it provisioned, and only a stream on demand is warmed; leave one out.`,
    )
  }
  const stream = new Stream(scope, 'Stream', {
    streamMode: props.shardCount === undefined ? StreamMode.ON_DEMAND : StreamMode.PROVISIONED,
    retentionPeriod: Duration.days(7),
    encryption: props.encryptionKey === undefined ? StreamEncryption.MANAGED : StreamEncryption.KMS,
    removalPolicy: RemovalPolicy.RETAIN,
    ...props,
  })
  const resource = stream.node.defaultChild as CfnStream
  resource.recordDistributionStrategy = 'USER_PARTITION_KEY'
  if (warmThroughputMiBps !== undefined) resource.warmThroughputMiBps = warmThroughputMiBps
  return stream
}

/** For how long a stream keeps records, in ms; undefined where that is not known at synth. Asked at synth, when nothing changes any more. */
export function retentionMsOf(stream: IStream): number | undefined {
  const properties = renderedProperties(stream)
  // Kinesis keeps them for a day where nobody says otherwise.
  const hours = properties === undefined ? undefined : (properties.RetentionPeriodHours ?? 24)
  return typeof hours === 'number' ? hours * 3_600_000 : undefined
}

/** The table of a keyed stage, for keys and progress, or of one that feeds, for its progress: ours, or the one that is brought. */
export function stageTable(scope: Construct, stage: string, given: StageTableProps | ITable = {}): ITable {
  const what = `the table of stage "${stage}"`
  const table = isBrought(given) ? given : newTable(scope, given)
  refuseElsewhere(scope, what, table, table.tableArn)
  refuseAtSynth(scope, table, (properties) => tableFindings(what, properties))
  return table
}

function newTable(scope: Construct, props: StageTableProps): TableV2 {
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
export function grantState(table: ITable, target: IFunction): void {
  const reads = ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:Query']
  grantItems(table, target, [...reads, 'dynamodb:PutItem', 'dynamodb:DeleteItem', 'dynamodb:BatchWriteItem'])
  grantTableKey(table, target)
}

/** What a stage that feeds does with its table: it keeps its progress and its manifest there, and nothing else. */
export function grantProgress(table: ITable, target: IFunction): void {
  grantItems(table, target, ['dynamodb:GetItem', 'dynamodb:PutItem'], only('progress#*', 'manifest#'))
  grantTableKey(table, target)
}

/** What the announcer does with either table: it reads progress, sees no key and writes nothing. */
export function grantProgressReading(table: ITable, target: IFunction): void {
  grantItems(table, target, ['dynamodb:GetItem'], only('progress#*'))
  table.encryptionKey?.grant(target, 'kms:Decrypt', 'kms:DescribeKey')
}

/**
 * What DynamoDB asks of whoever reads and writes a table that has a key of its own, each action by its name.
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
 */
export function grantTableKey(table: ITable, target: IGrantable): void {
  const both = ['kms:Decrypt', 'kms:DescribeKey']
  const writing = ['kms:Encrypt', 'kms:GenerateDataKey', 'kms:ReEncryptFrom', 'kms:ReEncryptTo']
  table.encryptionKey?.grant(target, ...both, ...writing)
}

/** Where the keys of items are like one of these. */
const only = (...keys: readonly string[]) => ({ 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys } })

/** Of the table alone, not of its indexes, which the state store has no use for. */
function grantItems(table: ITable, grantee: IFunction, actions: string[], conditions?: ReturnType<typeof only>): void {
  Grant.addToPrincipal({ grantee, actions, resourceArns: [table.tableArn], ...(conditions ? { conditions } : {}) })
}
