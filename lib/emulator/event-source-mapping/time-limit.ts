import type { Clock } from '../../core/clock.ts'
import type { InvocationOutcome, Invoker } from './ports.ts'

/**
 * An invoker with the function's time limit, for invokers that have none of their own. At the limit the invocation is a function
 * error, in the words of Lambda, and counts as an attempt; what it answers later is not heard, though its effects stay.
 *
 * @example
 * const invoker = withTimeLimit(handlerInSimulation, 60_000, virtualClock)
 */
export function withTimeLimit(invoker: Invoker, timeoutMs: number, clock: Clock): Invoker {
  const reason = `Task timed out after ${(timeoutMs / 1_000).toFixed(2)} seconds`
  return {
    async invoke(event, info) {
      const answered = new AbortController()
      const timedOut = clock.sleep(timeoutMs, answered.signal).then((): InvocationOutcome => {
        return { kind: 'function-error', reason }
      })
      try {
        return await Promise.race([invoker.invoke(event, info), timedOut])
      } finally {
        answered.abort()
      }
    },
  }
}
