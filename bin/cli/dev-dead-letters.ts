/** The dead letters of one run of `millrace dev`: which lines were given up, and where somebody reads why. */
import { deadLetterHandle, readDeadLetter } from '../../lib/aws/dead-letters/reading.ts'
import type { SourceRecord } from '../../lib/emulator/event-source-mapping/index.ts'

export class DevDeadLetters {
  /** Places of records that were sent and given up; what a timer or a sink gave up is none of a line. */
  readonly #places = new Set<string>()
  readonly #sinceMs: number
  #last: string | undefined

  /** @param sinceMs when the run began, in ms since 1970. Records that arrived before, as redriven ones did, are none of its lines. */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs
  }

  take(records: readonly SourceRecord[]): void {
    for (const { data } of records) {
      const entry = readDeadLetter(data)
      if ('problem' in entry) continue
      const { id, source, partition, position, subPosition, arrivalTimeMs, reason } = entry
      this.#last = deadLetterHandle(id)
      if (arrivalTimeMs < this.#sinceMs || reason.phase === 'timer' || reason.phase === 'sink') continue
      this.#places.add(JSON.stringify([source, partition, position, subPosition]))
    }
  }

  /** How many records that the run sent were given up, each once. */
  get records(): number {
    return this.#places.size
  }

  /** What `dead-letters show` knows the last one by; undefined where there is none that can be read. */
  get last(): string | undefined {
    return this.#last
  }
}
