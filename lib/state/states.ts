/**
 * The kinds of keyed state, as a topology declares them: inert data. `linkStates` gives steps their views.
 *
 * A value is what the table returns unchanged: numbers, bigints, text, booleans, null, bytes, lists and plain objects of
 * them. Anything else is refused on its first use. What a view hands out cannot be changed (it is frozen; where bytes are in
 * it, it is a copy): change a copy and `set` it.
 */
import { ConfigurationError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type CheckedOptions, checkOptions, type StateOptions } from './state-options.ts'
import type { StateValue } from './state-store.ts'
import { CheckedCopy } from './values.ts'

export type { StateOptions, Ttl, Upcast } from './state-options.ts'

/** One value of a key. */
export interface ValueView<T> {
  /** Undefined where nothing was set, or it is gone. */
  get(): T | undefined
  set(value: T): void
  clear(): void
}

/** A list of a key, the oldest element first. */
export interface ListView<T> {
  /** Empty where nothing was added. */
  get(): readonly T[]
  /** Adds the newest element; beyond `atMost` the oldest leaves. */
  add(value: T): void
  /** Puts another list in its place; of more than `atMost` elements the last ones are kept. */
  set(list: readonly T[]): void
  clear(): void
}

/** The entries of a key's map, each in an item of its own. */
export interface MapView<V> {
  get(entry: string): V | undefined
  has(entry: string): boolean
  set(entry: string, value: V): void
  delete(entry: string): void
  /** All of them, in the order of the UTF-8 bytes of their names. It reads the whole map of the key. */
  entries(): readonly (readonly [entry: string, value: V])[]
}

/** Values of a key that are reduced to one as they come. */
export interface ReducingView<T> {
  /** Undefined where nothing was added. */
  get(): T | undefined
  add(value: T): void
  clear(): void
}

/** Values of a key that are gathered in an accumulator as they come. */
export interface AggregatingView<I, O> {
  /** The result so far; undefined where nothing was added. */
  get(): O | undefined
  add(value: I): void
  clear(): void
}

/** The state of the slot that the record's key belongs to. */
export interface OperatorView<T> {
  get(): T
}

/** Carries the type of the view; nothing is there at run time. */
declare const viewType: unique symbol

interface Declared<Kind extends string, View> {
  readonly kind: Kind
  readonly [viewType]?: View
}

interface KeyedDeclaration<Kind extends string, View> extends Declared<Kind, View>, CheckedOptions {}

/** Three pure functions: an accumulator to begin with, the accumulator after one more value, and what it amounts to. */
export interface Aggregation<I, A, O> {
  init(): A
  add(accumulator: A, value: I): A
  result(accumulator: A): O
}

/** What {@link valueState} declares. */
export interface ValueState<T> extends KeyedDeclaration<'value', ValueView<T>> {}

/** What {@link listState} declares. */
export interface ListState<T> extends KeyedDeclaration<'list', ListView<T>> {
  readonly atMost: number
}

/** What {@link mapState} declares. */
export interface MapState<V> extends KeyedDeclaration<'map', MapView<V>> {}

/** What {@link reducingState} declares. */
export interface ReducingState<T> extends KeyedDeclaration<'reducing', ReducingView<T>> {
  reduce(a: T, b: T): T
}

/** What {@link aggregatingState} declares. */
export interface AggregatingState<I, A, O>
  extends KeyedDeclaration<'aggregating', AggregatingView<I, O>>,
    Aggregation<I, A, O> {}

/** A value that steps get and set as it is, and that the table holds in another shape: see {@link packedState}. */
export interface PackedState<T> extends KeyedDeclaration<'packed', ValueView<T>>, Packing<T> {}

/** From a value to what the table returns unchanged, and back. */
export interface Packing<T> {
  encode(value: T): StateValue
  /** Gets what `encode` made once, frozen but for bytes. */
  decode(stored: StateValue): T
}

/** What a step may know of the record that an operator state adds. */
export type StateRecord = Pick<RecordInfo, 'source' | 'partition' | 'position' | 'arrivalTimeMs' | 'eventTimeMs'>

/** One value per slot of a stage, folded over the slot's records: see {@link operatorState}. */
export interface OperatorState<T, I> extends Declared<'operator', OperatorView<T>> {
  readonly initial: T
  add(current: T, value: I, record: StateRecord): T
}

/** A state of a key. */
export type StateDeclaration =
  | ValueState<unknown>
  | ListState<unknown>
  | MapState<unknown>
  | ReducingState<unknown>
  | AggregatingState<unknown, unknown, unknown>
  | PackedState<unknown>

/** A state of a slot. */
export type OperatorStateDeclaration = OperatorState<unknown, unknown>

/** The view of one declaration. */
export type ViewOf<D> = D extends Declared<string, infer View> ? View : never

/** The views that a step gets of what was declared, by name. */
export type StatesOf<D extends Readonly<Record<string, StateDeclaration | OperatorStateDeclaration>>> = {
  readonly [Name in keyof D]: ViewOf<D[Name]>
}

/**
 * One value per key.
 *
 * Throws a {@link ConfigurationError} for a TTL of no length and for a missing upcaster.
 *
 * @example
 * state: { position: valueState<Position>() },
 * step: (update, { state }) => {
 *   const before = state.position.get()
 *   state.position.set(update.position)
 *   return before === undefined ? [] : [{ from: before, to: update.position }]
 * }
 *
 * @example
 * // Version 2 also knows the terminal: an older value is read as one of terminal "?".
 * valueState<{ gate: string; terminal: string }>({
 *   version: 2,
 *   upcast: { 1: (old: { gate: string }) => ({ ...old, terminal: '?' }) },
 * })
 */
export function valueState<T>(options?: StateOptions<T>): ValueState<T> {
  return { kind: 'value', ...checkOptions('valueState', options) }
}

/**
 * A list of the newest `atMost` elements per key, in the key's item: for short lists. Its version and its upcasters are
 * those of the whole list.
 *
 * Throws a {@link ConfigurationError} where `atMost` is no integer above 0.
 *
 * @example
 * state: { recent: listState<Flight>({ atMost: 10 }) },
 * step: (flight, { state }) => {
 *   state.recent.add(flight)
 *   return [state.recent.get()]
 * }
 */
export function listState<T>(
  options: { /** The most elements that are kept. */ readonly atMost: number } & StateOptions<readonly T[]>,
): ListState<T> {
  const { atMost, ...common } = options
  if (!Number.isSafeInteger(atMost) || atMost < 1) {
    throw new ConfigurationError(`listState: atMost is ${atMost}: give the most elements to keep, an integer above 0.`)
  }
  return { kind: 'list', atMost, ...checkOptions('listState', common as StateOptions<readonly T[]>) }
}

/**
 * Entries by name, each in an item of its own: for many entries per key, of which a record needs a few. Entries that
 * `prefetch` names are loaded with the batch; any other is loaded when a step asks for it, and the step runs again.
 *
 * @example
 * state: { byDay: mapState<number>({ ttl: { by: 'event-time', after: days(30) } }) },
 * prefetch: (trip) => ({ byDay: [trip.day] }),
 * step: (trip, { state }) => {
 *   state.byDay.set(trip.day, (state.byDay.get(trip.day) ?? 0) + trip.km)
 * }
 */
export function mapState<V>(options?: StateOptions<V>): MapState<V> {
  return { kind: 'map', ...checkOptions('mapState', options) }
}

/**
 * One value per key, to which `reduce` brings any number of them. `reduce` is pure; it need not be commutative.
 *
 * @example
 * state: { worst: reducingState<number>((a, b) => Math.max(a, b)) },
 * step: (flight, { state }) => state.worst.add(flight.delayMinutes)
 */
export function reducingState<T>(reduce: (a: T, b: T) => T, options?: StateOptions<T>): ReducingState<T> {
  return { kind: 'reducing', reduce, ...checkOptions('reducingState', options) }
}

/**
 * An accumulator per key, and what it amounts to. The accumulator is the value that is kept, and that TTL, version and
 * upcasters are about.
 *
 * @example
 * state: {
 *   mean: aggregatingState({
 *     init: () => ({ count: 0, sum: 0 }),
 *     add: ({ count, sum }, minutes: number) => ({ count: count + 1, sum: sum + minutes }),
 *     result: ({ count, sum }) => sum / count,
 *   }),
 * }
 */
export function aggregatingState<I, A, O>(
  { init, add, result }: Aggregation<I, A, O>,
  options?: StateOptions<A>,
): AggregatingState<I, A, O> {
  return { kind: 'aggregating', init, add, result, ...checkOptions('aggregatingState', options) }
}

/**
 * One value per key that operators of the library keep in a shape of their own: a draft hands out and takes the very value,
 * without a copy and without a check, and calls `encode` once per commit. So a value must never be changed: a step sets
 * another one. Whatever of it is a user's has to be checked (`checkValue`) in the step that sets it: what the table cannot
 * return unchanged is refused at the commit only, which no record can be blamed for. Version and upcasters are about what
 * `encode` makes.
 *
 * @example
 * packedState<ReadonlyMap<number, number>>({
 *   encode: (counts) => [...counts].flat(),
 *   decode: (stored) => new Map(pairsOf(stored as readonly number[])),
 * })
 */
export function packedState<T>(options: Packing<T> & StateOptions<StateValue>): PackedState<T> {
  const { encode, decode, ...common } = options
  return { kind: 'packed', encode, decode, ...checkOptions('packedState', common as StateOptions<StateValue>) }
}

/**
 * One value per slot of the stage: a pure fold over all records of the slot, whatever their keys, in the order of the log.
 * Steps read what it is after the record at hand; they cannot change it. A slot keeps it when shards are split or merged.
 *
 * Throws a TerminalError where the table could not return `initial` unchanged.
 *
 * @example
 * state: { seen: operatorState({ initial: 0, add: (seen, _order: Order) => seen + 1 }) },
 * step: (order, { state }) => [{ order, share: 1 / state.seen.get() }]
 */
export function operatorState<T, I>(spec: {
  readonly initial: T
  add(current: T, value: I, record: StateRecord): T
}): OperatorState<T, I> {
  // It is handed to every slot's first `add`, and to steps: none of them may change it for the others.
  const initial = new CheckedCopy('operatorState: initial', 'frozen').of(spec.initial) as T
  return { kind: 'operator', initial, add: spec.add }
}
