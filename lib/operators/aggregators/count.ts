import { refusePromise } from '../operator.ts'
import type { Aggregator } from './aggregator.ts'

/**
 * How many records there are or, with a predicate, for how many of them it holds.
 *
 * @example
 * { flights: count(), late: count((f: Flight) => f.delayMinutes > 15) }
 */
export function count<T>(where?: (value: T) => boolean): Aggregator<T, number, number> {
  return {
    kind: 'count',
    init: () => 0,
    add: where === undefined ? (sum) => sum + 1 : (sum, value) => (holds(where(value)) ? sum + 1 : sum),
    merge: (a, b) => a + b,
    result: (sum) => sum,
    encode: (sum) => sum,
    decode: (stored) => stored as number,
  }
}

function holds(answer: unknown): boolean {
  if (typeof answer === 'object') refusePromise('count', answer)
  return Boolean(answer)
}
