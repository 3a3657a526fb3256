import type { Clock } from '../../core/clock.ts'

/** Why a sleep ends before its time: given, so that no error with a stack is made for each. */
const rang = 'rang'

/** Lets one loop wait for another to say that something changed. A ring that nobody waits for is not kept. */
export class Doorbell {
  readonly #waiting = new Set<() => void>()

  ring(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves at the next ring, or after `ms` milliseconds where they are given. */
  async wait(clock: Clock, ms?: number): Promise<void> {
    if (ms !== undefined && ms <= 0) return
    // Most waits have no end of their own, and no sleep to break off.
    const controller = ms === undefined ? undefined : new AbortController()
    const rung = new Promise<void>((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        controller?.abort(rang)
        resolve()
      }
      this.#waiting.add(wake)
      if (ms !== undefined) void clock.sleep(ms, controller?.signal).then(wake)
    })
    await rung
  }

  /** Resolves after `ms` milliseconds, however often it rings, or at the first ring with which it is over. */
  async waitOut(clock: Clock, ms: number, isOver: () => boolean): Promise<void> {
    const endMs = clock.nowMs() + ms
    while (!isOver() && clock.nowMs() < endMs) await this.wait(clock, endMs - clock.nowMs())
  }
}
