/** Keys by the time for which they wait: a binary heap. A key may be in it several times. */
export class TimeHeap {
  readonly #times: number[] = []
  readonly #keys: string[] = []

  /** The earliest time; Infinity where there is none. */
  get firstMs(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY
  }

  push(timeMs: number, key: string): void {
    let at = this.#times.push(timeMs) - 1
    this.#keys.push(key)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if ((this.#times[parent] as number) <= timeMs) break
      this.#swap(at, parent)
      at = parent
    }
  }

  /** Takes out every key whose time has come. */
  takeUntil(timeMs: number, into: Set<string>): void {
    while (this.#times.length > 0 && (this.#times[0] as number) <= timeMs) {
      into.add(this.#keys[0] as string)
      this.#removeFirst()
    }
  }

  #removeFirst(): void {
    const last = this.#times.length - 1
    this.#swap(0, last)
    this.#times.pop()
    this.#keys.pop()
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      let least = at
      if (left < last && (this.#times[left] as number) < (this.#times[least] as number)) least = left
      if (right < last && (this.#times[right] as number) < (this.#times[least] as number)) least = right
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const time = this.#times[a] as number
    const key = this.#keys[a] as string
    this.#times[a] = this.#times[b] as number
    this.#keys[a] = this.#keys[b] as string
    this.#times[b] = time
    this.#keys[b] = key
  }
}
