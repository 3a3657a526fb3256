/**
 * How far a run is, in one file, as JSON that a person can read.
 *
 * Invariants:
 * 1. The file is always whole: it is written beside itself and renamed into place.
 * 2. A save resolves with true only when its value, or one that came after it, is in the file.
 * 3. A write that fails is tried again, always with the newest value; only the signal ends that.
 */
import type { Clock } from '../../core/clock.ts'
import { type ReplaceFile, replaceFile, writePauseMs, writeProblem } from './replace-file.ts'

/** Who waits for a save. */
export interface SaveOptions {
  /** Gives up after one more attempt. */
  readonly signal: AbortSignal
  /** Hears why nothing goes on, at each failure, and undefined once it does. */
  readonly onBlocked: (problem: string | undefined) => void
}

/**
 * @example
 * const progress = new ProgressFile<{ sent: number }>('.millrace/flights-app/replay.json', systemClock)
 * await progress.save({ sent: 500 }, { signal, onBlocked: (problem) => show(problem) })
 */
export class ProgressFile<Value> {
  readonly #path: string
  readonly #clock: Clock
  readonly #replace: ReplaceFile
  #newest: Value | undefined
  /** Values are counted: which one is the newest, and which one is in the file. */
  #taken = 0
  #saved = 0
  #writing: Promise<void> | undefined

  /** @param replace how the file is written; by itself on the disk. */
  constructor(path: string, clock: Clock, replace: ReplaceFile = replaceFile) {
    this.#path = path
    this.#clock = clock
    this.#replace = replace
  }

  /** Resolves with false where the signal came before the value could be written. It does not reject for what the disk does. */
  async save(value: Value, { signal, onBlocked }: SaveOptions): Promise<boolean> {
    this.#newest = value
    this.#taken += 1
    const own = this.#taken
    let failures = 0
    while (this.#saved < own) {
      try {
        await this.#write()
      } catch (thrown) {
        if (signal.aborted) return false
        failures += 1
        onBlocked(writeProblem(this.#path, thrown))
        await this.#clock.sleep(writePauseMs(failures), signal)
      }
    }
    onBlocked(undefined)
    return true
  }

  /** One write at a time: who comes while it lasts waits for it, and writes again what it did not hold. */
  #write(): Promise<void> {
    this.#writing ??= this.#writeNewest().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeNewest(): Promise<void> {
    const written = this.#taken
    await this.#replace(this.#path, `${JSON.stringify(this.#newest, null, 2)}\n`)
    this.#saved = written
  }
}
