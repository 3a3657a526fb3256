/**
 * Progress of a partition while an attempt at a keyed batch runs: as it was opened, with what the attempt notes before it
 * steps records of which one may kill the process (suspect.ts), and as it is written in the end.
 */
import { RetryableError } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import { type Halt, moved } from '../batch.ts'
import type { Stop } from '../lane.ts'
import type { OpenedProgress } from '../progress/open.ts'
import type { KeyedProgress, Suspect } from '../progress/progress.ts'
import { readKeyedProgress, writeKeyedProgress } from '../progress/progress-format.ts'
import { ProgressWrite } from '../progress-write.ts'
import { clearedThrough, killerAt, mayKill, nextSuspect } from '../suspect.ts'
import type { KeyedLog } from './keyed-log.ts'
import type { KeyedParts } from './keyed-parts.ts'

export class NotedProgress {
  /** The version that was opened. */
  readonly openedVersion: number
  readonly #parts: KeyedParts
  readonly #write: ProgressWrite<KeyedProgress>
  #now: KeyedProgress
  /** The last number of an entry that may hold one which kills. */
  #suspected: number | undefined
  #isToNote = false

  constructor(parts: KeyedParts, partition: string, { version, progress }: OpenedProgress<KeyedProgress>) {
    this.#parts = parts
    this.openedVersion = version
    this.#now = progress
    this.#write = new ProgressWrite(parts, partition, version, {
      write: writeKeyedProgress,
      read: (value) => readKeyedProgress(value),
    })
  }

  /** What was opened, with what was noted. */
  get now(): KeyedProgress {
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
  suspect({ entries, lastNumber: last }: KeyedLog, goesOn: boolean): number {
    const { ports, attempts } = this.#parts
    const [entry] = entries as [SourceRecord]
    const { suspect, doneThrough } = this.#now
    const from = doneThrough + 1
    if (goesOn) return noted(suspect, from, last)
    if (entries.length > 1 || from > last || !mayKill(entry.arrivalTimeMs, ports.clock.nowMs())) return last
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
  failingAfter(halt: Halt | undefined, doneThrough: number): KeyedProgress['failing'] {
    const { failing } = this.#now
    if (halt?.counts) {
      return { number: halt.number, attempts: (failing?.number === halt.number ? failing.attempts : 0) + 1 }
    }
    return failing && failing.number > doneThrough ? failing : undefined
  }

  /** Writes progress for good, and gives what is stored then, by whomever. */
  finish(progress: KeyedProgress, closing: AbortSignal): Promise<KeyedProgress> {
    return this.#write.finish(progress, closing)
  }
}

/** The last number that an attempt before this one, of the same invocation, was to step. */
function noted(suspect: Suspect | undefined, from: number, last: number): number {
  return suspect === undefined || suspect.attempts === 0 || suspect.to < from ? last : suspect.to
}

/** What was not tried, because one of it may kill: it comes again. */
export function haltBeyond(lastNumber: number, log: KeyedLog): Halt | undefined {
  if (lastNumber >= (log.lines.at(-1)?.number ?? 0)) return undefined
  const error = new RetryableError('the frame is stepped in parts, as one of its records may end the process', {
    code: 'suspect',
  })
  return { number: lastNumber + 1, error, counts: false }
}
