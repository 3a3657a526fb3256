/**
 * The timers of a key within one step.
 *
 * 1. What is due fires before the record, and what the record has set in the past behind it: first by event time, then by
 *    processing time, each in the order of their times.
 * 2. A timer whose step throws, or leaves more than a commit can hold, is a dead letter of its own: the step runs again without
 *    it. What its operator then does in its stead may throw as well: the step runs once more, and drops what that kept.
 * 3. A timer is removed before it fires: one whose operator is no more goes in silence.
 */
import { describeError, isRetryable, TerminalError } from '../../core/errors.ts'
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
    if (!isDue(draft, line)) return
    for (const domain of domains) {
      let [fired, lastMs] = [0, Number.NEGATIVE_INFINITY]
      for (;;) {
        const next = draft.nextTimer(domain)
        if (next === undefined || next.timeMs > reached(domain, line)) break
        draft.clearTimer(domain, next.name)
        const timer = { domain, name: next.name, timeMs: next.timeMs }
        const known = failed.find((one) => isSame(one.timer, timer))
        if (known !== undefined) {
          this.#pass(known)
          continue
        }
        try {
          // Timers that follow each other in time come to an end by themselves, however many they are.
          fired = timer.timeMs > lastMs ? 1 : fired + 1
          lastMs = Math.max(lastMs, timer.timeMs)
          if (fired > mostFirings) throw tooManyFirings(next.name)
          this.#fire(timer)
          if (failed.at(-1)?.isPassed ?? true) this.#checkFits(draft, line)
        } catch (error) {
          throw isTimersOwn(error) ? new FiringFailed(timer, error) : error
        }
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

  /** What an event timer puts out comes at the timer's own time, however far the watermark has jumped past it. */
  #fire(timer: DueTimer): void {
    const { target } = this.#outbox
    const keyed = target.keyed as KeyedTarget
    const { times } = keyed
    if (timer.domain === 'event-time') {
      const { ownMarkMs, processingMs } = times
      keyed.times = { watermarkMs: timer.timeMs, ownMarkMs, processingMs }
    }
    keyed.isFiring = true
    try {
      this.#parts.program.fire(timer, target)
    } finally {
      keyed.isFiring = false
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
      this.#outbox.putDeadLetter(firing.index, entry, record, index)
    }
  }
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
