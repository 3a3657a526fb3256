import { type Aggregator, frozen, type Given, type OrNull, refuseValue, select } from './aggregator.ts'
import { compareOrdered, isOrdered, type Ordered } from './order.ts'

/**
 * The least of numbers, bigints or texts. The result is `null` where the selector left out every record; throws a
 * TerminalError for anything else than those.
 *
 * @example
 * { cheapest: min((b: Booking) => b.price) }
 */
export function min<T, V extends Ordered | undefined>(by: (value: T) => V): Aggregator<T, OrNull<V, Given<V>>> {
  return extreme('min', by, (a, b) => compareOrdered(a, b) <= 0)
}

/**
 * The largest of numbers, bigints or texts. The result is `null` where the selector left out every record; throws a
 * TerminalError for anything else than those.
 *
 * @example
 * { dearest: max((b: Booking) => b.price) }
 */
export function max<T, V extends Ordered | undefined>(by: (value: T) => V): Aggregator<T, OrNull<V, Given<V>>> {
  return extreme('max', by, (a, b) => compareOrdered(a, b) >= 0)
}

function extreme<T, V extends Ordered | undefined>(
  name: 'min' | 'max',
  by: (value: T) => V,
  isBetter: (a: Ordered, b: Ordered) => boolean,
): Aggregator<T, OrNull<V, Given<V>>> {
  const aggregator: Aggregator<T, Ordered | null, Ordered | null> = {
    kind: name,
    init: () => null,
    add(best, value) {
      const candidate: unknown = select(name, by, value)
      if (candidate === undefined) return best
      if (!isOrdered(candidate)) refuseValue(name, candidate, 'give a finite number, a bigint or text')
      if (best !== null && isBetter(best, candidate)) return best
      return Number.isSafeInteger(candidate) ? (candidate as number) + 0 : (frozen(candidate, name) as Ordered)
    },
    merge: (a, b) => (a === null || b === null ? (a ?? b) : isBetter(a, b) ? a : b),
    result: (best) => best,
    encode: (best) => best,
    decode: (stored) => stored as Ordered | null,
  }
  return aggregator as Aggregator<T, OrNull<V, Given<V>>>
}
