/** DynamoDB Streams: listing, describing and reading the changes of tables. */
import { hash } from 'node:crypto'
import { constraintViolated, DynamoError, invalid } from './errors.ts'
import type {
  DescribeStreamInput,
  GetRecordsInput,
  GetRecordsOutput,
  GetShardIteratorInput,
  ListStreamsInput,
  ListStreamsOutput,
  StreamDescription,
  StreamRecord,
} from './shapes.ts'
import { type Change, numberOf, sequenceOf, type TableStream } from './stream.ts'
import { decodeIterator, encodeIterator } from './tokens.ts'
import { compareText, copyItem, itemBytes } from './value.ts'
import { checkChoice, checkRange, type World } from './world.ts'

const MOST_STREAMS_LISTED = 100
const MOST_RECORDS = 1_000
const LARGEST_ANSWER_BYTES = 1_048_576
const ITERATOR_LIFE_MS = 900_000

function living(world: World): TableStream[] {
  const nowMs = world.nowMs()
  return [...world.streams.values()].filter((stream) => !stream.isGone(nowMs))
}

function findStream(world: World, arn: string): TableStream {
  const stream = world.streams.get(arn)
  if (stream !== undefined && !stream.isGone(world.nowMs())) return stream
  throw new DynamoError('ResourceNotFoundException', `Requested resource not found: Stream: ${arn} not found`)
}

function checkShard(stream: TableStream, shardId: string): void {
  if (shardId !== stream.shardId) {
    throw new DynamoError('ResourceNotFoundException', `Requested resource not found: Shard: ${shardId} not found`)
  }
}

export function listStreams(world: World, input: ListStreamsInput): ListStreamsOutput {
  checkRange('limit', input.Limit, 1, MOST_STREAMS_LISTED)
  const { TableName, ExclusiveStartStreamArn: after } = input
  const all = living(world)
    .filter(({ table, arn }) => (TableName ?? table) === table && (after === undefined || compareText(arn, after) > 0))
    .sort((a, b) => compareText(a.arn, b.arn))
  const listed = all.slice(0, input.Limit ?? MOST_STREAMS_LISTED)
  const last = listed.at(-1)
  return {
    Streams: listed.map(({ arn, label, table }) => ({ StreamArn: arn, StreamLabel: label, TableName: table })),
    ...(listed.length < all.length && last !== undefined ? { LastEvaluatedStreamArn: last.arn } : {}),
  }
}

export function describeStream(world: World, input: DescribeStreamInput): { StreamDescription: StreamDescription } {
  checkRange('limit', input.Limit, 1, MOST_STREAMS_LISTED)
  const stream = findStream(world, input.StreamArn)
  if (input.ExclusiveStartShardId !== undefined) checkShard(stream, input.ExclusiveStartShardId)
  const closed = stream.closedAtMs !== undefined
  const shard = {
    ShardId: stream.shardId,
    SequenceNumberRange: {
      StartingSequenceNumber: sequenceOf(1),
      ...(closed ? { EndingSequenceNumber: sequenceOf(Math.max(1, stream.nextNumber - 1)) } : {}),
    },
  }
  return {
    StreamDescription: {
      StreamArn: stream.arn,
      StreamLabel: stream.label,
      TableName: stream.table,
      StreamStatus: closed ? 'DISABLED' : 'ENABLED',
      StreamViewType: stream.view,
      CreationRequestDateTime: new Date(stream.createdAtMs),
      KeySchema: stream.keySchema,
      Shards: input.ExclusiveStartShardId === undefined ? [shard] : [],
    },
  }
}

const iteratorTypes = ['AFTER_SEQUENCE_NUMBER', 'LATEST', 'AT_SEQUENCE_NUMBER', 'TRIM_HORIZON'] as const

export function getShardIterator(world: World, input: GetShardIteratorInput): { ShardIterator: string } {
  const stream = findStream(world, input.StreamArn)
  checkShard(stream, input.ShardId)
  checkChoice('shardIteratorType', input.ShardIteratorType, iteratorTypes)
  stream.trim(world.nowMs())
  const number = startNumber(stream, input)
  return { ShardIterator: encodeIterator({ streamArn: stream.arn, number, issuedAtMs: world.nowMs() }) }
}

function startNumber(stream: TableStream, { ShardIteratorType: type, SequenceNumber }: GetShardIteratorInput): number {
  if (type === 'TRIM_HORIZON') return stream.firstNumber
  if (type === 'LATEST') return stream.nextNumber
  if (SequenceNumber === undefined) throw invalid(`SequenceNumber is required for the iterator type ${type}`)
  const named = numberOf(SequenceNumber)
  if (named === undefined) {
    throw constraintViolated('sequenceNumber', SequenceNumber, 'Member must be a sequence number of this stream')
  }
  if (named >= stream.nextNumber) {
    throw invalid(`Invalid SequenceNumber: ${SequenceNumber} is beyond the last record of shard ${stream.shardId}`)
  }
  const number = type === 'AT_SEQUENCE_NUMBER' ? named : named + 1
  checkNotTrimmed(stream, number)
  return number
}

function checkNotTrimmed(stream: TableStream, number: number): void {
  if (number >= stream.firstNumber) return
  throw new DynamoError(
    'TrimmedDataAccessException',
    `The record ${sequenceOf(number)} of shard ${stream.shardId} is older than the 24 hours that a stream keeps`,
  )
}

export function getRecords(world: World, { ShardIterator, Limit }: GetRecordsInput): GetRecordsOutput {
  checkRange('limit', Limit, 1, MOST_RECORDS)
  const token = decodeIterator(ShardIterator)
  const nowMs = world.nowMs()
  if (token.issuedAtMs < nowMs - ITERATOR_LIFE_MS) {
    throw new DynamoError('ExpiredIteratorException', 'The ShardIterator is older than 15 minutes: get another one.')
  }
  const stream = findStream(world, token.streamArn)
  stream.trim(nowMs)
  checkNotTrimmed(stream, token.number)
  const Records: StreamRecord[] = []
  let [number, bytes] = [token.number, 0]
  for (; Records.length < (Limit ?? MOST_RECORDS); number += 1) {
    const change = stream.at(number)
    if (change === undefined) break
    const record = recordOf(world, stream, number, change)
    bytes += record.dynamodb.SizeBytes
    if (bytes > LARGEST_ANSWER_BYTES && Records.length > 0) break
    Records.push(record)
  }
  const ended = stream.closedAtMs !== undefined && number >= stream.nextNumber
  if (ended) return { Records }
  return { Records, NextShardIterator: encodeIterator({ streamArn: stream.arn, number, issuedAtMs: nowMs }) }
}

function recordOf(world: World, stream: TableStream, number: number, change: Change): StreamRecord {
  const { keys, before, after, atMs, expired } = change
  const showsNew = stream.view === 'NEW_IMAGE' || stream.view === 'NEW_AND_OLD_IMAGES'
  const showsOld = stream.view === 'OLD_IMAGE' || stream.view === 'NEW_AND_OLD_IMAGES'
  const images = {
    ...(showsNew && after !== undefined ? { NewImage: copyItem(after) } : {}),
    ...(showsOld && before !== undefined ? { OldImage: copyItem(before) } : {}),
  }
  return {
    eventID: hash('md5', `${stream.arn} ${number}`, 'hex'),
    eventName: before === undefined ? 'INSERT' : after === undefined ? 'REMOVE' : 'MODIFY',
    eventVersion: '1.1',
    eventSource: 'aws:dynamodb',
    awsRegion: world.region,
    dynamodb: {
      ApproximateCreationDateTime: new Date(Math.floor(atMs / 1_000) * 1_000),
      Keys: copyItem(keys),
      ...images,
      SequenceNumber: sequenceOf(number),
      SizeBytes: [keys, ...Object.values(images)].reduce((sum, item) => sum + itemBytes(item), 0),
      StreamViewType: stream.view,
    },
    ...(expired ? { userIdentity: { Type: 'Service' as const, PrincipalId: 'dynamodb.amazonaws.com' as const } } : {}),
  }
}
