/**
 * The pure part of a keyed batch: one line of the log applied to the draft of its key.
 */
import { isRetryable, isTerminal } from '../../core/errors.ts'
import { isBytes } from '../../core/lossless.ts'
import { decodeValue } from '../../core/tagged-json.ts'
import type { KeyedStage } from '../../plan/plan.ts'
import { checkedDraft } from '../../state/commit-rules.ts'
import { EntryNotLoaded, type KeyDraft, type StepTime } from '../../state/key-draft.ts'
import { CheckedCopy } from '../../state/values.ts'
import { positionHashOf } from '../frames/position.ts'
import type { Outbox } from '../outbox.ts'
import type { Line } from '../progress/fold.ts'
import type { Failing, SlotStates } from '../progress/progress.ts'
import { answeredTwice, ImpureStepError, runTwice, type Trace } from '../purity.ts'
import { endOfTimeMs } from '../skew.ts'
import type { StageParts } from '../stage-parts.ts'
import { killed, skipped, verdictOf } from '../suspect.ts'
import { isDue } from './due-keys.ts'
import { KeyStep, type StepSurroundings } from './key-step.ts'
import type { FiringLine, RecordLine, Stepped } from './keyed-line.ts'
import { KeyedRecordInfo } from './record-info.ts'
import { FiringFailed, isSame, noneFailed, TimerSteps } from './timer-steps.ts'

export class LineSteps {
  readonly #parts: StageParts<KeyedStage>
  readonly #outbox: Outbox
  readonly #failing: Failing | undefined
  readonly #surroundings: StepSurroundings
  readonly #timers: TimerSteps
  readonly #careful: ReadonlySet<string>
  /** The values of records that were decoded ahead of their steps, by number. */
  readonly #values = new Map<number, unknown>()
  /** Why a record could not be added to the states of operators, by number. */
  readonly #failures = new Map<number, unknown>()

  /**
   * `watermarkBefore` gives what the stage's watermark was before the line of that index; `careful` are the keys whose state is
   * near its limit: of theirs what would not fit is given up in its step.
   */
  constructor(
    parts: StageParts<KeyedStage>,
    outbox: Outbox,
    failing: Failing | undefined,
    watermarkBefore: (index: number) => number,
    careful: ReadonlySet<string>,
  ) {
    this.#parts = parts
    this.#outbox = outbox
    this.#failing = failing
    const markLagMs = markLagOf(parts.stage)
    this.#surroundings = { stage: parts.stage.name, resultMarkMs: (index) => watermarkBefore(index) - markLagMs }
    this.#careful = careful
    this.#timers = new TimerSteps(parts, outbox, (draft, line) => this.#checkFits(draft, line))
  }

  /** The value of a record, ahead of its step. */
  value(line: RecordLine): unknown {
    if (this.#values.has(line.number)) return this.#values.get(line.number)
    const value = this.#decode(line)
    this.#values.set(line.number, value)
    return value
  }

  /** A value for one run of a step: a step that changes what it was given is given it anew when it runs again. */
  #valueOf(line: RecordLine): unknown {
    if (this.#values.size === 0 || !this.#values.has(line.number)) return this.#decode(line)
    const value = this.#values.get(line.number)
    this.#values.delete(line.number)
    return value
  }

  /** The value as the stage's schema version has it. */
  #decode({ schemaVersion, record }: RecordLine): unknown {
    const text = typeof record.value === 'string' ? record.value : Buffer.from(record.value).toString()
    let value = decodeValue(text)
    const { stage, ports } = this.#parts
    const { version, upcast } = stage.input.schema
    for (let older = schemaVersion; older < version; older += 1) {
      if (ports.freezesValues) freeze(value)
      value = upcast[older]?.(value)
    }
    if (ports.freezesValues) freeze(value)
    return value
  }

  /**
   * What the operator states of the slot are with this record, whatever its step makes of it. One that cannot be added
   * leaves them as they were, and fails when it is stepped.
   */
  operatorStates(line: RecordLine, before: SlotStates): SlotStates {
    const { operatorStates, name: stage } = this.#parts.stage
    const after = new Map(Object.entries(before))
    try {
      for (const [name, { initial, add }] of operatorStates) {
        const current = after.has(name) ? after.get(name) : initial
        const added = (trace?: Trace): unknown => {
          const value: unknown = add(current as never, this.value(line) as never, new KeyedRecordInfo(line.record))
          trace?.note(`operatorState "${name}"`, value)
          return value
        }
        const value = this.#parts.ports.checksPurity ? answeredTwice(added) : added()
        const path = `stage "${stage}", slot ${line.slot}: the operator state ${name}`
        after.set(name, new CheckedCopy(path, 'frozen').of(value))
      }
    } catch (error) {
      if (error instanceof ImpureStepError) throw error
      this.#failures.set(line.number, error)
      return before
    }
    return Object.fromEntries(after)
  }

  /** Applies a line to its key's draft. A `quiet` step puts out nothing: it was published before. */
  step(line: RecordLine, index: number, draft: KeyDraft, operatorStates: SlotStates, quiet = false): Stepped {
    const { number, record } = line
    if (draft.position >= number) return 'done'
    const { attempts, ports } = this.#parts
    const verdict = verdictOf(this.#failing, number, attempts)
    if (verdict === 'give-up-unseen') return { givenUp: killed(), attempts }
    if (record.redrive !== undefined && draft.tookRedrive(record.redrive)) {
      if (!quiet) ports.metrics.count('redrives-dropped', 1)
      return 'done'
    }
    try {
      const failed = this.#runRecord(line, index, draft, operatorStates)
      if (verdict === 'step') {
        draft.accept(number)
        if (quiet) this.#outbox.rewind()
        else this.#outbox.settle(record.key)
        if (!quiet && failed.length > 0)
          this.#timers.giveUp({ line, index, key: record.key, keyHash: positionHashOf(record.key) }, failed)
        return 'done'
      }
      // It did not throw this time, but others may already act on the verdict.
      this.#takeBack(draft)
      return { givenUp: skipped(), attempts }
    } catch (error) {
      this.#takeBack(draft)
      if (error instanceof ImpureStepError) throw error
      if (error instanceof EntryNotLoaded) return { wants: error }
      if (isRetryable(error)) return { halt: error, counts: false }
      ports.metrics.count('attempts-failed', 1)
      if (isTerminal(error)) return { givenUp: error, attempts: 1 }
      return verdict === 'give-up' ? { givenUp: error, attempts } : { halt: error, counts: true }
    }
  }

  /** Fires what is due of a key at the number of another's record. */
  fire(firing: FiringLine, draft: KeyDraft, operatorStates: SlotStates, quiet = false): Stepped {
    const { line, key } = firing
    if (draft.position >= line.number || !isDue(draft, line)) return 'done'
    try {
      const failed = this.#runFiring(firing, draft, operatorStates)
      draft.accept(line.number)
      if (quiet) this.#outbox.rewind()
      else this.#outbox.settle(key)
      if (!quiet && failed.length > 0) this.#timers.giveUp(firing, failed)
      return 'done'
    } catch (error) {
      this.#takeBack(draft)
      if (error instanceof EntryNotLoaded) return { wants: error }
      if (isRetryable(error)) return { halt: error, counts: false }
      throw error
    }
  }

  /** Runs the step of a record, again without each timer that throws in it; says which those are. */
  #runRecord(line: RecordLine, index: number, draft: KeyDraft, operatorStates: SlotStates): readonly FiringFailed[] {
    const info = new KeyedRecordInfo(line.record)
    let failed = noneFailed
    for (;;) {
      this.#begin(index, KeyStep.ofRecord(this.#surroundings, line, index, draft, operatorStates))
      this.#beginRecord(line, draft, info)
      if (this.#failures.size > 0 && this.#failures.has(line.number)) throw this.#failures.get(line.number)
      try {
        if (this.#parts.ports.checksPurity) {
          this.#twice(
            draft,
            () => this.#beginRecord(line, draft, info),
            () => this.#runOnce(line, draft, this.#valueOf(line), info, failed),
          )
        } else this.#runOnce(line, draft, this.#valueOf(line), info, failed)
        return failed
      } catch (error) {
        failed = this.#failedWith(error, failed, draft)
      }
    }
  }

  #runFiring(firing: FiringLine, draft: KeyDraft, operatorStates: SlotStates): readonly FiringFailed[] {
    const { line, index } = firing
    const time = this.#firingTime(line)
    let failed = noneFailed
    for (;;) {
      this.#begin(index, KeyStep.ofFiring(this.#surroundings, firing, draft, operatorStates))
      draft.begin(time, false)
      try {
        if (this.#parts.ports.checksPurity) {
          this.#twice(
            draft,
            () => draft.begin(time, false),
            () => this.#timers.fireDue(draft, line, failed),
          )
        } else this.#timers.fireDue(draft, line, failed)
        return failed
      } catch (error) {
        failed = this.#failedWith(error, failed, draft)
      }
    }
  }

  /**
   * How far a firing moves the times of its key: behind what any record may have that can still come, which so finds all that it
   * would have found, and ahead of where the table may have taken an item (key-commit.ts 2). A record may be as old as its source
   * and the streams before this one keep it; by event time, a day behind the watermark. The end of all input is no time: what is
   * kept then stays as it is.
   */
  #firingTime({ watermarkMs, processingMs }: Line): StepTime {
    const { retentionMs, chainRetentionMs } = this.#parts
    const eventTimeMs = watermarkMs === endOfTimeMs ? Number.NEGATIVE_INFINITY : watermarkMs - dayMs
    return { eventTimeMs, arrivalTimeMs: processingMs - (chainRetentionMs - retentionMs) }
  }

  #begin(index: number, step: KeyStep): void {
    this.#outbox.begin(index, step)
    this.#outbox.target.keyed = step
  }

  #beginRecord({ record, arrivedAtMs }: RecordLine, draft: KeyDraft, info: KeyedRecordInfo): void {
    // The event time of a record beyond its source's skew limit is a mistake.
    if (record.ownMarkMs === endOfTimeMs) draft.begin({ ...noTime, arrivalTimeMs: info.arrivalTimeMs })
    else draft.begin(info)
    if (record.redrive === undefined) return
    draft.takeRedrive(record.redrive, Math.ceil((arrivedAtMs + this.#parts.retentionMs) / 1_000))
  }

  #runOnce(
    line: RecordLine,
    draft: KeyDraft,
    value: unknown,
    info: KeyedRecordInfo,
    failed: readonly FiringFailed[],
  ): void {
    this.#timers.fireDue(draft, line, failed)
    try {
      this.#parts.program.run(value, info, this.#outbox.target)
    } finally {
      draft.throwAgain()
    }
    this.#checkFits(draft, line)
    this.#timers.fireBehind(draft, line, failed)
  }

  /** Throws a TerminalError where a careful key would not fit in a commit as it is. */
  #checkFits(draft: KeyDraft, { number }: Line): void {
    if (this.#careful.size === 0 || !this.#careful.has(draft.key)) return
    const { stage, ports, chainRetentionMs } = this.#parts
    checkedDraft(draft.commitOfStep(number, ports.clock.nowMs(), chainRetentionMs), { stage: stage.name })
  }

  /** Takes the step back; throws on what no timer threw. */
  #failedWith(error: unknown, failed: readonly FiringFailed[], draft: KeyDraft): readonly FiringFailed[] {
    if (!(error instanceof FiringFailed)) throw error
    this.#takeBack(draft)
    // One that failed already fails for good: it drops what it kept.
    return [...failed.filter(({ timer }) => !isSame(timer, error.timer)), error]
  }

  /** In tests each step runs twice. */
  #twice(draft: KeyDraft, begin: () => void, run: () => void): void {
    const { target } = this.#outbox
    runTwice({
      run,
      takeBack: () => {
        this.#takeBack(draft)
        begin()
      },
      changes: () => draft.changes(),
      setTrace: (trace) => {
        target.trace = trace
      },
    })
  }

  #takeBack(draft: KeyDraft): void {
    draft.rollback()
    this.#outbox.rewind()
  }
}

/** What moves no time of the key. */
const noTime = { eventTimeMs: Number.NEGATIVE_INFINITY, arrivalTimeMs: Number.NEGATIVE_INFINITY }

const dayMs = 86_400_000

/** How far a stage's marks trail its watermark: by as much as any window of it holds its 'final' results back. */
export function markLagOf(stage: KeyedStage): number {
  return Math.max(
    0,
    ...stage.nodes.map((node) => (node.type === 'keyed' ? (node.operator.window?.heldBackMs ?? 0) : 0)),
  )
}

/** Freezes a value and all in it, so that a step which changes what it was given fails there and then. */
function freeze(value: unknown): void {
  // Bytes cannot be frozen.
  if (typeof value !== 'object' || value === null || isBytes(value)) return
  Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
}
