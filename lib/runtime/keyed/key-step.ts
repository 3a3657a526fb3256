/** One step over one key: what its operators see, and what its outputs inherit. One is made for every record and firing. */
import type { RecordInfo } from '../../core/record.ts'
import type { StepTimes } from '../../operators/keyed/keyed-operator.ts'
import type { KeyDraft } from '../../state/key-draft.ts'
import type { StepPlace } from '../feed-lane.ts'
import type { FrameRecord, Origin } from '../frames/frame.ts'
import { firingPosition } from '../frames/position.ts'
import type { KeyedTarget } from '../program.ts'
import type { SlotStates } from '../progress/progress.ts'
import type { FiringLine, RecordLine } from './keyed-line.ts'
import { OutputRecordInfo, ResultRecordInfo } from './record-info.ts'

/** What a step is given beside its line. */
export interface StepSurroundings {
  readonly stage: string
  readonly draft: KeyDraft
  readonly operatorStates: SlotStates
  /** The own mark of results: what the watermark was before the number, less what the stage's results are held back by. */
  readonly resultMarkMs: number
}

export class KeyStep implements KeyedTarget, StepPlace {
  readonly draft: KeyDraft
  readonly operatorStates: SlotStates
  readonly times: StepTimes
  readonly number: number
  readonly keyHash: string | undefined
  readonly ownMarkMs: number
  readonly origin: Origin
  readonly redrive: string | undefined
  outputs = 0
  readonly #stage: string
  readonly #slot: number
  readonly #record: FrameRecord
  readonly #resultMarkMs: number
  #outputRecord: RecordInfo | undefined

  private constructor(
    { stage, draft, operatorStates, resultMarkMs }: StepSurroundings,
    { number, slot }: { readonly number: number; readonly slot: number },
    keyHash: string | undefined,
    record: FrameRecord,
    ownMarkMs: number,
    times: StepTimes,
  ) {
    this.draft = draft
    this.operatorStates = operatorStates
    this.times = times
    this.number = number
    this.keyHash = keyHash
    this.ownMarkMs = ownMarkMs
    this.origin = record.origin
    this.redrive = record.redrive
    this.#stage = stage
    this.#slot = slot
    this.#record = record
    this.#resultMarkMs = resultMarkMs
  }

  /** The step of a record. */
  static ofRecord(line: RecordLine, surroundings: StepSurroundings): KeyStep {
    const { record, watermarkMs, processingMs } = line
    const { ownMarkMs } = record
    return new KeyStep(surroundings, line, undefined, record, ownMarkMs, { watermarkMs, ownMarkMs, processingMs })
  }

  /** The step of a key that fires at the number of another's record. */
  static ofFiring(firing: FiringLine, surroundings: StepSurroundings): KeyStep {
    const { line, keyHash } = firing
    const { watermarkMs, processingMs } = line
    const times = { watermarkMs, ownMarkMs: Number.NEGATIVE_INFINITY, processingMs }
    const record = firingRecord(firing, surroundings.stage)
    return new KeyStep(surroundings, line, keyHash, record, surroundings.resultMarkMs, times)
  }

  resultOf(eventTimeMs: number): RecordInfo {
    return new ResultRecordInfo(this.#record, eventTimeMs, this.#resultMarkMs)
  }

  outputRecord(): RecordInfo {
    this.#outputRecord ??= new OutputRecordInfo(this.#stage, this.#slot, this, this.#record)
    return this.#outputRecord
  }
}

/** What stands for a record where none came: the stage itself, at that number. */
function firingRecord({ line, key, keyHash }: FiringLine, stage: string): FrameRecord {
  const { number, slot, watermarkMs, arrivedAtMs } = line
  return {
    position: firingPosition(number, keyHash, 0),
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
