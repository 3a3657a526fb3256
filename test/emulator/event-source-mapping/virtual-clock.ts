import type { Clock } from '../../../lib/core/clock.ts'

interface Sleeper {
  readonly dueMs: number
  readonly wake: () => void
}

/** Time that moves only when a test says so, from one sleeper to the next, letting everything settle in between. */
export class VirtualClock implements Clock {
  #nowMs: number
  #sleepers: Sleeper[] = []

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = { dueMs: this.#nowMs + ms, wake: resolve }
      const abort = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper)
        resolve()
      }
      if (signal?.aborted) return resolve()
      signal?.addEventListener('abort', abort, { once: true })
      this.#sleepers.push(sleeper)
    })
  }

  /** Moves time on; whatever falls due on the way happens in its order. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await settled()
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#sleepers = this.#sleepers.filter((other) => other !== next)
      this.#nowMs = Math.max(this.#nowMs, next.dueMs)
      next.wake()
      await settled()
    }
    this.#nowMs = endMs
  }

  #next(endMs: number): Sleeper | undefined {
    const due = this.#sleepers.filter((sleeper) => sleeper.dueMs <= endMs)
    return due.reduce<Sleeper | undefined>((first, one) => (first && first.dueMs <= one.dueMs ? first : one), undefined)
  }
}

/** Resolves when no promise has anything left to do without the clock. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
