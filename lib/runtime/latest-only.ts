/**
 * Of an operator that emits per batch only the last output of each key is published. This remembers, for what waits in one
 * lane, which of it comes of such an output, and which a later output has replaced.
 *
 * 1. What comes of one output is published as a whole or not at all, whatever the steps behind it make of it.
 * 2. An output of which nothing reaches the lane replaces the earlier ones all the same.
 * 3. A step that is taken back replaces nothing.
 */

/** How often each operator that emits per batch has emitted in the step at hand. */
export type Emissions = ReadonlyMap<string, number>

interface Mark {
  readonly operator: string
  /** Which of the operator's outputs in this step it comes of, from 1. */
  readonly emission: number
}

export class LatestOnly {
  /** What waits of such operators, by its place. */
  readonly #marks = new Map<number, Mark>()
  /** The places of what comes of the last outputs, by operator and key. */
  readonly #last = new Map<string, readonly number[]>()
  readonly #replaced = new Set<number>()

  /** What is at this place comes of such an operator's output. */
  note(place: number, operator: string, emission: number): void {
    this.#marks.set(place, { operator, emission })
  }

  /** Forgets what is at the places from `from` on: its step is taken back. */
  rewind(from: number): void {
    if (this.#marks.size === 0) return
    for (const place of this.#marks.keys()) if (place >= from) this.#marks.delete(place)
  }

  /** The step of a key is done: the last outputs that it had replace all before them. It put the places from `from` on. */
  settle(from: number, end: number, key: string, emissions: Emissions): void {
    for (const [operator, latest] of emissions) {
      const name = `${operator}\0${key}`
      for (const place of this.#last.get(name) ?? []) this.#replaced.add(place)
      const kept: number[] = []
      for (let place = from; place < end; place++) {
        const mark = this.#marks.get(place)
        if (mark?.operator !== operator) continue
        if (mark.emission === latest) kept.push(place)
        else this.#replaced.add(place)
      }
      if (kept.length > 0) this.#last.set(name, kept)
      else this.#last.delete(name)
    }
  }

  /** Whether what is at a place was not replaced; undefined where nothing was. All waits no longer, and is forgotten. */
  take(): ((place: number) => boolean) | undefined {
    const replaced = new Set(this.#replaced)
    this.#marks.clear()
    this.#last.clear()
    this.#replaced.clear()
    return replaced.size === 0 ? undefined : (place) => !replaced.has(place)
  }
}
