/**
 * Takes apart what the Kinesis Producer Library packs: many user records in one Kinesis record.
 *
 * An aggregate is `F3 89 9A C2`, a protobuf message, and the MD5 of that message:
 *
 *     message AggregatedRecord { repeated string partition_key_table = 1; repeated string explicit_hash_key_table = 2;
 *                                repeated Record records = 3; }
 *     message Record { required uint64 partition_key_index = 1; optional uint64 explicit_hash_key_index = 2;
 *                      required bytes data = 3; repeated Tag tags = 4; }
 *
 * 1. An aggregate is taken apart whole or not at all: whatever is cut, altered or points outside its tables is an error.
 * 2. Payloads are views of the aggregate's bytes; nothing is copied.
 *
 * @see https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { MillraceError } from '../../core/errors.ts'

/** One user record of an aggregate. */
export interface AggregatedRecord {
  readonly partitionKey: string
  /** In decimal, where the producer chose the shard itself. */
  readonly explicitHashKey: string | undefined
  readonly data: Buffer
}

const magic = Buffer.from([0xf3, 0x89, 0x9a, 0xc2])
const checksumBytes = 16

/** How the base64 text of every aggregate begins: a test without decoding, which lets a few others through. */
const magicInBase64 = '84ma'

/** False for nearly every record that is no aggregate, without decoding it. */
export const mayBeAggregate = (base64: string): boolean => base64.startsWith(magicInBase64)

/** True where the bytes begin as only an aggregate does. */
export const isAggregate = (bytes: Buffer): boolean =>
  bytes.length >= magic.length && magic.equals(bytes.subarray(0, 4))

function corrupt(what: string): never {
  throw new MillraceError('aggregate-corrupt', `a KPL aggregate cannot be taken apart: ${what}`)
}

/** Reads a base-128 varint; gives its value and the offset behind it. Values beyond 2^53 occur in no sane aggregate. */
function varint(bytes: Buffer, start: number, end: number): [value: number, next: number] {
  let value = 0
  let scale = 1
  for (let at = start; at < end && at < start + 8; at++) {
    const byte = bytes[at] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return [value, at + 1]
    scale *= 128
  }
  return corrupt(`the number at byte ${start} does not end`)
}

type Field = (number: number, value: number | Buffer) => void

/** Calls `field` for each varint and each length-delimited field of the message between two offsets, and skips the rest. */
function readMessage(bytes: Buffer, field: Field): void {
  let at = 0
  while (at < bytes.length) {
    const [tag, afterTag] = varint(bytes, at, bytes.length)
    const wireType = tag & 7
    const number = Math.floor(tag / 8)
    if (wireType === 0 || wireType === 2) {
      const [value, next] = varint(bytes, afterTag, bytes.length)
      at = wireType === 2 ? next + value : next
      if (at > bytes.length) corrupt(`field ${number} at byte ${afterTag} is longer than what is left`)
      field(number, wireType === 2 ? bytes.subarray(next, at) : value)
    } else if (wireType === 1 || wireType === 5) {
      at = afterTag + (wireType === 1 ? 8 : 4)
      if (at > bytes.length) corrupt(`field ${number} at byte ${afterTag} is longer than what is left`)
    } else {
      corrupt(`field ${number} at byte ${afterTag} has the unknown wire type ${wireType}`)
    }
  }
}

function tableEntry(bytes: Buffer | number): string {
  if (typeof bytes === 'number' || !isUtf8(bytes)) return corrupt('an entry of a key table is not UTF-8')
  return bytes.toString('utf8')
}

function readRecord(message: Buffer, keys: readonly string[], hashKeys: readonly string[]): AggregatedRecord {
  let keyIndex = -1
  let hashKeyIndex: number | undefined
  let data: Buffer | undefined
  readMessage(message, (number, value) => {
    if (typeof value === 'number') {
      if (number === 1) keyIndex = value
      else if (number === 2) hashKeyIndex = value
    } else if (number === 3) data = value
  })
  const partitionKey = keys[keyIndex] ?? corrupt(`partition key ${keyIndex} of ${keys.length}`)
  const explicitHashKey =
    hashKeyIndex === undefined
      ? undefined
      : (hashKeys[hashKeyIndex] ?? corrupt(`explicit hash key ${hashKeyIndex} of ${hashKeys.length}`))
  return { partitionKey, explicitHashKey, data: data ?? corrupt('a record has no data') }
}

/**
 * The user records of an aggregate, in the order in which they were put; none for an empty one.
 *
 * Throws a {@link MillraceError} with the code `aggregate-corrupt` where it is cut or its checksum is wrong.
 *
 * @example
 * for (const { partitionKey, data } of deaggregate(bytes)) console.log(partitionKey, data.length)
 */
export function deaggregate(bytes: Buffer): AggregatedRecord[] {
  const end = bytes.length - checksumBytes
  if (!isAggregate(bytes) || end < magic.length) corrupt(`${bytes.length} bytes are too short`)
  const message = bytes.subarray(magic.length, end)
  if (!createHash('md5').update(message).digest().equals(bytes.subarray(end))) corrupt('its checksum is wrong')

  const keys: string[] = []
  const hashKeys: string[] = []
  const records: Buffer[] = []
  readMessage(message, (number, value) => {
    if (number === 1) keys.push(tableEntry(value))
    else if (number === 2) hashKeys.push(tableEntry(value))
    else if (number === 3) records.push(typeof value === 'number' ? corrupt('a record is a number') : value)
  })
  return records.map((record) => readRecord(record, keys, hashKeys))
}
