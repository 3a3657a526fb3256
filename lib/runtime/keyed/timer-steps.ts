/**
 * The timers of a key within one step.
 *
 * 1. What is due fires before the record, and what the record has set in the past behind it: first by event time, then by
 *    processing time, each in the order of their times.
 * 2. Before the record it is the time of the timer, whoever's record the line has: the windows behind see what a timer puts out
 *    as if it had fired when it was due. Time never goes back within a step: what a timer has set in the past comes at the time
 *    of the latest that has fired, and what the record has set there at the time of the record. A window that closed stays so.
 * 3. A timer whose step throws, or leaves more than a commit can hold, is a dead letter of its own: the step runs again without
 *    it. What its operator then does in its stead may throw as well: the step runs once more, and drops what that kept.
 * 4. A timer is removed before it fires: one whose operator is no more goes in silence.
 */
import { describeError, isRetryable, TerminalError } from '../../core/errors.ts'
import type { StepTimes } from '../../operators/keyed/keyed-operator.ts'
import { EntryNotLoaded, type KeyDraft } from '../../state/key-draft.ts'
import type { Outbox } from '../outbox.ts'
import type { DueTimer, KeyedTarget } from '../program.ts'
import type { Line } from '../progress/fold.ts'
import { ImpureStepError } from '../purity.ts'
import { domains, isDue, reached } from './due-keys.ts'
import type { FiringLine } from './keyed-line.ts'
import type { KeyedParts } from './keyed-parts.ts'
import { firingDeadLetter } from './line-dead-letter.ts'

/** Timers of one key that fire in one step without time going on: more is a timer that sets itself again and again in the past. */
const mostFirings = 1_000

/** A timer whose step threw: it is given up, and the others of its key fire without it. */
export class FiringFailed extends Error {
  readonly timer: DueTimer
  /** Whether its operator is to drop what it keeps of the key: it could not even let the timer pass. */
  readonly drops: boolean
  /** Whether the run at hand has come past it: what fires before was found to fit in an earlier run. */
  isPassed = false

  constructor(timer: DueTimer, cause: unknown, drops = false) {
    super('the step of a timer threw', { cause })
    this.timer = timer
    this.drops = drops
  }
}

/** What no timer failed in. */
export const noneFailed: readonly FiringFailed[] = []

export class TimerSteps {
  readonly #parts: Pick<KeyedParts, 'topology' | 'stage' | 'ports' | 'program'>
  readonly #outbox: Outbox
  readonly #checkFits: (draft: KeyDraft, line: Line) => void

  /** `checkFits` throws a TerminalError where the draft holds more than a commit at that line can. */
  constructor(
    parts: Pick<KeyedParts, 'topology' | 'stage' | 'ports' | 'program'>,
    outbox: Outbox,
    checkFits: (draft: KeyDraft, line: Line) => void,
  ) {
    this.#parts = parts
    this.#outbox = outbox
    this.#checkFits = checkFits
  }

  /** Fires all that is due of the key, but for what failed in an earlier run of the step. Throws a {@link FiringFailed}. */
  fireDue(draft: KeyDraft, line: Line, failed: readonly FiringFailed[]): void {
    if (isDue(draft, line)) this.#fireAll(draft, line, failed, beforeRecord)
  }

  /** Fires what the step of the record has set in the past. */
  fireBehind(draft: KeyDraft, line: Line, failed: readonly FiringFailed[]): void {
    if (isDue(draft, line)) this.#fireAll(draft, line, failed, (times) => times)
  }

  #fireAll(draft: KeyDraft, line: Line, failed: readonly FiringFailed[], timesOf: FiringTimes): void {
    const { times } = this.#outbox.target.keyed as KeyedTarget
    const fired = { 'event-time': new Fired(), 'processing-time': new Fired() }
    for (;;) {
      const timer = nextDue(draft, line)
      if (timer === undefined) return
      draft.clearTimer(timer.domain, timer.name)
      const known = failed.find((one) => isSame(one.timer, timer))
      if (known !== undefined) {
        this.#pass(known)
        continue
      }
      try {
        fired[timer.domain].add(timer)
        // What a timer by processing time sets in the past by event time comes at the time of the line.
        if (timer.domain === 'processing-time') fired['event-time'].lastMs = line.watermarkMs
        this.#fire(timer, timesOf(times, fired['event-time'].lastMs))
        if (failed.at(-1)?.isPassed ?? true) this.#checkFits(draft, line)
      } catch (error) {
        throw isTimersOwn(error) ? new FiringFailed(timer, error) : error
      }
    }
  }

  /** Lets a timer pass that failed in an earlier run. */
  #pass(failed: FiringFailed): void {
    const { timer, drops } = failed
    const { program } = this.#parts
    failed.isPassed = true
    try {
      if (drops) program.drop(timer, this.#outbox.target)
      else program.skip(timer, this.#outbox.target)
    } catch (error) {
      throw isTimersOwn(error) && !drops ? new FiringFailed(timer, dropped(timer, error), true) : error
    }
  }

  #fire(timer: DueTimer, timesOfFiring: StepTimes): void {
    const { target } = this.#outbox
    const keyed = target.keyed as KeyedTarget
    const { times } = keyed
    keyed.times = timesOfFiring
    keyed.timer = timer
    try {
      this.#parts.program.fire(timer, target)
      target.trace?.note(`the timer "${timer.name}"`, timer)
    } finally {
      keyed.timer = undefined
      keyed.times = times
      keyed.draft.throwAgain()
    }
  }

  /** The dead letters of the timers that failed. */
  giveUp(firing: FiringLine, failed: readonly FiringFailed[]): void {
    const { topology, stage, ports } = this.#parts
    for (const [index, { timer, cause }] of failed.entries()) {
      ports.metrics.count('attempts-failed', 1)
      const where = { topology, stage: stage.name, failedAtMs: ports.clock.nowMs() }
      const { entry, record } = firingDeadLetter(firing, timer, cause, where)
      this.#outbox.putDeadLetter(firing.index, entry, record, cause, index)
    }
  }
}

/** What time it is for a firing, by the times of its step and how far event time has come with it. */
type FiringTimes = (times: StepTimes, watermarkMs: number) => StepTimes

const beforeRecord: FiringTimes = ({ processingMs }, watermarkMs) => ({
  watermarkMs,
  ownMarkMs: Number.NEGATIVE_INFINITY,
  processingMs,
})

/** What has fired of one domain in a step. */
class Fired {
  lastMs = Number.NEGATIVE_INFINITY
  /** Since time went on: timers that follow each other in time come to an end by themselves, however many they are. */
  #count = 0

  add({ name, timeMs }: DueTimer): void {
    this.#count = timeMs > this.lastMs ? 1 : this.#count + 1
    this.lastMs = Math.max(this.lastMs, timeMs)
    if (this.#count > mostFirings) throw tooManyFirings(name)
  }
}

/** Of what is due at the line, the first by event time, or else by processing time. */
function nextDue(draft: KeyDraft, line: Line): DueTimer | undefined {
  for (const domain of domains) {
    const next = draft.nextTimer(domain)
    if (next !== undefined && next.timeMs <= reached(domain, line)) return { domain, ...next }
  }
  return undefined
}

export const isSame = (a: DueTimer, b: DueTimer): boolean =>
  a.domain === b.domain && a.timeMs === b.timeMs && a.name === b.name

/** Whether it is the timer that failed: else its step runs again, or waits. */
const isTimersOwn = (error: unknown): boolean =>
  !(error instanceof EntryNotLoaded || error instanceof ImpureStepError || isRetryable(error))

const dropped = ({ name }: DueTimer, cause: unknown) =>
  new TerminalError(
    `the timer "${name}" could neither fire nor be passed over, so what its operator kept of the key was dropped: ${describeError(cause).message}`,
    { code: 'state-dropped', cause },
  )

const tooManyFirings = (name: string) =>
  new TerminalError(
    `more than ${mostFirings} timers of one key fired in one step, the last of them "${name}": a timer must not set itself again in the past`,
    { code: 'too-many-timers' },
  )
