/**
 * The requests and answers of the operations that the model has, field by field as in the Kinesis API, with `Date` and bytes
 * where the wire has seconds and base64. An SDK answer has the same shape.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/Welcome.html
 */

export type StreamModeName = 'PROVISIONED' | 'ON_DEMAND'
export type ShardIteratorTypeName =
  | 'AT_SEQUENCE_NUMBER'
  | 'AFTER_SEQUENCE_NUMBER'
  | 'AT_TIMESTAMP'
  | 'TRIM_HORIZON'
  | 'LATEST'
export type ShardFilterTypeName =
  | 'AFTER_SHARD_ID'
  | 'AT_TRIM_HORIZON'
  | 'FROM_TRIM_HORIZON'
  | 'AT_LATEST'
  | 'AT_TIMESTAMP'
  | 'FROM_TIMESTAMP'

/** A stream by its name, its ARN, or both if they agree. */
export interface StreamReference {
  readonly StreamName?: string | undefined
  readonly StreamARN?: string | undefined
}

export interface CreateStreamInput {
  readonly StreamName: string
  /** Required when PROVISIONED, refused when ON_DEMAND (which starts with four). */
  readonly ShardCount?: number | undefined
  /** @default PROVISIONED */
  readonly StreamModeDetails?: { readonly StreamMode: StreamModeName } | undefined
  readonly Tags?: Readonly<Record<string, string>> | undefined
  /** 1,024 to 10,240. @default 1024 */
  readonly MaxRecordSizeInKiB?: number | undefined
}

export interface UpdateMaxRecordSizeInput {
  readonly StreamARN: string
  readonly MaxRecordSizeInKiB: number
}

export interface RetentionInput extends StreamReference {
  readonly RetentionPeriodHours: number
}

export interface DescribeStreamInput extends StreamReference {
  /** @default 100 */
  readonly Limit?: number | undefined
  readonly ExclusiveStartShardId?: string | undefined
}

export interface HashKeyRange {
  readonly StartingHashKey: string
  readonly EndingHashKey: string
}

export interface ShardDescription {
  readonly ShardId: string
  readonly ParentShardId?: string
  readonly AdjacentParentShardId?: string
  readonly HashKeyRange: HashKeyRange
  readonly SequenceNumberRange: {
    readonly StartingSequenceNumber: string
    /** Present once the shard is closed. */
    readonly EndingSequenceNumber?: string
  }
}

interface CommonDescription {
  readonly StreamName: string
  readonly StreamARN: string
  readonly StreamStatus: 'ACTIVE'
  readonly StreamModeDetails: { readonly StreamMode: StreamModeName }
  readonly RetentionPeriodHours: number
  readonly StreamCreationTimestamp: Date
  readonly EnhancedMonitoring: readonly { readonly ShardLevelMetrics: readonly [] }[]
  readonly EncryptionType: 'NONE'
}

export interface DescribeStreamOutput {
  readonly StreamDescription: CommonDescription & {
    readonly Shards: readonly ShardDescription[]
    readonly HasMoreShards: boolean
  }
}

export interface DescribeStreamSummaryOutput {
  readonly StreamDescriptionSummary: CommonDescription & {
    readonly OpenShardCount: number
    readonly ConsumerCount: number
    readonly MaxRecordSizeInKiB: number
    readonly RecordDistributionStrategy: 'USER_PARTITION_KEY'
  }
}

export interface ListStreamsInput {
  /** @default 100 */
  readonly Limit?: number | undefined
  readonly ExclusiveStartStreamName?: string | undefined
  readonly NextToken?: string | undefined
}

export interface ListStreamsOutput {
  readonly StreamNames: readonly string[]
  readonly HasMoreStreams: boolean
  readonly NextToken?: string
  readonly StreamSummaries: readonly Pick<
    CommonDescription,
    'StreamName' | 'StreamARN' | 'StreamStatus' | 'StreamModeDetails' | 'StreamCreationTimestamp'
  >[]
}

export interface ShardFilter {
  readonly Type: ShardFilterTypeName
  readonly ShardId?: string | undefined
  readonly Timestamp?: Date | undefined
}

export interface ListShardsInput extends StreamReference {
  /** Goes on with a listing; excludes everything else but MaxResults. */
  readonly NextToken?: string | undefined
  readonly ExclusiveStartShardId?: string | undefined
  /** @default 1000 */
  readonly MaxResults?: number | undefined
  readonly StreamCreationTimestamp?: Date | undefined
  readonly ShardFilter?: ShardFilter | undefined
}

export interface ListShardsOutput {
  readonly Shards: readonly ShardDescription[]
  readonly NextToken?: string
}

export interface PutRecordsEntry {
  readonly Data: Uint8Array
  readonly PartitionKey: string
  /** A decimal integer in [0, 2^128) that is routed by instead of the key's hash. */
  readonly ExplicitHashKey?: string | undefined
}

export interface PutRecordInput extends StreamReference, PutRecordsEntry {
  readonly SequenceNumberForOrdering?: string | undefined
}

export interface PutRecordOutput {
  readonly ShardId: string
  readonly SequenceNumber: string
  readonly EncryptionType: 'NONE'
}

export interface PutRecordsInput extends StreamReference {
  readonly Records: readonly PutRecordsEntry[]
}

/** What became of one record: a place, or an error. */
export interface PutRecordsResult {
  readonly ShardId?: string
  readonly SequenceNumber?: string
  readonly ErrorCode?: 'ProvisionedThroughputExceededException'
  readonly ErrorMessage?: string
}

export interface PutRecordsOutput {
  readonly FailedRecordCount: number
  readonly Records: readonly PutRecordsResult[]
  readonly EncryptionType: 'NONE'
}

export interface GetShardIteratorInput extends StreamReference {
  readonly ShardId: string
  readonly ShardIteratorType: ShardIteratorTypeName
  readonly StartingSequenceNumber?: string | undefined
  readonly Timestamp?: Date | undefined
}

export interface GetRecordsInput {
  readonly ShardIterator: string
  /** 1 to 10,000. @default 10000 */
  readonly Limit?: number | undefined
  readonly StreamARN?: string | undefined
}

/** `Data` is a view into the model's memory: it must not be changed. */
export interface KinesisRecord {
  readonly SequenceNumber: string
  readonly ApproximateArrivalTimestamp: Date
  readonly Data: Buffer
  readonly PartitionKey: string
  readonly EncryptionType: 'NONE'
}

export interface ChildShard {
  readonly ShardId: string
  readonly ParentShards: readonly string[]
  readonly HashKeyRange: HashKeyRange
}

export interface GetRecordsOutput {
  readonly Records: readonly KinesisRecord[]
  /** null at the end of a closed shard, together with `ChildShards`. */
  readonly NextShardIterator: string | null
  readonly MillisBehindLatest: number
  readonly ChildShards?: readonly ChildShard[]
}

export interface SplitShardInput extends StreamReference {
  readonly ShardToSplit: string
  readonly NewStartingHashKey: string
}

export interface MergeShardsInput extends StreamReference {
  readonly ShardToMerge: string
  readonly AdjacentShardToMerge: string
}

export interface UpdateShardCountInput extends StreamReference {
  readonly TargetShardCount: number
  readonly ScalingType: 'UNIFORM_SCALING'
}

export interface UpdateShardCountOutput {
  readonly StreamName: string
  readonly StreamARN: string
  readonly CurrentShardCount: number
  readonly TargetShardCount: number
}

export interface AddTagsInput extends StreamReference {
  readonly Tags: Readonly<Record<string, string>>
}

export interface RemoveTagsInput extends StreamReference {
  readonly TagKeys: readonly string[]
}

export interface ListTagsInput extends StreamReference {
  readonly ExclusiveStartTagKey?: string | undefined
  /** @default 50 */
  readonly Limit?: number | undefined
}

export interface ListTagsOutput {
  readonly Tags: readonly { readonly Key: string; readonly Value: string }[]
  readonly HasMoreTags: boolean
}
