/** Windows of a number of records of one key: nothing but the records themselves closes them. */
import type { StateValue } from '../../../state/state-store.ts'
import type { CountWindows } from '../../../time/windows/count-window.ts'
import { emitResult, type WindowDeclaration, type WindowKind, WindowState } from './window-parts.ts'

/** The window that is not full yet. */
interface Filling {
  readonly count: number
  readonly leastMs: number
  readonly largestMs: number
  readonly accumulator: unknown
}

export function countWindows<T>(
  windows: CountWindows,
  { name, aggregator }: WindowDeclaration<T>,
): WindowKind<T, Filling> {
  return {
    encode: ({ count, leastMs, largestMs, accumulator }) => [count, leastMs, largestMs, aggregator.encode(accumulator)],
    decode(stored) {
      const [count, leastMs, largestMs, accumulator] = stored as readonly [number, number, number, StateValue]
      return { count, leastMs, largestMs, accumulator: aggregator.decode(accumulator) }
    },
    link(parts) {
      const state = new WindowState<Filling>(name, parts.context)
      return {
        record(value, record) {
          const timeMs = record.eventTimeMs
          const before = state.get()
          const filling: Filling = {
            count: (before?.count ?? 0) + 1,
            leastMs: Math.min(before?.leastMs ?? timeMs, timeMs),
            largestMs: Math.max(before?.largestMs ?? timeMs, timeMs),
            accumulator: aggregator.add(before === undefined ? aggregator.init() : before.accumulator, value, record),
          }
          if (filling.count < windows.count) {
            state.set(filling)
            return
          }
          state.clear()
          const window = { startMs: filling.leastMs, endMs: filling.largestMs + 1 }
          const result = aggregator.result(filling.accumulator)
          emitResult(parts, { window, revision: 0, isFinal: true, isRetracted: false, value: result })
        },
      }
    },
  }
}
