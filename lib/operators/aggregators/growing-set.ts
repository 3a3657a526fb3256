/**
 * A set that only grows and is never changed: a larger one shares what the smaller one has, so that adding costs the same
 * however large it is.
 *
 * Sets that came of each other share one list, of which each sees the first `size` values. The largest of them appends to
 * the list. A set that is not the largest any more (its step was taken back) may go on: with the value that follows in the list
 * anyway, which is what a step that runs again adds, or else with a list of its own.
 */
type Value = number | bigint | string | boolean

interface Shared {
  readonly values: Value[]
  readonly indexes: Map<Value, number>
}

export class GrowingSet {
  readonly size: number
  readonly #shared: Shared

  private constructor(shared: Shared, size: number) {
    this.#shared = shared
    this.size = size
  }

  static empty(): GrowingSet {
    return new GrowingSet({ values: [], indexes: new Map() }, 0)
  }

  /** Of distinct values. */
  static of(values: readonly Value[]): GrowingSet {
    const indexes = new Map(values.map((value, index) => [value, index]))
    return new GrowingSet({ values: [...values], indexes }, values.length)
  }

  has(value: Value): boolean {
    const index = this.#shared.indexes.get(value)
    return index !== undefined && index < this.size
  }

  with(value: Value): GrowingSet {
    if (this.has(value)) return this
    const { values, indexes } = this.#shared
    if (values.length > this.size && values[this.size] !== value) return this.#alone().with(value)
    if (values.length === this.size) {
      indexes.set(value, this.size)
      values.push(value)
    }
    return new GrowingSet(this.#shared, this.size + 1)
  }

  /** Both together, in a list of their own: what is merged for a result leaves the list of the parts alone. */
  union(other: GrowingSet): GrowingSet {
    const [large, small] = this.size < other.size ? [other, this] : [this, other]
    if (small.size === 0) return large
    let united = large.#alone()
    for (let i = 0; i < small.size; i += 1) united = united.with(small.#shared.values[i] as Value)
    return united
  }

  /** By type, then by value: equal sets have one form. */
  sorted(): readonly Value[] {
    return this.#shared.values.slice(0, this.size).sort((a, b) => {
      if (typeof a !== typeof b) return typeof a < typeof b ? -1 : 1
      return a < b ? -1 : 1
    })
  }

  #alone(): GrowingSet {
    return GrowingSet.of(this.#shared.values.slice(0, this.size))
  }
}
