/**
 * How far records come behind the newest event time of their partition, counted in narrow ranges.
 *
 * A lateness is told by the upper end of its range, which is at most a tenth too large: so a grace that is read from it catches
 * at least the share that it says.
 */

/** How many records were at most so late, and later than the range before says. */
export interface LatenessCount {
  readonly latenessMs: number
  readonly records: number
}

/** The upper end of each range, by the one before. */
const ratio = 1.1
const perRange = 1 / Math.log(ratio)

export class Lateness {
  /** By the number of the range, from 1. */
  readonly #counts = new Map<number, number>()
  /** Those that do not come behind by a millisecond: nearly all, as a rule. */
  #punctual = 0
  #records = 0
  #largestMs = 0

  get records(): number {
    return this.#records
  }

  /** Counts records that came so many ms behind the newest; those that did not come behind it have 0. */
  add(latenessMs: number, records = 1): void {
    this.#records += records
    if (latenessMs < 1) {
      this.#punctual += records
      return
    }
    // What an end of a range has become in text and back is still of its own range.
    const range = Math.max(1, Math.ceil(Math.log(latenessMs) * perRange + 1 - 1e-9))
    this.#counts.set(range, (this.#counts.get(range) ?? 0) + records)
    this.#largestMs = Math.max(this.#largestMs, latenessMs)
  }

  /** By lateness, the least first. The last is exact. */
  counts(): readonly LatenessCount[] {
    const ranges = [...this.#counts].sort(([one], [other]) => one - other)
    const behind = ranges.map(([range, records]) => ({
      latenessMs: Math.min(ratio ** (range - 1), this.#largestMs),
      records,
    }))
    return this.#punctual === 0 ? behind : [{ latenessMs: 0, records: this.#punctual }, ...behind]
  }

  /** The least lateness that at least this share of the records, from 0 to 1, does not exceed; 0 where there are none. */
  withinMs(share: number): number {
    let left = Math.ceil(share * this.#records - 1e-9)
    for (const { latenessMs, records } of this.counts()) {
      left -= records
      if (left <= 0) return latenessMs
    }
    return this.#largestMs
  }
}
