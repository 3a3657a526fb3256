import { ConfigurationError } from '../../core/errors.ts'
import type { SourceFormat, SourceRecord } from './ports.ts'

/** One change of a table as its stream holds it, assignable to `DynamoDBRecord` of `@types/aws-lambda`. */
export interface DynamoDbChange {
  readonly eventID: string
  readonly eventName: 'INSERT' | 'MODIFY' | 'REMOVE'
  /** Only for what TTL deleted. */
  readonly userIdentity?: { readonly type: 'Service'; readonly principalId: 'dynamodb.amazonaws.com' }
  readonly dynamodb: {
    /** Seconds since 1970. */
    readonly ApproximateCreationDateTime: number
    /** Attributes with their type wrappers, such as `{ id: { S: 'a' } }`. */
    readonly Keys: Readonly<Record<string, unknown>>
    readonly NewImage?: Readonly<Record<string, unknown>>
    readonly OldImage?: Readonly<Record<string, unknown>>
    readonly SequenceNumber: string
    readonly SizeBytes: number
    readonly StreamViewType: 'KEYS_ONLY' | 'NEW_IMAGE' | 'OLD_IMAGE' | 'NEW_AND_OLD_IMAGES'
  }
}

/**
 * A change as a mapping carries it: its JSON as data, the item's key as partition key, so that order holds per item.
 *
 * @example
 * const record = dynamoDbRecord({ eventID: '1', eventName: 'REMOVE', dynamodb })
 */
export function dynamoDbRecord(change: DynamoDbChange): SourceRecord {
  const { SequenceNumber, Keys, ApproximateCreationDateTime } = change.dynamodb
  return {
    sequenceNumber: SequenceNumber,
    partitionKey: JSON.stringify(Keys),
    data: Buffer.from(JSON.stringify(change)),
    arrivalMs: ApproximateCreationDateTime * 1_000,
  }
}

/**
 * What an event source mapping must know of DynamoDB Streams; its records come from {@link dynamoDbRecord}. The event names no
 * shard, filters see `dynamodb`, `eventName` and `userIdentity`, and the times of the envelope are whole seconds.
 *
 * Throws a {@link ConfigurationError} for an ARN of something else.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
 * @example
 * const format = dynamoDbFormat({ streamArn: 'arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2026-01-01T00:00:00.000' })
 */
export function dynamoDbFormat({ streamArn }: { readonly streamArn: string }): SourceFormat {
  const [, awsRegion] = /^arn:[^:]+:dynamodb:([^:]+):[^:]*:table\/[^/]+\/stream\/.+$/.exec(streamArn) ?? []
  if (awsRegion === undefined) {
    throw new ConfigurationError(
      `${streamArn} is not the ARN of a table's stream: it reads arn:aws:dynamodb:<region>:<account>:table/<name>/stream/<label>.`,
    )
  }
  const fixed = { eventVersion: '1.1', eventSource: 'aws:dynamodb', awsRegion, eventSourceARN: streamArn }
  // What joins a change and the fixed part is one comma in place of two braces; another comma stands before the record.
  const fixedBytes = Buffer.byteLength(JSON.stringify(fixed))
  return {
    event: (records) => ({ Records: records.map((record) => ({ ...changeOf(record), ...fixed })) }),
    emptyEventBytes: Buffer.byteLength('{"Records":[]}'),
    eventBytes: (record) => record.data.byteLength + fixedBytes,
    filterKey: 'dynamodb',
    filterText: (record) => JSON.stringify(changeOf(record).dynamodb),
    filterMetadata: (record) => {
      const { eventID, eventName, userIdentity } = changeOf(record)
      return { eventID, eventName, ...fixed, ...(userIdentity === undefined ? {} : { userIdentity }) }
    },
    batchInfo: (records, shardId) => ({ DDBStreamBatchInfo: batchInfo(records, shardId, streamArn) }),
  }
}

function changeOf({ data }: SourceRecord): DynamoDbChange {
  return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString()) as DynamoDbChange
}

function batchInfo(records: readonly SourceRecord[], shardId: string, streamArn: string) {
  const [first, last] = [records.at(0), records.at(-1)]
  return {
    shardId,
    startSequenceNumber: first?.sequenceNumber ?? '',
    endSequenceNumber: last?.sequenceNumber ?? '',
    approximateArrivalOfFirstRecord: wholeSeconds(first?.arrivalMs ?? 0),
    approximateArrivalOfLastRecord: wholeSeconds(last?.arrivalMs ?? 0),
    batchSize: records.length,
    streamArn,
  }
}

function wholeSeconds(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19)}Z`
}
