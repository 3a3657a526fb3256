import { ConfigurationError } from '../../core/errors.ts'
import type { SourceFormat, SourceRecord } from './ports.ts'

export interface KinesisSourceOptions {
  /** `arn:aws:kinesis:<region>:<account>:stream/<name>` */
  readonly streamArn: string
  /** @default a role named lambda-role in the stream's account */
  readonly invokeIdentityArn?: string
}

/** The event as JSON, assignable to `KinesisStreamEvent` of `@types/aws-lambda`. */
export interface KinesisEvent {
  Records: KinesisEventRecord[]
}

export interface KinesisEventRecord {
  kinesis: {
    kinesisSchemaVersion: string
    partitionKey: string
    sequenceNumber: string
    /** Base64. */
    data: string
    /** Seconds since 1970, with milliseconds as a fraction. */
    approximateArrivalTimestamp: number
  }
  eventSource: string
  eventVersion: string
  eventID: string
  eventName: string
  invokeIdentityArn: string
  awsRegion: string
  eventSourceARN: string
}

/**
 * The event that a function receives from Kinesis. The shard is only in `eventID`; times are seconds with a fraction; data is base64.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
 *
 * @example
 * const event = buildKinesisEvent(records, 'shardId-000000000000', { streamArn })
 */
export function buildKinesisEvent(
  records: readonly SourceRecord[],
  shardId: string,
  options: KinesisSourceOptions,
): KinesisEvent {
  const arn = parseStreamArn(options)
  return { Records: records.map((record) => kinesisRecord(record, shardId, arn)) }
}

/** What an event source mapping must know of Kinesis. Throws a {@link ConfigurationError} for an ARN of something else. */
export function kinesisFormat(options: KinesisSourceOptions): SourceFormat {
  const arn = parseStreamArn(options)
  const fixedBytes = byteLength(JSON.stringify(kinesisRecord(emptyRecord, '', arn))) - '0'.length + ','.length
  return {
    event: (records, shardId) => ({ Records: records.map((record) => kinesisRecord(record, shardId, arn)) }),
    emptyEventBytes: byteLength('{"Records":[]}'),
    // Counted instead of serialised: the sequence number stands in the record twice, and base64 has four characters for three bytes.
    eventBytes: (record, shardId) =>
      fixedBytes +
      2 * record.sequenceNumber.length +
      shardId.length +
      4 * Math.ceil(record.data.length / 3) +
      String(record.arrivalMs / 1_000).length +
      byteLength(JSON.stringify(record.partitionKey)) -
      '""'.length,
    filterKey: 'data',
    filterText,
    filterMetadata: (record) => ({
      kinesisSchemaVersion: '1.0',
      partitionKey: record.partitionKey,
      sequenceNumber: record.sequenceNumber,
    }),
    batchInfo: (records, shardId) => ({ KinesisBatchInfo: batchInfo(records, shardId, options.streamArn) }),
  }
}

const emptyRecord: SourceRecord = { sequenceNumber: '', partitionKey: '', data: new Uint8Array(), arrivalMs: 0 }

interface StreamArn {
  readonly streamArn: string
  readonly region: string
  readonly invokeIdentityArn: string
}

function parseStreamArn({ streamArn, invokeIdentityArn }: KinesisSourceOptions): StreamArn {
  const [, region, account] = /^arn:[^:]+:kinesis:([^:]+):([^:]*):stream\/.+$/.exec(streamArn) ?? []
  if (region === undefined) {
    throw new ConfigurationError(
      `${streamArn} is not the ARN of a Kinesis stream: it reads arn:aws:kinesis:<region>:<account>:stream/<name>.`,
    )
  }
  return { streamArn, region, invokeIdentityArn: invokeIdentityArn ?? `arn:aws:iam::${account}:role/lambda-role` }
}

function kinesisRecord(record: SourceRecord, shardId: string, arn: StreamArn): KinesisEventRecord {
  const { data } = record
  return {
    kinesis: {
      kinesisSchemaVersion: '1.0',
      partitionKey: record.partitionKey,
      sequenceNumber: record.sequenceNumber,
      data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
      approximateArrivalTimestamp: record.arrivalMs / 1_000,
    },
    eventSource: 'aws:kinesis',
    eventVersion: '1.0',
    eventID: `${shardId}:${record.sequenceNumber}`,
    eventName: 'aws:kinesis:record',
    invokeIdentityArn: arn.invokeIdentityArn,
    awsRegion: arn.region,
    eventSourceARN: arn.streamArn,
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function filterText(record: SourceRecord): string | undefined {
  try {
    return decoder.decode(record.data)
  } catch {
    return undefined
  }
}

function batchInfo(records: readonly SourceRecord[], shardId: string, streamArn: string) {
  const [first, last] = [records.at(0) ?? emptyRecord, records.at(-1) ?? emptyRecord]
  return {
    shardId,
    startSequenceNumber: first.sequenceNumber,
    endSequenceNumber: last.sequenceNumber,
    approximateArrivalOfFirstRecord: new Date(first.arrivalMs).toISOString(),
    approximateArrivalOfLastRecord: new Date(last.arrivalMs).toISOString(),
    batchSize: records.length,
    streamArn,
  }
}

function byteLength(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}
