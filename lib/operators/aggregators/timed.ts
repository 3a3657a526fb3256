/** A value with its event time, in the order of both: by time, ties by content. */
import type { StateValue } from '../../state/state-store.ts'
import { compareContent } from './order.ts'

export interface Timed {
  readonly timeMs: number
  readonly value: StateValue
}

export function compareTimed(a: Timed, b: Timed): number {
  return a.timeMs === b.timeMs ? compareContent(a.value, b.value) : a.timeMs - b.timeMs
}

export const encodeTimed = ({ timeMs, value }: Timed): StateValue => [timeMs, value]

export function decodeTimed(stored: StateValue): Timed {
  const [timeMs, value] = stored as readonly [number, StateValue]
  return { timeMs, value }
}
