/**
 * A limit of so much per second, with a burst of `capacity`. A single request larger than the burst passes when the bucket is
 * full and leaves a debt, as a large record does at AWS.
 */
export class TokenBucket {
  readonly #capacity: number
  readonly #perSecond: number
  #level: number
  #atMs = Number.NEGATIVE_INFINITY

  constructor(perSecond: number, capacity = perSecond) {
    this.#capacity = capacity
    this.#perSecond = perSecond
    this.#level = capacity
  }

  /** Whether `amount` may be spent now. */
  allows(amount: number, nowMs: number): boolean {
    if (nowMs > this.#atMs) {
      const refill = ((nowMs - this.#atMs) * this.#perSecond) / 1_000
      this.#level = Math.min(this.#capacity, this.#level + refill)
      this.#atMs = nowMs
    }
    return this.#level >= Math.min(amount, this.#capacity)
  }

  spend(amount: number): void {
    this.#level -= amount
  }
}
