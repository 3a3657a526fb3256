/**
 * The file that holds what the function wrote to its log.
 *
 * Invariants:
 * 1. Lines keep their order, and each is in the file once and whole.
 * 2. A log that cannot be written never ends or delays the run: its lines wait, up to a limit, and are tried again.
 * 3. Where lines beyond the limit were lost, the log says how many, at the place where they would be.
 */
import { open } from 'node:fs/promises'
import type { Clock } from '../../core/clock.ts'
import { writePauseMs, writeProblem } from './replace-file.ts'

/** Adds a text to the end of a file, whole or not at all, or rejects. A port, so that tests can fill the disk. */
export type AppendText = (path: string, text: string) => Promise<void>

export interface FunctionLogOptions {
  readonly clock: Clock
  /** @default to the file */
  readonly append?: AppendText
  /** How many characters may wait to be written. @default 4,194,304 */
  readonly mostWaiting?: number
}

/**
 * @example
 * const log = new FunctionLog('.millrace/flights-app/function.log', { clock: systemClock })
 * log.write('worker-1 loaded')
 * await log.close()
 */
export class FunctionLog {
  readonly #path: string
  readonly #clock: Clock
  readonly #append: AppendText
  readonly #mostWaiting: number
  readonly #closing = new AbortController()
  readonly #waiting: string[] = []
  #waitingLength = 0
  #lost = 0
  #problem = ''
  #writing: Promise<void> | undefined

  constructor(path: string, { clock, append = appendText, mostWaiting = 4_194_304 }: FunctionLogOptions) {
    this.#path = path
    this.#clock = clock
    this.#append = append
    this.#mostWaiting = mostWaiting
    // The file is there from the start, so that one can follow it.
    this.#begin()
  }

  /** Takes a line, without its line feed. */
  write(line: string): void {
    // Once a line is lost all that follow are, until the note of them has its place.
    const isTooMuch = this.#waiting.length > 0 && this.#waitingLength + line.length >= this.#mostWaiting
    if (this.#lost > 0 || isTooMuch) this.#lost += 1
    else this.#add(line)
    this.#begin()
  }

  /** Writes what waits; where that fails once more, it is lost. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#writing
  }

  #add(line: string): void {
    this.#waiting.push(`${line}\n`)
    this.#waitingLength += line.length + 1
  }

  #begin(): void {
    this.#writing ??= this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    let failures = 0
    do {
      const count = this.#waiting.length
      const text = this.#waiting.join('')
      try {
        await this.#append(this.#path, text)
      } catch (thrown) {
        if (this.#closing.signal.aborted) return
        failures += 1
        this.#problem = writeProblem(this.#path, thrown)
        await this.#clock.sleep(writePauseMs(failures), this.#closing.signal)
        continue
      }
      failures = 0
      this.#waiting.splice(0, count)
      this.#waitingLength -= text.length
      this.#noteLost()
      this.#problem = ''
    } while (this.#waiting.length > 0)
    this.#writing = undefined
  }

  /** Behind the lines that came before the first one that was lost. */
  #noteLost(): void {
    if (this.#lost === 0) return
    const reason = this.#problem === '' ? 'they came faster than they could be written' : this.#problem
    this.#add(`(${this.#lost} ${this.#lost === 1 ? 'line is' : 'lines are'} lost here: ${reason})`)
    this.#lost = 0
  }
}

/** What a full disk took of the text is cut off again, so that the next attempt repeats nothing. */
async function appendText(path: string, text: string): Promise<void> {
  const file = await open(path, 'a')
  try {
    const { size } = await file.stat()
    try {
      await file.writeFile(text)
    } catch (thrown) {
      await file.truncate(size)
      throw thrown
    }
  } finally {
    await file.close()
  }
}
