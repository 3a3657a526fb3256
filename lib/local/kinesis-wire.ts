/**
 * AWS JSON 1.1 as Kinesis speaks it: bytes are base64, times are seconds with a fraction, the operation is in a header.
 *
 * 1. A request reaches the model only with the fields that the model has, each of the right type; any other field is refused by
 *    name, because ignoring it (DryRun, say) would do what the caller did not ask for.
 * 2. Bodies appear in no error message.
 *
 * @see https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html
 */
import { KinesisError, type KinesisOperationName } from '../emulator/kinesis/index.ts'

type Field =
  | 'string'
  | 'integer'
  | 'bytes'
  | 'time'
  | 'strings'
  | 'tags'
  | { readonly structure: Fields }
  | { readonly listOf: Fields }
interface Fields {
  readonly [name: string]: { readonly type: Field; readonly required: boolean }
}

const required = (type: Field) => ({ type, required: true })
const optional = (type: Field) => ({ type, required: false })

const byNameOrArn = { StreamName: optional('string'), StreamARN: optional('string') }
const entry: Fields = {
  Data: required('bytes'),
  PartitionKey: required('string'),
  ExplicitHashKey: optional('string'),
}
const retention: Fields = { ...byNameOrArn, RetentionPeriodHours: required('integer') }

const requests: Record<KinesisOperationName, Fields> = {
  AddTagsToStream: { ...byNameOrArn, Tags: required('tags') },
  CreateStream: {
    StreamName: required('string'),
    ShardCount: optional('integer'),
    StreamModeDetails: optional({ structure: { StreamMode: required('string') } }),
    Tags: optional('tags'),
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
  PutRecords: { ...byNameOrArn, Records: required({ listOf: entry }) },
  RemoveTagsFromStream: { ...byNameOrArn, TagKeys: required('strings') },
  SplitShard: { ...byNameOrArn, ShardToSplit: required('string'), NewStartingHashKey: required('string') },
  UpdateMaxRecordSize: { StreamARN: required('string'), MaxRecordSizeInKiB: required('integer') },
  UpdateShardCount: { ...byNameOrArn, TargetShardCount: required('integer'), ScalingType: required('string') },
}

/** Reads a request's body into what the model takes. Throws SerializationException or ValidationException, naming the field. */
export function decodeRequest(operation: KinesisOperationName, body: Buffer): Record<string, unknown> {
  return decodeStructure(requests[operation], parseJson(body), '')
}

function parseJson(body: Buffer): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString())
  } catch {
    throw new KinesisError('SerializationException', `The body of ${body.length} bytes is not JSON.`)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function decodeStructure(fields: Fields, value: unknown, path: string): Record<string, unknown> {
  if (!isObject(value)) throw wrongType(path || 'the body', 'an object')
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(fields, name)) {
      throw new KinesisError(
        'ValidationException',
        `The embedded Kinesis does not know the field '${path}${name}' here. It takes: ${Object.keys(fields).join(', ')}.`,
      )
    }
  }
  const decoded: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const member = value[name]
    if (member !== undefined && member !== null) decoded[name] = decodeField(field.type, member, path + name)
    else if (field.required) {
      throw new KinesisError(
        'ValidationException',
        `1 validation error detected: Value null at '${path}${name}' failed to satisfy constraint: Member must not be null`,
      )
    }
  }
  return decoded
}

function decodeField(type: Field, value: unknown, path: string): unknown {
  switch (type) {
    case 'string':
      if (typeof value === 'string') return value
      throw wrongType(path, 'a string')
    case 'integer':
      if (Number.isSafeInteger(value)) return value
      throw wrongType(path, 'an integer')
    case 'time':
      if (typeof value === 'number' && Math.abs(value) <= 8.64e12) return new Date(Math.round(value * 1_000))
      throw wrongType(path, 'a time in seconds since 1970')
    case 'bytes':
      return decodeBase64(value, path)
    case 'strings':
      if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
      throw wrongType(path, 'a list of strings')
    case 'tags':
      if (isObject(value) && Object.values(value).every((item) => typeof item === 'string')) return value
      throw wrongType(path, 'a map of strings')
    default:
      if ('structure' in type) return decodeStructure(type.structure, value, `${path}.`)
      if (!Array.isArray(value)) throw wrongType(path, 'a list')
      return value.map((item, i) => decodeStructure(type.listOf, item, `${path}.${i + 1}.`))
  }
}

function decodeBase64(value: unknown, path: string): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64')
    const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
    if (value.length % 4 === 0 && bytes.length === (value.length / 4) * 3 - padding) return bytes
  }
  throw wrongType(path, 'base64')
}

function wrongType(path: string, expected: string): KinesisError {
  return new KinesisError('SerializationException', `'${path}' must be ${expected}.`)
}

/** Writes an answer, or the empty body of an operation that answers nothing. */
export function encodeAnswer(answer: unknown): string {
  return answer === undefined ? '' : JSON.stringify(toWire(answer))
}

function toWire(value: unknown): unknown {
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  if (value instanceof Date) return value.getTime() / 1_000
  if (Array.isArray(value)) return value.map(toWire)
  if (!isObject(value)) return value
  const members: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) members[name] = toWire(member)
  return members
}
