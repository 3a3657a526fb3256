import type { RunnerClock } from '../runtime/ports.ts'

function timer(ms: number, ring: () => void): () => void {
  const handle = setTimeout(ring, Math.max(0, ms))
  return () => clearTimeout(handle)
}

/** The machine's clock. */
export const systemClock: RunnerClock = {
  nowMs: () => Date.now(),
  timer,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (ms <= 0 || signal?.aborted) return resolve()
      const wake = () => {
        cancel()
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const cancel = timer(ms, wake)
      signal?.addEventListener('abort', wake, { once: true })
    }),
}
