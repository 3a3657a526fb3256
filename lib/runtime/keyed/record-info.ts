/** What a keyed stage's steps, and the sinks behind them, are told of a record. */
import { copiesOf, headerText, noHeaders, type RecordHeader, type RecordInfo } from '../../core/record.ts'
import type { MarkedRecordInfo } from '../feed-lane.ts'
import type { IncomingRecord } from '../frames/frame.ts'

/** A record as steps see it: where it came from in the end, and the key that it was sent to. */
export class KeyedRecordInfo implements RecordInfo {
  readonly #record: IncomingRecord

  constructor(record: IncomingRecord) {
    this.#record = record
  }

  get source(): string {
    return this.#record.origin.source
  }

  get partition(): string {
    return this.#record.origin.partition
  }

  get position(): string {
    return this.#record.origin.position
  }

  get subPosition(): number {
    return this.#record.origin.subPosition
  }

  get arrivalTimeMs(): number {
    return this.#record.origin.arrivalTimeMs
  }

  get eventTimeMs(): number {
    return this.#record.eventTimeMs
  }

  get key(): string {
    return this.#record.key
  }

  get keyBytes(): Uint8Array {
    return Buffer.from(this.#record.key)
  }

  get headers(): readonly RecordHeader[] {
    return copiesOf(this.rawHeaders)
  }

  /** The headers as the frame has them: every attempt at the record reads them there. */
  get rawHeaders(): readonly RecordHeader[] {
    return this.#record.headers ?? noHeaders
  }

  header(name: string): string | undefined {
    return headerText(this.rawHeaders, name)
  }
}

/** What a result of a step carries on: a time of its own, and the stage's watermark before its number as own mark. */
export class ResultRecordInfo extends KeyedRecordInfo implements MarkedRecordInfo {
  readonly ownMarkMs: number
  readonly #eventTimeMs: number

  constructor(record: IncomingRecord, eventTimeMs: number, ownMarkMs: number) {
    super(record)
    this.#eventTimeMs = eventTimeMs
    this.ownMarkMs = ownMarkMs
  }

  override get eventTimeMs(): number {
    return this.#eventTimeMs
  }
}

/** A hash has 128 bits, which take 39 digits at most. */
const hashDigits = 39
const ownDigits = `1${'0'.repeat(hashDigits)}`

/** Which step of a slot it is: that of the record's own key, or of a key of that hash which fires at its number. */
export interface StepNumber {
  readonly number: number
  readonly keyHash: string | undefined
}

/**
 * The place of a step among all of its slot, in decimal digits: those of its number, then 1 for the record's own key; or 0 and
 * the hash of the key that fires there, which comes before. So the digits grow as positions do, and each names one step.
 */
export function placeDigits({ number, keyHash }: StepNumber): string {
  if (keyHash === undefined) return `${number}${ownDigits}`
  return `${number}0${BigInt(`0x${keyHash}`).toString().padStart(hashDigits, '0')}`
}

/**
 * What names the outputs of a keyed stage to its sinks: its own slot and the place of the step in it. One source record may
 * become several records of the stage, so its coordinates would name several outputs alike; and a slot's places only grow.
 */
export class OutputRecordInfo extends KeyedRecordInfo {
  readonly #stage: string
  readonly #slot: number
  readonly #place: string

  constructor(stage: string, slot: number, step: StepNumber, record: IncomingRecord) {
    super(record)
    this.#stage = stage
    this.#slot = slot
    this.#place = placeDigits(step)
  }

  override get source(): string {
    return this.#stage
  }

  override get partition(): string {
    return `slot-${this.#slot}`
  }

  override get position(): string {
    return this.#place
  }

  override get subPosition(): number {
    return 0
  }
}
