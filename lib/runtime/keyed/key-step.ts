/** One step over one key: what its operators see, and what its outputs inherit. One is made for every record and firing. */
import type { RecordInfo } from '../../core/record.ts'
import type { StepTimes } from '../../operators/keyed/keyed-operator.ts'
import type { KeyDraft } from '../../state/key-draft.ts'
import type { StepPlace } from '../feed-lane.ts'
import type { IncomingRecord, Origin } from '../frames/frame.ts'
import { firingPosition, ownPosition } from '../frames/position.ts'
import type { DueTimer, KeyedTarget } from '../program.ts'
import type { Line } from '../progress/fold.ts'
import type { SlotStates } from '../progress/progress.ts'
import type { FiringLine, RecordLine } from './keyed-line.ts'
import { OutputRecordInfo, ResultRecordInfo } from './record-info.ts'

/** What all steps of an attempt are given. */
export interface StepSurroundings {
  readonly stage: string
  /** The own mark of results at that line: what the watermark was before it, less what the stage's results are held back by. */
  resultMarkMs(index: number): number
}

/** Of a record, it is also the time that the step sees: its own mark is that of the record. */
export class KeyStep implements KeyedTarget, StepPlace, StepTimes {
  readonly draft: KeyDraft
  readonly operatorStates: SlotStates
  readonly times: StepTimes
  readonly keyHash: string | undefined
  readonly ownMarkMs: number
  timer: DueTimer | undefined = undefined
  outputs = 0
  readonly #surroundings: StepSurroundings
  readonly #line: Line
  /** The line's index. */
  readonly #index: number
  readonly #record: IncomingRecord
  #outputRecord: RecordInfo | undefined

  private constructor(
    surroundings: StepSurroundings,
    { line, index, keyHash }: StepLine,
    record: IncomingRecord,
    draft: KeyDraft,
    operatorStates: SlotStates,
  ) {
    this.draft = draft
    this.operatorStates = operatorStates
    this.keyHash = keyHash
    this.#surroundings = surroundings
    this.#line = line
    this.#index = index
    this.#record = record
    if (keyHash === undefined) {
      this.ownMarkMs = record.ownMarkMs
      this.times = this
    } else {
      this.ownMarkMs = surroundings.resultMarkMs(index)
      const { watermarkMs, processingMs } = line
      this.times = { watermarkMs, ownMarkMs: Number.NEGATIVE_INFINITY, processingMs }
    }
  }

  /** The step of a record. */
  static ofRecord(
    surroundings: StepSurroundings,
    line: RecordLine,
    index: number,
    draft: KeyDraft,
    operatorStates: SlotStates,
  ): KeyStep {
    return new KeyStep(surroundings, { line, index, keyHash: undefined }, line.record, draft, operatorStates)
  }

  /** The step of a key that fires at the number of another's record. */
  static ofFiring(
    surroundings: StepSurroundings,
    firing: FiringLine,
    draft: KeyDraft,
    operatorStates: SlotStates,
  ): KeyStep {
    return new KeyStep(surroundings, firing, firingRecord(firing, surroundings.stage), draft, operatorStates)
  }

  get number(): number {
    return this.#line.number
  }

  /** Whether it is the step of timers alone: of a key that fires at a line without a record of its own that is applied there. */
  get isOfTimers(): boolean {
    return this.#record !== this.#line.record
  }

  get watermarkMs(): number {
    return this.#line.watermarkMs
  }

  get processingMs(): number {
    return this.#line.processingMs
  }

  get origin(): Origin {
    return this.#record.origin
  }

  get redrive(): string | undefined {
    return this.#record.redrive
  }

  resultOf(eventTimeMs: number): RecordInfo {
    return new ResultRecordInfo(this.#cause, eventTimeMs, this.#surroundings.resultMarkMs(this.#index))
  }

  outputRecord(): RecordInfo {
    const cause = this.#cause
    if (cause !== this.#record) return this.#outputOf(cause)
    this.#outputRecord ??= this.#outputOf(cause)
    return this.#outputRecord
  }

  #outputOf(record: IncomingRecord): RecordInfo {
    return new OutputRecordInfo(this.#surroundings.stage, this.#line.slot, this, record)
  }

  /** The record at hand: without its headers while a timer fires, as what that puts out comes of no one record. */
  get #cause(): IncomingRecord {
    const record = this.#record
    return this.timer !== undefined && record.headers !== undefined ? { ...record, headers: undefined } : record
  }
}

interface StepLine {
  readonly line: Line
  readonly index: number
  readonly keyHash: string | undefined
}

/** What stands for a record where none came: the stage itself, at that number. */
function firingRecord({ line, key, keyHash }: FiringLine, stage: string): IncomingRecord {
  const { number, slot, watermarkMs, arrivedAtMs } = line
  return {
    position: keyHash === undefined ? ownPosition(number, 0) : firingPosition(number, keyHash, 0),
    side: '',
    key,
    ownMarkMs: Number.NEGATIVE_INFINITY,
    eventTimeMs: watermarkMs,
    value: noBytes,
    origin: {
      source: stage,
      partition: `slot-${slot}`,
      position: String(number),
      subPosition: 0,
      arrivalTimeMs: arrivedAtMs,
    },
    redrive: undefined,
  }
}

const noBytes = new Uint8Array()
