/**
 * Windows of a number of records of one key: nothing but the records themselves closes them.
 *
 * A record beyond its source's skew limit counts as any other, but its time is a mistake and makes no bounds. Where all of a window
 * are such, the result is as late for windows of event time behind as they are themselves.
 */
import type { StateValue } from '../../../state/state-store.ts'
import type { CountWindows } from '../../../time/windows/count-window.ts'
import { emitResult, type WindowDeclaration, type WindowKind, WindowState } from './window-parts.ts'

/** The window that is not full yet. */
interface Filling {
  readonly count: number
  /** Null where no record has come yet whose time counts. */
  readonly leastMs: number | null
  readonly largestMs: number | null
  readonly accumulator: unknown
}

export function countWindows<T>(
  windows: CountWindows,
  { name, aggregator }: WindowDeclaration<T>,
): WindowKind<T, Filling> {
  return {
    encode: ({ count, leastMs, largestMs, accumulator }) => [count, leastMs, largestMs, aggregator.encode(accumulator)],
    decode(stored) {
      const [count, leastMs, largestMs, accumulator] = stored as readonly [
        number,
        number | null,
        number | null,
        StateValue,
      ]
      return { count, leastMs, largestMs, accumulator: aggregator.decode(accumulator) }
    },
    link(parts) {
      const state = new WindowState<Filling>(name, parts.context)
      return {
        record(value, record) {
          const timeMs = record.eventTimeMs
          const before = state.get()
          const { leastMs = null, largestMs = null } = before ?? {}
          const isSkewed = parts.context.times().ownMarkMs === Number.POSITIVE_INFINITY
          const filling: Filling = {
            count: (before?.count ?? 0) + 1,
            leastMs: isSkewed ? leastMs : Math.min(leastMs ?? timeMs, timeMs),
            largestMs: isSkewed ? largestMs : Math.max(largestMs ?? timeMs, timeMs),
            accumulator: aggregator.add(before === undefined ? aggregator.init() : before.accumulator, value, record),
          }
          if (filling.count < windows.count) {
            state.set(filling)
            return
          }
          state.clear()
          const window = { startMs: filling.leastMs ?? timeMs, endMs: (filling.largestMs ?? timeMs) + 1 }
          const result = aggregator.result(filling.accumulator)
          const of = filling.leastMs === null ? record : undefined
          emitResult(parts, { window, revision: 0, isFinal: true, isRetracted: false, value: result }, of)
        },
      }
    },
  }
}
