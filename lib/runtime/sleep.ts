import type { RunnerClock } from './ports.ts'

/** Sleeps by a clock's timer: resolves after `ms` milliseconds, or when the signal aborts, with which the timer is let go. */
export function sleepBy(timer: RunnerClock['timer'], ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const wake = () => {
      cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = timer(ms, wake)
    signal?.addEventListener('abort', wake)
  })
}
