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
import { clearedThrough, killerAt, mayKill, nextSuspect } from './suspect.ts'

/** What is to be stepped. */
export interface Steppable {
  readonly lastNumber: number
  /** When its only entry arrived, in ms since 1970 UTC; undefined where it has several. */
  readonly loneArrivalMs: number | undefined
}

export class NotedProgress<P extends ProgressOfAny> {
  /** The version that was opened. */
  readonly openedVersion: number
  readonly #parts: StageParts
  readonly #write: ProgressWrite<P>
  #now: P
  /** The last number of an entry that may hold one which kills. */
  #suspected: number | undefined
  #isToNote = false

  constructor(
    parts: StageParts,
    partition: string,
    { version, progress }: OpenedProgress<P>,
    format: ProgressFormat<P>,
  ) {
    this.#parts = parts
    this.openedVersion = version
    this.#now = progress
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
    if (goesOn) return noted(suspect, from, last)
    if (loneArrivalMs === undefined || from > last || !mayKill(loneArrivalMs, ports.clock.nowMs())) return last
    const next = nextSuspect(suspect, { from, to: last }, attempts)
    if (next === undefined) return last
    const isKiller = 'killer' in next
    this.#now = isKiller
      ? { ...this.#now, suspect: undefined, failing: killerAt(next.killer, attempts) }
      : { ...this.#now, suspect: next.suspect }
    this.#isToNote = true
    if (isKiller) return last
    this.#suspected = last
    return next.suspect.to
  }

  /**
   * Notes what is suspected, right before anything is stepped: an attempt that dies while it loads was not killed by a record,
   * and accuses none.
   */
  async note(stop: Stop): Promise<void> {
    if (!this.#isToNote) return
    this.#isToNote = false
    if (!(await this.#write.write(this.#now, stop.signal))) throw moved()
  }

  /** What was stepped and did not kill is cleared before anything of it goes out. */
  async clear(through: number, stop: Stop): Promise<void> {
    // What was done before any of them was stepped clears none.
    if (this.#suspected === undefined || through < (this.#now.suspect?.from ?? 0)) return
    const cleared = { ...this.#now, suspect: clearedThrough(through, this.#suspected) }
    this.#suspected = undefined
    if (!(await this.#write.write(cleared, stop.signal))) throw moved()
    this.#now = cleared
  }

  /** What is to be said of failures: one that counts ends the attempt, an earlier one is open until its number is done. */
  failingAfter(halt: Halt | undefined, doneThrough: number): P['failing'] {
    const { failing } = this.#now
    if (halt?.counts) {
      return { number: halt.number, attempts: (failing?.number === halt.number ? failing.attempts : 0) + 1 }
    }
    return failing && failing.number > doneThrough ? failing : undefined
  }

  /** Writes progress for good, and gives what is stored then, by whomever. */
  finish(progress: P, closing: AbortSignal): Promise<P> {
    return this.#write.finish(progress, closing)
  }
}

/** The last number that an attempt before this one, of the same invocation, was to step. */
function noted(suspect: Suspect | undefined, from: number, last: number): number {
  return suspect === undefined || suspect.attempts === 0 || suspect.to < from ? last : suspect.to
}

/** What was not tried, because one of it may kill: it comes again. */
export function haltBeyond(lastNumber: number, last: number): Halt | undefined {
  if (lastNumber >= last) return undefined
  const error = new RetryableError('the entry is stepped in parts, as one of its records may end the process', {
    code: 'suspect',
  })
  return { number: lastNumber + 1, error, counts: false }
}
