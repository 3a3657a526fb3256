/**
 * The records of a frame as rows. Each row leaves out what it shares with the one before, so neighbours of one source
 * cost some forty bytes beside key and value.
 */
import type { RecordHeader } from '../../core/record.ts'
import { isTagged } from '../../core/tagged-json.ts'
import type { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import type { FrameRecord, OutgoingRecord } from './frame.ts'
import { startOf } from './position.ts'

/** What the times of the next row are steps from: the last ones that were whole. */
class Bases {
  ownMarkMs = 0
  eventTimeMs = 0
  arrivalTimeMs = 0

  move({ ownMarkMs, eventTimeMs, origin: { arrivalTimeMs } }: OutgoingRecord): void {
    if (Number.isSafeInteger(ownMarkMs)) this.ownMarkMs = ownMarkMs
    if (Number.isSafeInteger(eventTimeMs)) this.eventTimeMs = eventTimeMs
    if (Number.isSafeInteger(arrivalTimeMs)) this.arrivalTimeMs = arrivalTimeMs
  }
}

/** What the first row of a frame is written against. */
const noRecord: OutgoingRecord = {
  position: startOf(0),
  side: '',
  key: '',
  ownMarkMs: 0,
  eventTimeMs: 0,
  value: '',
  origin: { source: '', partition: '', position: '', subPosition: 0, arrivalTimeMs: 0 },
  redrive: undefined,
  headers: undefined,
}

/** What a row says of its record in one byte. */
const flags = { redrive: 1, headers: 2 } as const

/** Rows that are written already. */
export interface WrittenRows {
  readonly count: number
  /** A view that the next row may change. */
  readonly bytes: Uint8Array
  /** Whether the value of any is tagged. */
  readonly hasTagged: boolean
  /** Whether any has headers. */
  readonly hasHeaders: boolean
}

/** Writes records one after the other. */
export class RecordRows {
  readonly #writer = new ByteWriter()
  #before: OutgoingRecord = noRecord
  #bases = new Bases()
  /** Where the first row begins whose value is tagged. */
  #taggedFrom = Number.POSITIVE_INFINITY
  /** Where the first row begins that has headers. */
  #headersFrom = Number.POSITIVE_INFINITY

  get byteLength(): number {
    return this.#writer.length
  }

  /** A view that the next `add` may change. */
  get bytes(): Uint8Array {
    return this.#writer.view()
  }

  /** The first `count` rows, which make up as many bytes. */
  written(count: number, byteLength = this.#writer.length): WrittenRows {
    return {
      count,
      bytes: this.bytes.subarray(0, byteLength),
      hasTagged: this.#taggedFrom < byteLength,
      hasHeaders: this.#headersFrom < byteLength,
    }
  }

  /** Records come in the order of their numbers. */
  add(record: OutgoingRecord): void {
    const writer = this.#writer
    const before = this.#before
    const bases = this.#bases
    const { position, origin, redrive, headers, value } = record
    if (headers !== undefined && this.#headersFrom > writer.length) this.#headersFrom = writer.length
    if (isTagged(value) && this.#taggedFrom > writer.length) this.#taggedFrom = writer.length
    writer.count(position.number - before.position.number)
    writer.place(position)
    writer.textAfter(before.side, record.side)
    writer.text(record.key)
    writer.time(bases.ownMarkMs, record.ownMarkMs)
    writer.time(bases.eventTimeMs, record.eventTimeMs)
    writer.textAfter(before.origin.source, origin.source)
    writer.textAfter(before.origin.partition, origin.partition)
    writer.textAfter(before.origin.position, origin.position)
    writer.count(origin.subPosition)
    writer.time(bases.arrivalTimeMs, origin.arrivalTimeMs)
    writer.byte((redrive === undefined ? 0 : flags.redrive) + (headers === undefined ? 0 : flags.headers))
    if (redrive !== undefined) writer.text(redrive)
    if (headers !== undefined) writeHeaders(writer, headers)
    if (typeof value === 'string') writer.json(value)
    else writer.bytes(value)
    this.#before = record
    bases.move(record)
  }

  /** Forgets all rows; the next record is the first of another frame. */
  restart(): void {
    this.#writer.truncate(0)
    this.#before = noRecord
    this.#bases = new Bases()
    this.#taggedFrom = Number.POSITIVE_INFINITY
    this.#headersFrom = Number.POSITIVE_INFINITY
  }
}

function writeHeaders(writer: ByteWriter, headers: readonly RecordHeader[]): void {
  writer.count(headers.length)
  for (const { name, value } of headers) {
    writer.text(name)
    writer.bytes(value)
  }
}

function readHeaders(reader: ByteReader): readonly RecordHeader[] {
  const headers: RecordHeader[] = []
  for (let left = reader.size(); left > 0; left--) headers.push({ name: reader.text(), value: reader.bytes() })
  return headers
}

function readFlags(reader: ByteReader): number {
  const byte = reader.byte()
  return byte <= flags.redrive + flags.headers ? byte : reader.refuse('a row says what is unknown')
}

/** Reads `count` records. `readValue` reads what the row of each ends with. */
export function readRecords<Value extends Uint8Array | string>(
  reader: ByteReader,
  count: number,
  readValue: (reader: ByteReader) => Value,
): (Omit<FrameRecord, 'value'> & { readonly value: Value })[] {
  const records = new Array<Omit<FrameRecord, 'value'> & { readonly value: Value }>(count)
  const bases = new Bases()
  let before = noRecord
  for (let i = 0; i < count; i++) {
    const number = before.position.number + reader.count()
    if (!Number.isSafeInteger(number)) reader.refuse('a number is too large')
    const position = reader.place(number)
    const side = reader.textAfter(before.side)
    const key = reader.text()
    const ownMarkMs = reader.time(bases.ownMarkMs)
    const eventTimeMs = reader.time(bases.eventTimeMs)
    const origin = {
      source: reader.textAfter(before.origin.source),
      partition: reader.textAfter(before.origin.partition),
      position: reader.textAfter(before.origin.position),
      subPosition: reader.count(),
      arrivalTimeMs: reader.time(bases.arrivalTimeMs),
    }
    const has = readFlags(reader)
    const record = {
      position,
      side,
      key,
      ownMarkMs,
      eventTimeMs,
      origin,
      redrive: (has & flags.redrive) === 0 ? undefined : reader.text(),
      headers: (has & flags.headers) === 0 ? undefined : readHeaders(reader),
      value: readValue(reader),
    }
    records[i] = record
    before = record
    bases.move(record)
  }
  return records
}

/** More than a row's numbers and lengths ever take. */
const mostBesideTexts = 160

/** A bound from above for the bytes of a record's row. */
export function mostRowBytes({ side, key, origin, redrive = '', headers, value }: OutgoingRecord): number {
  const { source, partition, position } = origin
  const quick = (side.length + key.length + source.length + partition.length + position.length + redrive.length) * 3
  const ofHeaders = headers === undefined ? 0 : mostHeaderBytes(headers)
  return mostValueBytes(value) + quick + ofHeaders + mostBesideTexts
}

/** More than the count of headers, or the lengths of one's name and value, ever take. */
const mostLengths = 12

/** A bound from above for the bytes of headers in a row. */
export const mostHeaderBytes = (headers: readonly RecordHeader[]): number =>
  headers.reduce((sum, { name, value }) => sum + name.length * 3 + value.byteLength + mostLengths, mostLengths)

/** From this length on the bytes of a text are counted: a bound would refuse what fits. */
const longText = 16_384

const mostValueBytes = (value: Uint8Array | string): number => {
  if (typeof value !== 'string') return value.byteLength
  return value.length < longText ? value.length * 3 : Buffer.byteLength(value)
}
