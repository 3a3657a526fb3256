import type { RunnerClock } from '../runtime/ports.ts'
import { sleepBy } from '../runtime/sleep.ts'

interface Timer {
  readonly ringAtMs: number
  readonly ring: () => void
}

/** A clock that stands still until it is told to move. */
export class VirtualClock implements RunnerClock {
  #nowMs: number
  readonly #timers = new Set<Timer>()

  /** Starts at `nowMs`, ms since 1970 UTC. @default 2026-01-01T00:00:00Z */
  constructor(nowMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  timer(ms: number, ring: () => void): () => void {
    const timer: Timer = { ringAtMs: this.#nowMs + Math.max(0, ms), ring }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepBy((dueMs, ring) => this.timer(dueMs, ring), ms, signal)
  }

  /** Moves time on and rings whatever is due by then, in the order of the times. */
  advance(ms: number): void {
    this.#nowMs += ms
    const due = [...this.#timers].filter((timer) => timer.ringAtMs <= this.#nowMs)
    for (const timer of due.toSorted((a, b) => a.ringAtMs - b.ringAtMs)) {
      if (this.#timers.delete(timer)) timer.ring()
    }
  }

  /** How long until the next timer rings or sleeper wakes, in ms; undefined where there is none. */
  get nextWakeMs(): number | undefined {
    if (this.#timers.size === 0) return undefined
    return Math.min(...[...this.#timers].map((timer) => timer.ringAtMs)) - this.#nowMs
  }
}
