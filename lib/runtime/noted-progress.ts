/**
 * Progress of a partition while an attempt at a batch runs: as it was opened, with what the attempt notes before it
 * steps records of which one may kill the process (suspect.ts), and as it is written in the end.
 */
import { RetryableError } from '../core/errors.ts'
import { type Halt, moved } from './batch.ts'
import type { Stop } from './lane.ts'
import type { OpenedProgress } from './progress/open.ts'
import type { ProgressOfAny, Suspect } from './progress/progress.ts'
import { type ProgressFormat, ProgressWrite } from './progress-write.ts'
import type { StageParts } from './stage-parts.ts'
import { clearedThrough, killerAt, lastToStep, mayKill, nextSuspect } from './suspect.ts'

/** What is to be stepped. */
export interface Steppable {
  readonly lastNumber: number
  /** When its only entry arrived, in ms since 1970 UTC; undefined where it has several that may still come one by one. */
  readonly loneArrivalMs: number | undefined
}

export class NotedProgress<P extends ProgressOfAny> {
  /** The version that was opened. */
  readonly openedVersion: number
  readonly #parts: StageParts
  readonly #write: ProgressWrite<P>
  #now: P
  /** What this attempt noted, and the last number of the entry that it is about. */
  #noted: { readonly suspect: Suspect; readonly last: number } | undefined
  #isToNote = false
  /** True from the moment that the note is sent until its answer says that it is stored. */
  #isUnanswered = false
  /** What stays noted when this attempt comes to its end: what it found, or what it has cleared since. */
  #left: Suspect | undefined

  constructor(
    parts: StageParts,
    partition: string,
    { version, progress }: OpenedProgress<P>,
    format: ProgressFormat<P>,
  ) {
    this.#parts = parts
    this.openedVersion = version
    this.#now = progress
    this.#left = progress.suspect
    this.#write = new ProgressWrite(parts, partition, version, format)
  }

  /** What was opened, with what was noted. */
  get now(): P {
    return this.#now
  }

  /** The version that this attempt has written; undefined where it did not, or another was there before. */
  get ownVersion(): number | undefined {
    return this.#write.isOurs ? this.#write.version : undefined
  }

  /**
   * The last number that is to be stepped: fewer than all where one of them may kill the process. `goesOn` says that this
   * invocation has noted it in an attempt before, and goes on with that.
   */
  suspect({ lastNumber: last, loneArrivalMs }: Steppable, goesOn = false): number {
    const { ports, attempts } = this.#parts
    const { suspect, doneThrough } = this.#now
    const from = doneThrough + 1
    if (goesOn) return this.#goOn(last)
    if (loneArrivalMs === undefined || from > last || !mayKill(loneArrivalMs, ports.clock.nowMs())) return last
    const next = nextSuspect(suspect, { from, to: last }, attempts)
    if (next === undefined) return last
    this.#isToNote = true
    if ('killer' in next) {
      this.#left = undefined
      this.#now = { ...this.#now, suspect: undefined, failing: killerAt(next.killer, attempts) }
      return last
    }
    this.#noted = { suspect: next.suspect, last }
    this.#now = { ...this.#now, suspect: next.suspect }
    return lastToStep(next.suspect, attempts)
  }

  /** The note of the attempt before this one is that of the invocation. */
  #goOn(last: number): number {
    const { suspect, doneThrough } = this.#now
    if (suspect === undefined || suspect.to <= doneThrough) return last
    this.#noted = { suspect, last }
    this.#left = { ...suspect, attempts: Math.max(0, suspect.attempts - 1) }
    return lastToStep(suspect, this.#parts.attempts)
  }

  /**
   * Notes what is suspected, right before anything is stepped: an attempt that dies while it loads was not killed by a record,
   * and accuses none.
   */
  async note(stop: Stop): Promise<void> {
    if (!this.#isToNote) return
    this.#isToNote = false
    this.#isUnanswered = true
    if (!(await this.#write.write(this.#now, stop.signal))) throw moved()
    this.#isUnanswered = false
  }

  /** What was stepped and did not kill is cleared before anything of it goes out. */
  async clear(through: number, stop: Stop): Promise<void> {
    // What was done before any of them was stepped clears none.
    if (this.#noted === undefined || through < (this.#now.suspect?.from ?? 0)) return
    const suspect = clearedThrough(this.#noted.suspect, through, this.#noted.last, this.#parts.attempts)
    this.#left = suspect
    const cleared = { ...this.#now, suspect }
    if (!(await this.#write.write(cleared, stop.signal))) throw moved()
    this.#now = cleared
  }

  /** What stays suspected: an attempt that comes to its end takes its note back, and leaves what is known without it. */
  suspectAfter(doneThrough: number): P['suspect'] {
    return this.#left && this.#left.to > doneThrough ? this.#left : undefined
  }

  /** What is to be said of failures: one that counts ends the attempt, an earlier one is open until its number is done. */
  failingAfter(halt: Halt | undefined, doneThrough: number): P['failing'] {
    const { failing } = this.#now
    if (halt?.counts) {
      return { number: halt.number, attempts: (failing?.number === halt.number ? failing.attempts : 0) + 1 }
    }
    return failing && failing.number > doneThrough ? failing : undefined
  }

  /**
   * Writes progress for good, and gives what is stored then, by whomever. A note whose answer was lost may be stored: it is taken
   * back too, or it would accuse a record that was never stepped.
   */
  finish(progress: P, closing: AbortSignal): Promise<P> {
    const note = this.#isUnanswered ? this.#noted?.suspect : undefined
    return this.#write.finish(progress, closing, ({ suspect }) => note !== undefined && isSame(suspect, note))
  }
}

const isSame = (a: Suspect | undefined, b: Suspect): boolean =>
  a?.from === b.from && a.to === b.to && a.attempts === b.attempts

/** What was not tried, because one of it may kill: it comes again. */
export function haltBeyond(lastNumber: number, last: number): Halt | undefined {
  if (lastNumber >= last) return undefined
  const error = new RetryableError('the entry is stepped in parts, as one of its records may end the process', {
    code: 'suspect',
  })
  return { number: lastNumber + 1, error, counts: false }
}
