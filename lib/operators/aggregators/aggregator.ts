/**
 * What every aggregator is: a pure, mergeable summary of a bag of values.
 *
 * 1. Accumulators are never changed: `add` and `merge` give new ones, so a step that is taken back leaves nothing behind.
 * 2. What `result` gives depends on the values and their event times alone, whatever order they were added in and however
 *    they were split into accumulators and merged.
 * 3. `decode(encode(a))` is as good as `a`: a key that is loaded goes on as one that was never stored.
 */
import { describeError, TerminalError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { CheckedCopy, freezeValue } from '../../state/values.ts'
import { refusePromise } from '../operator.ts'

/** What an aggregator may know of the record that a value comes from. */
export interface AggregatedRecord {
  /** In ms since 1970 UTC. */
  readonly eventTimeMs: number
}

/** Makes one `O` of any number of values `T`. Accumulators `A` are its own. */
export interface Aggregator<T, O, A = unknown> {
  /**
   * By what the accumulators in the table are told from those of others: another kind under the same name is refused. It has the
   * parameters in it by which they are laid out, such as `topN(order: largest)`.
   * @default 'custom'
   */
  readonly kind?: string
  init(): A
  add(accumulator: A, value: T, record: AggregatedRecord): A
  merge(a: A, b: A): A
  result(accumulator: A): O
  /** As the state table keeps it. */
  encode(accumulator: A): StateValue
  /** Gets what `encode` made once; it cannot be changed. */
  decode(stored: StateValue): A
}

/** Aggregators by the names that their results have. */
export type Aggregators<T> = { readonly [name: string]: Aggregator<T, unknown> }

/** The results by name. */
export type ResultsOf<F> = { readonly [N in keyof F]: F[N] extends Aggregator<never, infer O> ? O : never }

/**
 * Four pure functions of the user's. Accumulators are plain data, as states are: numbers, bigints, text, booleans, null,
 * bytes, lists and plain objects. `merge` is associative and commutative, and no order of `add` makes a difference, or else
 * results depend on the order of arrival.
 */
export interface CustomAggregation<T, A, O> {
  init(): A
  add(accumulator: A, value: T, record: AggregatedRecord): A
  merge(a: A, b: A): A
  result(accumulator: A): O
}

/** What a selector gives for a value to be left out. */
export type Given<V> = Exclude<V, undefined>
/** `null` where every value was left out, which can only be where the selector may give `undefined`. */
export type OrNull<V, O> = undefined extends V ? O | null : O

/**
 * An aggregator of your own, for use among named ones. What `add` and `merge` give is checked like any state: a
 * {@link TerminalError} says where it holds what the table could not return unchanged. One that comes to keep something else needs
 * another name: open windows have what the one before kept, and nobody else can tell.
 *
 * @example
 * // The widest gap between the least and the largest price.
 * const spread = custom({
 *   init: () => ({ least: null as number | null, largest: 0 }),
 *   add: ({ least, largest }, bid: Bid) => ({ least: Math.min(least ?? bid.price, bid.price), largest: Math.max(largest, bid.price) }),
 *   merge: (a, b) => a.least === null ? b : b.least === null ? a
 *     : { least: Math.min(a.least, b.least), largest: Math.max(a.largest, b.largest) },
 *   result: ({ least, largest }) => largest - (least ?? largest),
 * })
 */
export function custom<T, A, O>({ init, add, merge, result }: CustomAggregation<T, A, O>): Aggregator<T, O, A> {
  /** Accumulators that may change: what `init` gave, which nobody has looked through, and what holds bytes, which cannot be frozen. */
  const open = new WeakSet<object>()
  const opened = (accumulator: A): A => {
    if (typeof accumulator === 'object' && accumulator !== null) open.add(accumulator)
    return accumulator
  }
  const kept = (what: string, accumulator: A): A => {
    if (typeof accumulator === 'number' && Number.isSafeInteger(accumulator)) return accumulator
    refusePromise(`custom aggregator's \`${what}\``, accumulator)
    const copy = new CheckedCopy(`the accumulator that \`${what}\` of a custom aggregator gave`, 'frozen')
    const frozenCopy = copy.of(accumulator) as A
    return copy.hasBytes ? opened(frozenCopy) : frozenCopy
  }
  /** Most values change little: one that was kept before is frozen and was looked through, so it is not copied again. */
  const isKept = (accumulator: A): boolean =>
    typeof accumulator === 'object' && accumulator !== null && !open.has(accumulator)
  return {
    init: () => opened(init()),
    add(accumulator, value, record) {
      const after = add(accumulator, value, record)
      return after === accumulator && isKept(after) ? after : kept('add', after)
    },
    merge(a, b) {
      const both = merge(a, b)
      return (both === a || both === b) && isKept(both) ? both : kept('merge', both)
    },
    result: (accumulator) => {
      const amounts = result(accumulator)
      refusePromise('custom aggregator', amounts)
      return amounts
    },
    encode: (accumulator) => accumulator as StateValue,
    // It is frozen already, and walked only to find out whether there are bytes in it.
    decode: (stored) => (freezeValue(stored) ? opened(stored as A) : (stored as A)),
  }
}

/** A frozen copy of a value that an accumulator keeps. Throws a TerminalError for what the table could not return. */
export function frozen(value: unknown, path: string): StateValue {
  return new CheckedCopy(path, 'frozen').of(value)
}

/** Calls an aggregator's selector. A promise is refused, as steps are synchronous. */
export function select<T, V>(aggregator: string, by: (value: T) => V, value: T): V {
  const selected = by(value)
  if (typeof selected === 'object') refusePromise(aggregator, selected)
  return selected
}

/** Throws a {@link TerminalError} for a value that the aggregator cannot take. */
export function refuseValue(aggregator: string, value: unknown, wanted: string): never {
  throw new TerminalError(
    `the selector of ${aggregator} gave ${shown(value)}: ${wanted}, or undefined to leave the record out`,
    { code: 'not-aggregable' },
  )
}

function shown(value: unknown): string {
  if (value === null || typeof value === 'number') return String(value)
  if (value instanceof Error) return describeError(value).name
  return `a ${typeof value}`
}
