/**
 * The requests and answers of Kinesis in AWS JSON 1.1.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_Operations.html
 */
import { KinesisError, type KinesisOperationName } from '../../emulator/kinesis/index.ts'
import { type Field, type Fields, optional, RequestReader, required, toWire } from './aws-json.ts'

const byNameOrArn = { StreamName: optional('string'), StreamARN: optional('string') }
const tags: Field = { mapOf: 'string' }
const entry: Fields = {
  Data: required('bytes'),
  PartitionKey: required('string'),
  ExplicitHashKey: optional('string'),
}
const retention: Fields = { ...byNameOrArn, RetentionPeriodHours: required('integer') }

const requests: Record<KinesisOperationName, Fields> = {
  AddTagsToStream: { ...byNameOrArn, Tags: required(tags) },
  CreateStream: {
    StreamName: required('string'),
    ShardCount: optional('integer'),
    StreamModeDetails: optional({ structure: { StreamMode: required('string') } }),
    Tags: optional(tags),
    MaxRecordSizeInKiB: optional('integer'),
  },
  DecreaseStreamRetentionPeriod: retention,
  DeleteStream: byNameOrArn,
  DescribeStream: { ...byNameOrArn, Limit: optional('integer'), ExclusiveStartShardId: optional('string') },
  DescribeStreamSummary: byNameOrArn,
  GetRecords: { ShardIterator: required('string'), Limit: optional('integer'), StreamARN: optional('string') },
  GetShardIterator: {
    ...byNameOrArn,
    ShardId: required('string'),
    ShardIteratorType: required('string'),
    StartingSequenceNumber: optional('string'),
    Timestamp: optional('time'),
  },
  IncreaseStreamRetentionPeriod: retention,
  ListShards: {
    ...byNameOrArn,
    NextToken: optional('string'),
    ExclusiveStartShardId: optional('string'),
    MaxResults: optional('integer'),
    StreamCreationTimestamp: optional('time'),
    ShardFilter: optional({
      structure: { Type: required('string'), ShardId: optional('string'), Timestamp: optional('time') },
    }),
  },
  ListStreams: {
    Limit: optional('integer'),
    ExclusiveStartStreamName: optional('string'),
    NextToken: optional('string'),
  },
  ListTagsForStream: { ...byNameOrArn, ExclusiveStartTagKey: optional('string'), Limit: optional('integer') },
  MergeShards: { ...byNameOrArn, ShardToMerge: required('string'), AdjacentShardToMerge: required('string') },
  PutRecord: { ...byNameOrArn, ...entry, SequenceNumberForOrdering: optional('string') },
  PutRecords: { ...byNameOrArn, Records: required({ listOf: { structure: entry } }) },
  RemoveTagsFromStream: { ...byNameOrArn, TagKeys: required({ listOf: 'string' }) },
  SplitShard: { ...byNameOrArn, ShardToSplit: required('string'), NewStartingHashKey: required('string') },
  UpdateMaxRecordSize: { StreamARN: required('string'), MaxRecordSizeInKiB: required('integer') },
  UpdateShardCount: { ...byNameOrArn, TargetShardCount: required('integer'), ScalingType: required('string') },
}

const reader = new RequestReader('Kinesis', (name, message) => new KinesisError(name, message))

/** Reads a request's body into what the model takes. Throws SerializationException or ValidationException, naming the field. */
export function decodeRequest(operation: KinesisOperationName, body: Buffer): Record<string, unknown> {
  return reader.read(requests[operation], body)
}

/** Writes an answer, or the empty body of an operation that answers nothing. */
export function encodeAnswer(answer: unknown): string {
  return answer === undefined ? '' : JSON.stringify(toWire(answer))
}
