/**
 * The only way to time below `lib/aws` and `lib/local`: production code reads the machine's clock through it, tests and
 * the simulator move a virtual one.
 */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  nowMs(): number
  /** Resolves after `ms` milliseconds, or at once when the signal aborts. It never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}
