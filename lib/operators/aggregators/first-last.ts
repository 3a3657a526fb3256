import { type Aggregator, frozen, type Given, type OrNull, select } from './aggregator.ts'
import { compareTimed, decodeTimed, encodeTimed, type Timed } from './timed.ts'

/**
 * The value of the earliest event time; of several, the one whose content comes first. With a selector it is about what
 * that gives.
 *
 * The result is `null` where the selector left out every record. Throws a TerminalError for what the state table could
 * not return unchanged.
 *
 * @example
 * { opened: first((t: Trade) => t.price) }
 */
export function first<T, V = T>(by?: (value: T) => V): Aggregator<T, NoInfer<OrNull<V, Given<V>>>> {
  return outermost('first', by, (a, b) => compareTimed(a, b) <= 0)
}

/**
 * The value of the latest event time; of several, the one whose content comes last. With a selector it is about what that
 * gives.
 *
 * The result is `null` where the selector left out every record. Throws a TerminalError for what the state table could
 * not return unchanged.
 *
 * @example
 * { closed: last((t: Trade) => t.price) }
 */
export function last<T, V = T>(by?: (value: T) => V): Aggregator<T, NoInfer<OrNull<V, Given<V>>>> {
  return outermost('last', by, (a, b) => compareTimed(a, b) >= 0)
}

function outermost<T, V>(
  name: 'first' | 'last',
  by: ((value: T) => V) | undefined,
  isOuter: (a: Timed, b: Timed) => boolean,
): Aggregator<T, OrNull<V, Given<V>>> {
  const aggregator: Aggregator<T, unknown, Timed | null> = {
    kind: name,
    init: () => null,
    add(kept, value, { eventTimeMs }) {
      const selected: unknown = by === undefined ? value : select(name, by, value)
      if (selected === undefined) return kept
      const candidate = { timeMs: eventTimeMs, value: frozen(selected, name) }
      return kept !== null && isOuter(kept, candidate) ? kept : candidate
    },
    merge: (a, b) => (a === null || b === null ? (a ?? b) : isOuter(a, b) ? a : b),
    result: (kept) => kept?.value ?? null,
    encode: (kept) => kept && encodeTimed(kept),
    decode: (stored) => (stored === null ? null : decodeTimed(stored)),
  }
  return aggregator as Aggregator<T, OrNull<V, Given<V>>>
}
