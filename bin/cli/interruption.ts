/**
 * Ctrl-C. npm sends its own copy of the signal to the program that the terminal has signalled already, so what follows within a
 * moment belongs to the same key press.
 */
const sameKeyPressMs = 500

/** Exit code of a program that was ended by SIGINT. */
const killedExitCode = 130

/** What is needed of `process`. */
export interface Interruptible {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
  exit(code: number): void
}

/** Aborts with the first SIGINT or SIGTERM; a later SIGINT ends the process at once. */
export function interruption(program: Interruptible, nowMs: () => number, onFirst: () => void): AbortSignal {
  const controller = new AbortController()
  let firstAtMs: number | undefined
  const first = () => {
    if (firstAtMs !== undefined) return
    firstAtMs = nowMs()
    onFirst()
    controller.abort()
  }
  program.on('SIGTERM', first)
  program.on('SIGINT', () => {
    if (firstAtMs !== undefined && nowMs() - firstAtMs > sameKeyPressMs) program.exit(killedExitCode)
    first()
  })
  return controller.signal
}
