import type { RunnerClock } from '../runtime/ports.ts'
import { sleepBy } from '../runtime/sleep.ts'

function timer(ms: number, ring: () => void): () => void {
  const handle = setTimeout(ring, Math.max(0, ms))
  return () => clearTimeout(handle)
}

/** The machine's clock. */
export const systemClock: RunnerClock = {
  nowMs: () => Date.now(),
  timer,
  sleep: (ms, signal) => sleepBy(timer, ms, signal),
}
