/**
 * The records of a frame as rows. Each row leaves out what it shares with the one before, so neighbours of one source
 * cost some forty bytes beside key and value.
 */
import type { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import type { FrameRecord } from './frame.ts'

/** What a row is written against. */
interface RowBefore {
  readonly number: number
  readonly side: string
  readonly source: string
  readonly partition: string
  readonly position: string
  readonly ownMarkMs: number
  readonly eventTimeMs: number
  readonly arrivalTimeMs: number
}

const noRow: RowBefore = {
  number: 0,
  side: '',
  source: '',
  partition: '',
  position: '',
  ownMarkMs: 0,
  eventTimeMs: 0,
  arrivalTimeMs: 0,
}

/** The time that the next one is a step from. */
const baseAfter = (base: number, timeMs: number): number => (Number.isSafeInteger(timeMs) ? timeMs : base)

function rowOf({ position, side, ownMarkMs, eventTimeMs, origin }: FrameRecord, before: RowBefore): RowBefore {
  return {
    number: position.number,
    side,
    source: origin.source,
    partition: origin.partition,
    position: origin.position,
    ownMarkMs: baseAfter(before.ownMarkMs, ownMarkMs),
    eventTimeMs: baseAfter(before.eventTimeMs, eventTimeMs),
    arrivalTimeMs: baseAfter(before.arrivalTimeMs, origin.arrivalTimeMs),
  }
}

/** Writes records one after the other. */
export class RecordRows {
  readonly #writer = new ByteWriter()
  #before: RowBefore = noRow

  get byteLength(): number {
    return this.#writer.length
  }

  /** A view that the next `add` may change. */
  get bytes(): Uint8Array {
    return this.#writer.view()
  }

  /** Records come in the order of their numbers. */
  add(record: FrameRecord): void {
    const writer = this.#writer
    const before = this.#before
    const { position, origin, redrive } = record
    writer.count(position.number - before.number)
    writer.place(position)
    writer.textAfter(before.side, record.side)
    writer.text(record.key)
    writer.time(before.ownMarkMs, record.ownMarkMs)
    writer.time(before.eventTimeMs, record.eventTimeMs)
    writer.textAfter(before.source, origin.source)
    writer.textAfter(before.partition, origin.partition)
    writer.textAfter(before.position, origin.position)
    writer.count(origin.subPosition)
    writer.time(before.arrivalTimeMs, origin.arrivalTimeMs)
    writer.byte(redrive === undefined ? 0 : 1)
    if (redrive !== undefined) writer.text(redrive)
    writer.bytes(record.value)
    this.#before = rowOf(record, before)
  }

  /** Forgets all rows; the next record is the first of another frame. */
  restart(): void {
    this.#writer.truncate(0)
    this.#before = noRow
  }
}

/** Reads `count` records. Their values are views of the frame's bytes. */
export function readRecords(reader: ByteReader, count: number): FrameRecord[] {
  const records = new Array<FrameRecord>(count)
  let before = noRow
  for (let i = 0; i < count; i++) {
    const number = before.number + reader.count()
    if (!Number.isSafeInteger(number)) reader.refuse('a number is too large')
    const record: FrameRecord = {
      position: reader.place(number),
      side: reader.textAfter(before.side),
      key: reader.text(),
      ownMarkMs: reader.time(before.ownMarkMs),
      eventTimeMs: reader.time(before.eventTimeMs),
      origin: {
        source: reader.textAfter(before.source),
        partition: reader.textAfter(before.partition),
        position: reader.textAfter(before.position),
        subPosition: reader.count(),
        arrivalTimeMs: reader.time(before.arrivalTimeMs),
      },
      redrive: reader.byte() === 0 ? undefined : reader.text(),
      value: reader.bytes(),
    }
    records[i] = record
    before = rowOf(record, before)
  }
  return records
}

/** More than a row's numbers and lengths ever take. */
const mostBesideTexts = 160

/** A bound from above for the bytes of a record's row. */
export function mostRowBytes({ side, key, origin, redrive = '', value }: FrameRecord): number {
  const { source, partition, position } = origin
  const quick = (side.length + key.length + source.length + partition.length + position.length + redrive.length) * 3
  return value.byteLength + quick + mostBesideTexts
}
