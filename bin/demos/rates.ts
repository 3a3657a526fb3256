/** Rates of several counters over the last few seconds. */
const windowMs = 3_000

export class Rates {
  readonly #nowMs: () => number
  readonly #samples: { readonly atMs: number; readonly counts: ReadonlyMap<string, number> }[] = []

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Takes what the counters show now, and returns the count per second of each. */
  sample(counts: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
    const atMs = this.#nowMs()
    this.#samples.push({ atMs, counts })
    while (this.#samples.length > 2 && atMs - (this.#samples[0]?.atMs ?? atMs) > windowMs) this.#samples.shift()
    const [first] = this.#samples
    const seconds = first === undefined ? 0 : (atMs - first.atMs) / 1_000
    if (seconds === 0) return new Map([...counts.keys()].map((name) => [name, 0]))
    return new Map([...counts].map(([name, count]) => [name, (count - (first?.counts.get(name) ?? 0)) / seconds]))
  }
}
