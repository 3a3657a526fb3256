/** What must come out of windows that slide: all of them gathered anew, by their definition, with each record. */
import type { Gathered, KeyWindows, Put, Timed } from './timed-oracle.ts'
import type { WindowOutput, WindowSpec } from './timed-workload.ts'

/** A record for windows that slide. */
export interface SlidRecord {
  readonly eventTimeMs: number
  readonly cents: number
  /** Windows that end by then were over when it came. */
  readonly overMs: number
}

/**
 * Every window that exists, by its end: one ends with each record, and one begins behind it where that holds any record. A record is in
 * those windows around its time that were not over when it came.
 */
export function slidingOf(records: readonly SlidRecord[], sizeMs: number): Gathered[] {
  const isIn = ({ eventTimeMs, overMs }: SlidRecord, endMs: number): boolean =>
    endMs - sizeMs <= eventTimeMs && eventTimeMs < endMs && endMs > overMs
  const ends = new Set<number>()
  for (const record of records) {
    const [enteredMs, leftMs] = [record.eventTimeMs + 1, record.eventTimeMs + 1 + sizeMs]
    if (isIn(record, enteredMs)) ends.add(enteredMs)
    if (records.some((other) => isIn(other, leftMs))) ends.add(leftMs)
  }
  return [...ends]
    .sort((a, b) => a - b)
    .map((endMs) => {
      const own = records.filter((record) => isIn(record, endMs))
      const cents = own.reduce((total, record) => total + record.cents, 0)
      return { startMs: endMs - sizeMs, endMs, count: own.length, cents }
    })
}

/** Nothing is ever forgotten: of a window that is over no record changes anything. */
export class SlidingWindows implements KeyWindows {
  readonly #spec: WindowSpec
  readonly #user: string
  #records: SlidRecord[] = []
  #windows: readonly Gathered[] = []
  /** The last revision that was put out, by the end of the window. */
  readonly #revisions = new Map<number, number>()

  constructor(spec: WindowSpec, user: string) {
    this.#spec = spec
    this.#user = user
  }

  take({ eventTimeMs, ownMarkMs, cents, value }: Timed, watermarkMs: number, put: Put): void {
    const { name, sizeMs, graceMs, emit } = this.#spec
    const overMs = Math.max(ownMarkMs, watermarkMs) - graceMs
    if (eventTimeMs + sizeMs <= overMs) {
      put(`${name}-late`, value)
      return
    }
    const counts = new Map(this.#windows.map(({ endMs, count }) => [endMs, count]))
    this.#records.push({ eventTimeMs, cents, overMs })
    this.#windows = slidingOf(this.#records, sizeMs)
    if (emit === 'final') return
    const changed = this.#windows.filter(({ endMs, count }) => counts.get(endMs) !== count)
    for (const window of changed) {
      if (emit === 'on-update' || window.endMs <= watermarkMs) this.#put(window, false, put)
    }
  }

  fire(watermarkMs: number, put: Put): void {
    const { emit, graceMs } = this.#spec
    if (emit === 'on-update') return
    const throughMs = emit === 'final' ? watermarkMs - graceMs : watermarkMs
    for (const window of this.#windows) {
      const isDue = window.endMs <= throughMs && !this.#revisions.has(window.endMs)
      if (isDue) this.#put(window, emit === 'final' || graceMs === 0, put)
    }
  }

  #put(window: Gathered, isFinal: boolean, put: Put): void {
    const revision = (this.#revisions.get(window.endMs) ?? -1) + 1
    this.#revisions.set(window.endMs, revision)
    const value: WindowOutput = { user: this.#user, ...window, revision, isFinal, isRetracted: false }
    put(this.#spec.name, value)
  }
}
