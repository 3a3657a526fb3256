/** Operations on records: putting them, and reading them with iterators. */

import type { RoutedRecord } from './effects.ts'
import { KinesisError } from './errors.ts'
import { HASH_KEY_DIGITS, hashKeyOf, parseHashKey } from './hash-key.ts'
import { parseSequenceNumber, SEQUENCE_DIGITS } from './sequence-number.ts'
import type {
  GetRecordsInput,
  GetRecordsOutput,
  GetShardIteratorInput,
  PutRecordInput,
  PutRecordOutput,
  PutRecordsEntry,
  PutRecordsInput,
  PutRecordsOutput,
  PutRecordsResult,
} from './shapes.ts'
import { billedBytes } from './shard-log.ts'
import { checkSameStream, hashKeyRange } from './shard-operations.ts'
import { openShardFor, type Shard, type Stream, sequenceOf, shardId, trimHorizonMs } from './stream.ts'
import { decodeIterator, encodeIterator } from './tokens.ts'
import {
  checkDecimal,
  checkLength,
  checkRange,
  findShard,
  findStream,
  TOKEN_LIFE_MS,
  validationError,
  type World,
} from './world.ts'

const LARGEST_REQUEST_BYTES = 10 * 1_048_576
const LARGEST_ANSWER_BYTES = 10 * 1_048_576
const LARGEST_READ = 10_000
const LARGEST_PUT = 500

export function putRecord(world: World, input: PutRecordInput): PutRecordOutput {
  const stream = findStream(world, input)
  checkEntry(stream, input, 'record')
  if (input.SequenceNumberForOrdering !== undefined) checkOrdering(world, stream, input.SequenceNumberForOrdering)
  const { shard, limited } = routeWithinLimits(world, stream, input, world.nowMs())
  if (limited) throw new KinesisError('ProvisionedThroughputExceededException', rateExceeded(world, stream, shard))
  const [result] = commitRecords(world, stream, [routed(shard, input)])
  return { ShardId: shard.id, SequenceNumber: result?.SequenceNumber ?? '', EncryptionType: 'NONE' }
}

export function putRecords(world: World, input: PutRecordsInput): PutRecordsOutput {
  checkLength('records', input.Records.length, 1, LARGEST_PUT)
  const stream = findStream(world, input)
  let bytes = 0
  input.Records.forEach((entry, i) => {
    checkEntry(stream, entry, `records.${i + 1}.member`)
    bytes += billedBytes(entry.PartitionKey, entry.Data)
  })
  if (bytes > LARGEST_REQUEST_BYTES) {
    throw new KinesisError(
      'InvalidArgumentException',
      `The records of one PutRecords, keys included, have ${bytes} bytes: send at most ${LARGEST_REQUEST_BYTES}.`,
    )
  }
  const nowMs = world.nowMs()
  const decisions = input.Records.map((entry) => ({ entry, ...routeWithinLimits(world, stream, entry, nowMs) }))
  const accepted = decisions.filter(({ limited }) => !limited)
  const placed = commitRecords(
    world,
    stream,
    accepted.map(({ shard, entry }) => routed(shard, entry)),
  ).values()
  return {
    FailedRecordCount: decisions.length - accepted.length,
    Records: decisions.map(({ shard, limited }): PutRecordsResult => {
      if (!limited) return placed.next().value ?? {}
      return {
        ErrorCode: 'ProvisionedThroughputExceededException',
        ErrorMessage: rateExceeded(world, stream, shard),
      }
    }),
    EncryptionType: 'NONE',
  }
}

function routed(shard: Shard, entry: PutRecordsEntry): RoutedRecord {
  return { shard: shard.index, partitionKey: entry.PartitionKey, data: entry.Data }
}

function commitRecords(world: World, stream: Stream, records: readonly RoutedRecord[]): PutRecordsResult[] {
  if (records.length === 0) return []
  return world
    .commit({ type: 'records-put', stream: stream.name, atMs: world.nowMs(), records })
    .map(({ shard, number, arrivalMs }) => ({
      ShardId: shard.id,
      SequenceNumber: sequenceOf(shard, number, arrivalMs),
    }))
}

function checkEntry(stream: Stream, entry: PutRecordsEntry, field: string): void {
  checkLength(`${field}.partitionKey`, entry.PartitionKey.length, 1, 256)
  const bytes = billedBytes(entry.PartitionKey, entry.Data)
  if (bytes > stream.maxRecordKiB * 1_024) {
    throw new KinesisError(
      'InvalidArgumentException',
      `The record at '${field}' has ${bytes} bytes of data and partition key: stream ${stream.name} takes at most ${stream.maxRecordKiB} KiB (MaxRecordSizeInKiB).`,
    )
  }
  checkDecimal('explicitHashKey', entry.ExplicitHashKey, HASH_KEY_DIGITS)
  if (entry.ExplicitHashKey !== undefined && parseHashKey(entry.ExplicitHashKey) === undefined) {
    throw new KinesisError(
      'InvalidArgumentException',
      `Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was ${entry.ExplicitHashKey}`,
    )
  }
}

/** The shard of a record, and whether the shard's throughput is used up; if not, this record has used some of it. */
function routeWithinLimits(world: World, stream: Stream, entry: PutRecordsEntry, nowMs: number) {
  const explicit = entry.ExplicitHashKey === undefined ? undefined : parseHashKey(entry.ExplicitHashKey)
  const shard = openShardFor(stream, explicit ?? hashKeyOf(entry.PartitionKey))
  if (!world.enforceLimits) return { shard, limited: false }
  const { writtenRecords, writtenBytes } = shard.limits
  const bytes = billedBytes(entry.PartitionKey, entry.Data)
  const limited = !writtenRecords.allows(1, nowMs) || !writtenBytes.allows(bytes, nowMs)
  if (!limited) {
    writtenRecords.spend(1)
    writtenBytes.spend(bytes)
  }
  return { shard, limited }
}

function rateExceeded(world: World, stream: Stream, shard: Shard): string {
  return `Rate exceeded for shard ${shard.id} in stream ${stream.name} under account ${world.accountId}.`
}

/**
 * Every later number is greater than every earlier one of its shard and of the shard's ancestors, so an ordering request asks
 * for nothing more; only a number that this stream never gave is refused.
 */
function checkOrdering(world: World, stream: Stream, sequence: string): void {
  checkDecimal('sequenceNumberForOrdering', sequence, SEQUENCE_DIGITS)
  const parts = parseSequenceNumber(sequence)
  const shard = parts && stream.shards[parts.shardIndex]
  if (shard === undefined || parts === undefined || !gave(shard, parts)) {
    throw new KinesisError(
      'InvalidArgumentException',
      `ExclusiveMinimumSequenceNumber ${sequence} used in PutRecord on stream ${stream.name} under account ${world.accountId} is invalid because it did not come from this stream.`,
    )
  }
}

/** Whether a shard gave a sequence number, the ends of its range included. */
function gave(shard: Shard, parts: { epoch: number; number: number }): boolean {
  const end = shard.closedAtMs === undefined ? shard.log.nextNumber : shard.log.nextNumber + 1
  return parts.epoch === shard.epoch && parts.number < end
}

export function getShardIterator(world: World, input: GetShardIteratorInput): { ShardIterator: string } {
  const stream = findStream(world, input)
  const shard = findShard(world, stream, input.ShardId)
  shard.log.trimBefore(trimHorizonMs(stream, world.nowMs()))
  return { ShardIterator: iteratorAt(world, stream, shard, startingNumber(world, stream, shard, input)) }
}

function iteratorAt(world: World, stream: Stream, shard: Shard, number: number): string {
  return encodeIterator({
    stream: stream.name,
    streamCreatedAtMs: stream.createdAtMs,
    shard: shard.index,
    number,
    issuedAtMs: world.nowMs(),
  })
}

function startingNumber(world: World, stream: Stream, shard: Shard, input: GetShardIteratorInput): number {
  const type = input.ShardIteratorType
  switch (type) {
    case 'TRIM_HORIZON':
      return shard.log.firstNumber
    case 'LATEST':
      return shard.log.nextNumber
    case 'AT_TIMESTAMP':
      return shard.log.firstNumberAtOrAfter(startingTimeMs(world, input))
    case 'AT_SEQUENCE_NUMBER':
      return startingSequence(world, stream, shard, input)
    case 'AFTER_SEQUENCE_NUMBER':
      return startingSequence(world, stream, shard, input) + 1
    default:
      throw validationError(
        'shardIteratorType',
        type satisfies never,
        'Member must satisfy enum value set of ShardIteratorType',
      )
  }
}

function startingTimeMs(world: World, input: GetShardIteratorInput): number {
  const timeMs = input.Timestamp?.getTime()
  if (timeMs === undefined || timeMs > world.nowMs()) {
    throw new KinesisError(
      'InvalidArgumentException',
      timeMs === undefined
        ? 'AT_TIMESTAMP needs a Timestamp.'
        : `The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. timestampInMillis: ${timeMs}, currentTimestampInMillis: ${world.nowMs()}`,
    )
  }
  return timeMs
}

function startingSequence(world: World, stream: Stream, shard: Shard, input: GetShardIteratorInput): number {
  const sequence = input.StartingSequenceNumber
  if (sequence === undefined) {
    throw new KinesisError('InvalidArgumentException', `${input.ShardIteratorType} needs a StartingSequenceNumber.`)
  }
  checkDecimal('startingSequenceNumber', sequence, SEQUENCE_DIGITS)
  const parts = parseSequenceNumber(sequence)
  if (parts !== undefined && parts.shardIndex !== shard.index && parts.shardIndex < stream.shards.length) {
    throw new KinesisError(
      'InvalidArgumentException',
      `Invalid StartingSequenceNumber. It encodes ${shardId(parts.shardIndex)}, while it was used in a call to a shard with ${shard.id}`,
    )
  }
  if (parts === undefined || !gave(shard, parts)) {
    throw new KinesisError(
      'InvalidArgumentException',
      `StartingSequenceNumber ${sequence} used in GetShardIterator on shard ${shard.id} in stream ${stream.name} under account ${world.accountId} is invalid because it did not come from this stream.`,
    )
  }
  return parts.number
}

export function getRecords(world: World, input: GetRecordsInput): GetRecordsOutput {
  if (input.Limit !== undefined && input.Limit > LARGEST_READ) {
    throw new KinesisError(
      'InvalidArgumentException',
      `Limit ${input.Limit} is too large: GetRecords returns at most ${LARGEST_READ} records.`,
    )
  }
  checkRange('limit', input.Limit, 1, LARGEST_READ)
  const { stream, shard, number } = resolveIterator(world, input)
  const nowMs = world.nowMs()
  const { readCalls, readBytes } = shard.limits
  if (world.enforceLimits && !(readCalls.allows(1, nowMs) && readBytes.allows(1, nowMs))) {
    throw new KinesisError('ProvisionedThroughputExceededException', rateExceeded(world, stream, shard))
  }
  shard.log.trimBefore(trimHorizonMs(stream, nowMs))
  const records = shard.log.read(number, input.Limit ?? LARGEST_READ, LARGEST_ANSWER_BYTES)
  if (world.enforceLimits) {
    readCalls.spend(1)
    readBytes.spend(records.reduce((sum, { partitionKey, data }) => sum + billedBytes(partitionKey, data), 0))
  }
  const last = records.at(-1)
  const next = Math.max((last?.number ?? 0) + 1, number, shard.log.firstNumber)
  const more = next < shard.log.nextNumber
  const ended = !more && shard.closedAtMs !== undefined
  return {
    Records: records.map((record) => ({
      SequenceNumber: sequenceOf(shard, record.number, record.arrivalMs),
      ApproximateArrivalTimestamp: new Date(record.arrivalMs),
      Data: record.data,
      PartitionKey: record.partitionKey,
      EncryptionType: 'NONE',
    })),
    NextShardIterator: ended ? null : iteratorAt(world, stream, shard, next),
    // Zero says that nothing is left to read, so records of this very millisecond count as one behind.
    MillisBehindLatest: more && last !== undefined ? Math.max(1, nowMs - last.arrivalMs) : 0,
    ...(ended ? { ChildShards: childShards(stream, shard) } : {}),
  }
}

function resolveIterator(world: World, input: GetRecordsInput) {
  const token = decodeIterator(input.ShardIterator)
  const ageMs = world.nowMs() - token.issuedAtMs
  if (ageMs > TOKEN_LIFE_MS) {
    throw new KinesisError(
      'ExpiredIteratorException',
      `Iterator expired. The iterator was created ${ageMs} ms ago, which is more than the ${TOKEN_LIFE_MS} ms that one lives: take a new one with GetShardIterator.`,
    )
  }
  const stream = findStream(world, { StreamName: token.stream, StreamARN: input.StreamARN })
  checkSameStream(world, stream, token.streamCreatedAtMs)
  const shard = stream.shards[token.shard]
  if (shard === undefined) throw new KinesisError('InvalidArgumentException', 'Invalid ShardIterator: no such shard.')
  return { stream, shard, number: token.number }
}

function childShards(stream: Stream, shard: Shard) {
  return shard.children.flatMap((index) => {
    const child = stream.shards[index]
    if (child === undefined) return []
    return [{ ShardId: child.id, ParentShards: child.parents.map(shardId), HashKeyRange: hashKeyRange(child) }]
  })
}
