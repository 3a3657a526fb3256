/**
 * Frames as bytes. docs/frames.md describes the layout, and has these rules as F1 to F6; a test pins the bytes.
 *
 * 1. What is decoded equals what was encoded, whatever the texts, times and values are.
 * 2. Bytes that were changed, cut or lengthened are a TerminalError, never another record.
 * 3. The envelope (mark, checksum, version, length) is the same in every version. A version newer than ours is a
 *    RetryableError: the reader is being deployed. All versions so far are read. Version 2 may have tagged values or redriven records of
 *    a later generation, version 3 headers as well, and each is written only where there are such: all other frames are those of
 *    version 1, which every release reads.
 * 4. Claims and records ascend, and each record lies in a claim: a frame that breaks this is never sent.
 * 5. A frame fits in a Kinesis record of 1 MiB with its partition key.
 * 6. Records of a redrive frame ascend, and each has the identity of its redrive.
 */
import { crc32 } from 'node:zlib'
import { invariant, RetryableError, TerminalError } from '../../core/errors.ts'
import { ByteReader, type ShortTexts } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import type {
  ControlFrame,
  EncodedFrame,
  Frame,
  FrameRecord,
  IncomingRecord,
  OutgoingRecord,
  RedriveFrame,
  Upstream,
  UpstreamNews,
} from './frame.ts'
import { comparePositions, type Interval, justBefore, type Position } from './position.ts'
import { RecordRows, readRecords, type WrittenRows } from './record-rows.ts'

/** The version of a frame that has nothing of what came later, of one with a tagged value or a generation, and of one with headers. */
const plainVersion = 1
const laterVersion = 2
const headersVersion = 3
const newestReadableVersion = headersVersion
const oldestReadableVersion = plainVersion

/** Frames are cut near this many bytes unless told otherwise: 256 KiB. */
export const defaultFrameBytes = 262_144
/** The most that a frame may have: a Kinesis record of 1 MiB, less what its partition key takes. */
export const mostFrameBytes = 1_048_576 - 16

/** "MR", then CRC-32 of all that follows: version, length of the body, body. */
const magic = [0x4d, 0x52] as const
const checkedFrom = 6
const bodyFrom = 11

const noBytes: Uint8Array = new Uint8Array()

const kinds = ['frame', 'control', 'redrive', 'redrive-of-generation'] as const
const senders = ['announcer', 'stage'] as const
const states = ['open', 'idle', 'closed'] as const

/** A frame whose body is what `writeBody` writes and, behind it, `tail`. */
function seal(
  slot: number,
  writeBody: (writer: ByteWriter) => void,
  tail = noBytes,
  version = plainVersion,
): EncodedFrame {
  const writer = new ByteWriter()
  writeBody(writer)
  const body = writer.view()
  const byteLength = bodyFrom + body.length + tail.length
  // In memory of its own, which stays as it is while the writers go on.
  const bytes = Buffer.allocUnsafeSlow(byteLength)
  bytes.set(magic)
  bytes[checkedFrom] = version
  bytes.writeUInt32BE(byteLength - bodyFrom, checkedFrom + 1)
  bytes.set(body, bodyFrom)
  bytes.set(tail, bodyFrom + body.length)
  bytes.writeUInt32BE(crc32(bytes.subarray(checkedFrom)), magic.length)
  if (byteLength > mostFrameBytes) {
    throw new TerminalError(
      `a frame for slot ${slot} has ${byteLength} bytes: at most ${mostFrameBytes} fit in a record of the stream, so make the values smaller`,
      { code: 'oversize' },
    )
  }
  return { slot, bytes }
}

function unseal(bytes: Uint8Array, shortTexts?: ShortTexts): ByteReader {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer.length < bodyFrom || buffer[0] !== magic[0] || buffer[1] !== magic[1]) {
    throw new TerminalError(
      `a record of ${buffer.length} bytes is not a frame: only Millrace may write to the stream of a keyed stage`,
      { code: 'not-a-frame' },
    )
  }
  const reader = new ByteReader(buffer, bodyFrom, shortTexts)
  if (buffer.readUInt32BE(checkedFrom + 1) !== buffer.length - bodyFrom) reader.refuse('its length is another')
  if (buffer.readUInt32BE(magic.length) !== crc32(buffer.subarray(checkedFrom)))
    reader.refuse('its checksum is another')
  const version = buffer[checkedFrom] ?? 0
  if (version > newestReadableVersion) {
    throw new RetryableError(
      `a frame has format version ${version}, and this release of Millrace reads up to ${newestReadableVersion}: deploy the reading stage with the release of the writing one`,
      { code: 'frame-newer' },
    )
  }
  if (version < oldestReadableVersion) {
    throw new TerminalError(
      `a frame has format version ${version}, and this release of Millrace reads from ${oldestReadableVersion} on: read it with the release before`,
      { code: 'frame-older' },
    )
  }
  return reader
}

function writeUpstream(writer: ByteWriter, { name, partition }: Upstream): void {
  writer.text(name)
  writer.text(partition)
}

const readUpstream = (reader: ByteReader): Upstream => ({ name: reader.text(), partition: reader.text() })

function readOneOf<Name>(reader: ByteReader, names: readonly Name[]): Name {
  return names[reader.byte()] ?? reader.refuse('a choice is unknown')
}

/** Writes a position whose number is not below `base`. */
function writePosition(writer: ByteWriter, base: number, position: Position): void {
  writer.count(position.number - base)
  writer.place(position)
}

function readPosition(reader: ByteReader, base: number): Position {
  const number = base + reader.count()
  return reader.place(number)
}

/** Claims of one output alone are frequent after a takeover and have a form of their own. */
function writeClaims(writer: ByteWriter, claims: readonly Interval[]): void {
  writer.count(claims.length)
  let base = 0
  for (const { previous, last } of claims) {
    const alone = last.index >= 0 && comparePositions(previous, justBefore(last)) === 0
    writer.byte(alone ? 1 : 0)
    if (!alone) {
      writePosition(writer, base, previous)
      base = previous.number
    }
    writePosition(writer, base, last)
    base = last.number
  }
}

function readClaims(reader: ByteReader): Interval[] {
  const claims: Interval[] = []
  let base = 0
  for (let left = reader.size(); left > 0; left--) {
    const alone = reader.byte() === 1
    const first = readPosition(reader, base)
    const last = alone ? first : readPosition(reader, first.number)
    claims.push({ previous: alone ? justBefore(last) : first, last })
    base = last.number
  }
  return claims
}

/** All of a frame but its records. */
export type FrameHead = Omit<Frame, 'kind' | 'records'>

/** Makes a frame of rows. Throws a {@link TerminalError} `oversize`. */
export function sealFrame(head: FrameHead, rows: WrittenRows): EncodedFrame {
  const writeHead = (writer: ByteWriter) => {
    writer.byte(kinds.indexOf('frame'))
    writeUpstream(writer, head.upstream)
    writer.count(head.slot)
    writer.count(head.schemaVersion)
    writer.time(0, head.markMs)
    writeClaims(writer, head.claims)
    writer.count(rows.count)
  }
  return seal(head.slot, writeHead, rows.bytes, versionOf(rows))
}

function versionOf({ hasHeaders, hasTagged }: Pick<WrittenRows, 'hasHeaders' | 'hasTagged'>): number {
  if (hasHeaders) return headersVersion
  return hasTagged ? laterVersion : plainVersion
}

function checkAscending(records: readonly OutgoingRecord[]): void {
  let before: Position | undefined
  for (const { position } of records) {
    invariant(before === undefined || comparePositions(before, position) < 0, 'records of a frame are out of order')
    before = position
  }
}

/** Claims ascend and every record lies in one of them, later than the record before. */
function checkOrder({ claims, records }: Frame): void {
  for (const [i, { previous, last }] of claims.entries()) {
    const end = claims[i - 1]?.last
    invariant(comparePositions(previous, last) < 0, 'a frame claims an interval without positions')
    invariant(end === undefined || comparePositions(end, previous) <= 0, 'the claims of a frame overlap')
  }
  checkAscending(records)
  let claim = 0
  for (const { position } of records) {
    while (claim < claims.length && comparePositions((claims[claim] as Interval).last, position) < 0) claim++
    const covering = claims[claim]
    invariant(covering && comparePositions(covering.previous, position) < 0, 'a frame does not claim its own record')
  }
}

/**
 * Encodes a frame. Throws a {@link TerminalError} `oversize` above 1 MiB, and `not-utf8` for a text with half a
 * surrogate pair.
 */
export function encodeFrame(frame: Frame): EncodedFrame {
  checkOrder(frame)
  const rows = new RecordRows()
  for (const record of frame.records) rows.add(record)
  return sealFrame(frame, rows.written(frame.records.length))
}

/** Encodes a control frame. Throws as {@link encodeFrame} does. */
export function encodeControl({ from, slot, news }: ControlFrame): EncodedFrame {
  return seal(slot, (writer) => {
    writer.byte(kinds.indexOf('control'))
    writer.byte(senders.indexOf(from))
    writer.count(slot)
    writer.count(news.length)
    for (const { upstream, state, markMs, lastSent } of news) {
      writeUpstream(writer, upstream)
      writer.byte(states.indexOf(state))
      writer.time(0, markMs)
      writePositions(writer, lastSent)
    }
  })
}

interface OutgoingRedrive extends Omit<RedriveFrame, 'records'> {
  readonly records: readonly OutgoingRecord[]
}

/** Encodes dead letters of one slot to be sent again. Throws as {@link encodeFrame} does. */
export function encodeRedriveFrame({ slot, schemaVersion, generation = 1, records }: OutgoingRedrive): EncodedFrame {
  checkAscending(records)
  const rows = new RecordRows()
  for (const record of records) {
    invariant(record.redrive !== undefined, 'a record is redriven without an identity')
    rows.add(record)
  }
  const writeHead = (writer: ByteWriter) => {
    writer.byte(kinds.indexOf(generation === 1 ? 'redrive' : 'redrive-of-generation'))
    writer.count(slot)
    writer.count(schemaVersion)
    if (generation > 1) writer.count(generation)
    writer.count(records.length)
  }
  const { bytes, hasTagged, hasHeaders } = rows.written(records.length)
  return seal(slot, writeHead, bytes, versionOf({ hasTagged: hasTagged || generation > 1, hasHeaders }))
}

/** Positions by slot: the slots ascending, numbers as distances from the largest. */
export function writePositions(writer: ByteWriter, positions: ReadonlyMap<number, Position>): void {
  const slots = [...positions].sort(([a], [b]) => a - b)
  const top = slots.reduce((most, [, { number }]) => Math.max(most, number), 0)
  writer.count(slots.length)
  writer.count(top)
  let before = 0
  for (const [slot, position] of slots) {
    writer.count(slot - before)
    writer.count(top - position.number)
    writer.place(position)
    before = slot
  }
}

/** Reads what {@link writePositions} wrote. */
export function readPositions(reader: ByteReader): Map<number, Position> {
  const positions = new Map<number, Position>()
  let left = reader.size()
  const top = reader.count()
  let slot = 0
  for (; left > 0; left--) {
    slot += reader.count()
    const number = top - reader.count()
    if (number < 0) reader.refuse('a number is negative')
    positions.set(slot, reader.place(number))
  }
  return positions
}

/** Reads the records of a frame. */
type ReadRows<R> = (reader: ByteReader, count: number) => R[]

const rowsWithViews: ReadRows<FrameRecord> = (reader, count) => readRecords(reader, count, (of) => of.bytes())
const rowsWithTexts: ReadRows<IncomingRecord> = (reader, count) => readRecords(reader, count, (of) => of.textOrBytes())

function readFrame<R extends IncomingRecord>(reader: ByteReader, readRows: ReadRows<R>): Frame<R> {
  const head = {
    upstream: readUpstream(reader),
    slot: reader.count(),
    schemaVersion: reader.count(),
    markMs: reader.time(0),
    claims: readClaims(reader),
  }
  const records = readRows(reader, reader.size())
  reader.end()
  return { kind: 'frame', ...head, records }
}

function readControl(reader: ByteReader): ControlFrame {
  const from = readOneOf(reader, senders)
  const slot = reader.count()
  const news: UpstreamNews[] = []
  for (let left = reader.size(); left > 0; left--) {
    news.push({
      upstream: readUpstream(reader),
      state: readOneOf(reader, states),
      markMs: reader.time(0),
      lastSent: readPositions(reader),
    })
  }
  reader.end()
  return { kind: 'control', from, slot, news }
}

function readRedrive<R extends IncomingRecord>(
  reader: ByteReader,
  readRows: ReadRows<R>,
  hasGeneration: boolean,
): RedriveFrame<R> {
  const place = { slot: reader.count(), schemaVersion: reader.count() }
  const head = hasGeneration ? { ...place, generation: reader.count() } : place
  const records = readRows(reader, reader.size())
  reader.end()
  if (records.some(({ redrive }) => redrive === undefined)) reader.refuse('a redriven record has no identity')
  return { kind: 'redrive', ...head, records }
}

/**
 * Decodes a frame of any kind. Values of records are views of `bytes`.
 *
 * Throws a {@link TerminalError} `not-a-frame`, `frame-corrupt` or `frame-older`, and a {@link RetryableError}
 * `frame-newer` where a newer release wrote it.
 *
 * @example
 * const frame = decodeFrame(payload)
 * if (frame.kind === 'control') apply(frame.news)
 */
export function decodeFrame(bytes: Uint8Array): Frame | ControlFrame | RedriveFrame {
  return readAny(unseal(bytes), rowsWithViews)
}

/**
 * Decodes a frame for the stage that it was sent to: as {@link decodeFrame}, but the values of records are texts. `shortTexts` are
 * those of the stage.
 */
export function decodeIncoming(
  bytes: Uint8Array,
  shortTexts?: ShortTexts,
): Frame<IncomingRecord> | ControlFrame | RedriveFrame<IncomingRecord> {
  return readAny(unseal(bytes, shortTexts), rowsWithTexts)
}

function readAny<R extends IncomingRecord>(
  reader: ByteReader,
  readRows: ReadRows<R>,
): Frame<R> | ControlFrame | RedriveFrame<R> {
  switch (readOneOf(reader, kinds)) {
    case 'frame':
      return readFrame(reader, readRows)
    case 'control':
      return readControl(reader)
    case 'redrive':
      return readRedrive(reader, readRows, false)
    case 'redrive-of-generation':
      return readRedrive(reader, readRows, true)
  }
}
