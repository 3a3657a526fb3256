import type { SourceRecord } from './ports.ts'

/** A record between its read and the checkpoint that covers it. */
export interface PendingRecord extends SourceRecord {
  readonly eventBytes: number
  /** When it was read, milliseconds since 1970. */
  readonly readMs: number
  isDone: boolean
}

/**
 * Which records of a shard are read and not yet done. Lanes finish out of order; the durable position is the last record before
 * the lowest unfinished one.
 *
 * Invariants:
 * 1. `position` never passes an unfinished record and never goes back.
 * 2. Only unfinished records, and finished ones behind an unfinished one, are held.
 */
export class ShardProgress {
  #records: PendingRecord[] = []
  #head = 0
  #position: string | undefined

  /** The sequence number up to which everything is done, or `undefined` before the first. */
  get position(): string | undefined {
    return this.#position
  }

  /** The lowest record that is not done. */
  get oldestUnfinished(): PendingRecord | undefined {
    return this.#records[this.#head]
  }

  add(record: PendingRecord): void {
    this.#records.push(record)
    if (record.isDone) this.#advance()
  }

  finish(records: readonly PendingRecord[]): void {
    for (const record of records) record.isDone = true
    this.#advance()
  }

  #advance(): void {
    for (let next = this.#records[this.#head]; next?.isDone; next = this.#records[this.#head]) {
      this.#position = next.sequenceNumber
      this.#head += 1
    }
    if (this.#head > 1_000 || this.#head === this.#records.length) {
      this.#records = this.#records.slice(this.#head)
      this.#head = 0
    }
  }
}
