/** The stream builder: each call adds one step to the topology's graph and returns the stream behind it. */
import { ConfigurationError, describeError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { checkSlots, defaultSlots } from '../core/slot.ts'
import type { Aggregators, CustomAggregation, ResultsOf } from '../operators/aggregators/aggregator.ts'
import { type Arm, type Otherwise, otherwise, type Predicate } from '../operators/branch.ts'
import { type Enrichment, enrich } from '../operators/enrich/enrich.ts'
import type { Freshness, Table } from '../operators/enrich/table.ts'
import { filter } from '../operators/filter.ts'
import { flatMap } from '../operators/flat-map.ts'
import { type AggregateOptions, aggregate } from '../operators/keyed/aggregate.ts'
import type { StateDeclarations } from '../operators/keyed/declarations.ts'
import { type Deduplication, deduplicate } from '../operators/keyed/deduplicate.ts'
import type { KeyedOperator } from '../operators/keyed/keyed-operator.ts'
import { type Process, process } from '../operators/keyed/process.ts'
import { reduce } from '../operators/keyed/reduce.ts'
import type { SideDeclarations, SideValue } from '../operators/keyed/side-output.ts'
import type { TimerDeclarations } from '../operators/keyed/timers.ts'
import {
  lateSide,
  type TimeWindows,
  type WindowAggregation,
  type Windows,
  windowed,
} from '../operators/keyed/window/window.ts'
import type { WindowEmission, WindowResult } from '../operators/keyed/window/window-result.ts'
import { map } from '../operators/map.ts'
import type { Operator } from '../operators/operator.ts'
import type { Key } from '../state/key-encoding.ts'
import { checkVersion, type SchemaVersion } from '../state/state-options.ts'
import type { Aggregation } from '../state/states.ts'
import type { CountWindows } from '../time/windows/count-window.ts'
import type { GraphNode, KeyByNode, KeyedNode } from './graph.ts'
import type { SinkHandle, SourceHandle } from './handles.ts'

/** A type guard, so that an arm's stream has the narrower type. */
type Guard<T, S extends T> = (value: T, record: RecordInfo) => value is S
type ArmPredicate<T> = Predicate<T> | Otherwise
type GuardedBy<T, A> = A extends Guard<T, infer S> ? S : never

/** The type that an arm's stream carries: what its guard proves; for `otherwise`, what no other arm's guard took. */
type ArmType<T, A, K extends keyof A> = A[K] extends Otherwise
  ? Exclude<T, { [J in keyof A]: GuardedBy<T, A[J]> }[keyof A]>
  : A[K] extends Guard<T, infer S>
    ? S
    : T

/** At least one arm must be `otherwise`: a branch is exhaustive, so no value can fall through it. */
type Exhaustive<A> = Otherwise extends A[keyof A] ? A : A & { readonly otherwise: Otherwise }

/** A value that is not a promise: steps are synchronous. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T

/** Where the builder puts what it makes. */
export interface GraphBuilder {
  add<N extends GraphNode>(node: N): N
}

/**
 * A stream of values of type `T`. Steps must be pure: the same record gives the same outputs on every attempt, and the
 * value at hand is never changed.
 */
export class Stream<T> {
  readonly #builder: GraphBuilder
  readonly #node: GraphNode

  /** Streams are made by {@link Topology.source} and by the steps below, never by hand. */
  constructor(builder: GraphBuilder, node: GraphNode) {
    this.#builder = builder
    this.#node = node
  }

  #then<O>(operator: Operator<T, O>): Stream<O> {
    const node = { type: 'operator', kind: operator.kind, operator: operator as Operator, input: this.#node } as const
    return new Stream<O>(this.#builder, this.#builder.add(node))
  }

  /**
   * Turns each value into one other.
   *
   * @example
   * payments.map((p) => ({ ...p, cents: Math.round(p.amount * 100) }))
   */
  map<O>(step: (value: T, record: RecordInfo) => O & Synchronous<O>): Stream<O> {
    return this.#then(map<T, O>(step))
  }

  /**
   * Keeps the values for which the predicate holds; a type guard narrows the stream.
   *
   * @example
   * bookings.filter((b) => b.status === 'confirmed')
   */
  filter<S extends T>(predicate: Guard<T, S>): Stream<S>
  filter(predicate: Predicate<T>): Stream<T>
  filter(predicate: Predicate<T>): Stream<T> {
    return this.#then(filter<T>(predicate))
  }

  /**
   * Turns each value into any number of others, in order.
   *
   * @example
   * orders.flatMap((order) => order.lines)
   */
  flatMap<O>(step: (value: T, record: RecordInfo) => Iterable<O>): Stream<O> {
    return this.#then(flatMap<T, O>(step))
  }

  /**
   * Splits the stream into named arms. A value goes to the first arm, in the order written, whose predicate holds; the
   * arm `otherwise` takes the rest and must be there, last, so that no value falls through.
   *
   * @example
   * const { large, small } = payments.branch({ large: (p) => p.amount > 1_000, small: otherwise })
   */
  branch<A extends { readonly [name: string]: ArmPredicate<T> }>(
    arms: A & Exhaustive<A>,
  ): { readonly [K in keyof A]: Stream<ArmType<T, A, K>> } {
    const declared = Object.entries(arms).map(([name, takes]) => ({ name, takes: takes as Arm<unknown>['takes'] }))
    checkArms(declared)
    const branch = this.#builder.add({
      type: 'branch',
      kind: 'branch',
      arms: declared,
      input: this.#node,
    })
    const streams = declared.map(({ name }) => {
      const arm = this.#builder.add({ type: 'arm', name, input: branch })
      return [name, new Stream(this.#builder, arm)] as const
    })
    return Object.fromEntries(streams) as { readonly [K in keyof A]: Stream<ArmType<T, A, K>> }
  }

  /**
   * One stream of the values of several, in the order of the records they come from.
   *
   * @example
   * const all = cardPayments.merge(bankPayments)
   */
  merge<O extends readonly unknown[]>(...others: { readonly [I in keyof O]: Stream<O[I]> }): Stream<T | O[number]> {
    const foreign = others.find((other) => other.#builder !== this.#builder)
    if (foreign) throw new ConfigurationError('merge() was given a stream of another topology: declare both in one.')
    const inputs = [this.#node, ...others.map((other) => other.#node)]
    if (new Set(inputs).size < inputs.length) {
      throw new ConfigurationError(
        'merge() was given the same stream twice, so each value would come twice: use flatMap for that.',
      )
    }
    return new Stream<T | O[number]>(this.#builder, this.#builder.add({ type: 'merge', kind: 'merge', inputs }))
  }

  /**
   * Joins a row of a table to each value. The table is a {@link staticTable}, a {@link refreshedTable} or a
   * {@link lookup}; in each case the row is in memory before the step runs.
   *
   * @example
   * flights.enrich({ from: airports, key: (f) => f.origin, join: (f, airport) => ({ ...f, city: airport?.city }) })
   */
  enrich<V, O>(enrichment: {
    readonly from: Table<V>
    readonly key: (value: T, record: RecordInfo) => string | undefined
    readonly join: (value: T, row: V | undefined, freshness: Freshness) => O & Synchronous<O>
  }): Stream<O> {
    const node = {
      type: 'enrich',
      kind: 'enrich',
      operator: enrich(enrichment as Enrichment<T, V, O>) as Operator,
      table: enrichment.from as Table,
      input: this.#node,
    } as const
    return new Stream<O>(this.#builder, this.#builder.add(node))
  }

  /**
   * Says by which key the operators behind it keep their state. From here on the records of one key are stepped one after
   * the other, wherever they came from. The name owns the state, the stream and the table of the stage that begins here,
   * so it is unique in the topology and stays. Without a keyed operator nothing is re-keyed, and `plan` hints at it.
   *
   * Throws a {@link ConfigurationError} for a number of slots that cannot be had, and for a missing upcaster.
   *
   * @example
   * bookings.keyBy('by-hotel', (b) => b.hotelId)
   * orders.keyBy('by-customer', (o) => [o.tenant, o.customer], { slots: 256 })
   *
   * @example
   * // Since version 2 values say their currency. Those that a deployment before sent are still on their way.
   * payments.keyBy('by-account', (p) => p.account, {
   *   version: 2,
   *   upcast: { 1: (old: Omit<Payment, 'currency'>) => ({ ...old, currency: 'EUR' }) },
   * })
   */
  keyBy<K extends Key>(name: string, key: (value: T) => K, options: KeyByOptions<NoInfer<T>> = {}): KeyedStream<T, K> {
    const { slots = defaultSlots, ...schema } = options
    const node: KeyByNode = {
      type: 'key-by',
      kind: 'keyBy',
      name,
      key: key as KeyByNode['key'],
      slots: slotsFor(name, slots),
      schema: checkVersion(`keyBy "${name}"`, schema),
      input: this.#node,
    }
    return new KeyedStream<T, K>(this.#builder, this.#builder.add(node))
  }

  /**
   * Writes the stream to a sink of its type or of a wider one.
   *
   * @example
   * validated.to(paymentsValidated)
   */
  to<S>(this: Stream<S>, sink: SinkHandle<S>): void {
    this.#builder.add({ type: 'to', kind: 'to', sink: sink.declaration, input: this.#node })
  }
}

/**
 * What a `keyBy` may say: its slots, and the schema version of the values that travel to its stage, which readers of a later
 * release bring up to date.
 */
export type KeyByOptions<T = unknown> = {
  /**
   * Into how many parts the keys fall; a stage never runs more than one function per slot at a time. A power of two from 1
   * to 4,096. It stays: state is found by it.
   * @default 64
   */
  readonly slots?: number
} & SchemaVersion<T>

/** The streams of an operator's side outputs, by name. */
export type SideStreams<S> = { readonly [N in keyof S]: Stream<SideValue<S[N]>> }

/**
 * A stream whose records are meant by their key `K`. The operators here keep state per key, and each change is made exactly
 * once. Steps without state (`map`, `filter` ...) give a plain stream: put them before the `keyBy` or after the last
 * operator that keeps state.
 */
export class KeyedStream<T, K extends Key = string> extends Stream<T> {
  readonly #builder: GraphBuilder
  readonly #node: KeyByNode | KeyedNode

  /** Keyed streams are made by {@link Stream.keyBy} and by the operators below, never by hand. */
  constructor(builder: GraphBuilder, node: KeyByNode | KeyedNode) {
    super(builder, node)
    this.#builder = builder
    this.#node = node
  }

  #add(operator: KeyedOperator<T, never>): KeyedNode {
    const { kind, name } = operator
    const node = { type: 'keyed', kind, name, operator: operator as KeyedOperator, input: this.#node } as const
    return this.#builder.add(node)
  }

  /**
   * Runs any pure step over the states of the value's key. It returns its outputs (an array, a generator, or nothing); a
   * side output has a stream of its own, of another type.
   *
   * Throws a {@link ConfigurationError} where it declares no state, or a name that cannot be one.
   *
   * @example
   * const drivers = positions.keyBy('by-driver', (p) => p.driverId).process('driver-state', {
   *   state: { last: valueState<Position>(), kmByDay: mapState<number>() },
   *   sides: { alerts: sideOutput<Alert>() },
   *   prefetch: (p) => ({ kmByDay: [p.day] }),
   *   step: (p, { key, state, sides }) => {
   *     const km = (state.kmByDay.get(p.day) ?? 0) + distanceKm(state.last.get(), p)
   *     state.last.set(p)
   *     state.kmByDay.set(p.day, km)
   *     if (km > 900) sides.alerts.emit({ driverId: key, km })
   *     return [{ driverId: key, day: p.day, km }]
   *   },
   * })
   * drivers.to(distances)
   * drivers.sides.alerts.to(alerts)
   */
  process<
    D extends StateDeclarations,
    O = never,
    S extends SideDeclarations = Record<never, never>,
    M extends TimerDeclarations = Record<never, never>,
  >(name: string, declared: Process<T, O, K, D, S, M>): ProcessedStream<O, K, S> {
    const node = this.#add(process<T, O, K, D, S, M>(name, declared) as KeyedOperator<T, never>)
    return new ProcessedStream<O, K, S>(this.#builder, node)
  }

  /**
   * Gathers the values of each key in an accumulator and hands on what it amounts to. The functions are pure.
   *
   * Throws a {@link ConfigurationError} where an option makes no sense.
   *
   * @example
   * rides.keyBy('by-city', (r) => r.city).aggregate(
   *   'mean-fare',
   *   {
   *     init: () => ({ count: 0, cents: 0 }),
   *     add: ({ count, cents }, ride) => ({ count: count + 1, cents: cents + ride.cents }),
   *     result: ({ count, cents }) => cents / count,
   *   },
   *   { emit: 'per-batch' },
   * )
   */
  aggregate<A, O>(
    name: string,
    aggregation: Aggregation<T, A, O>,
    options: AggregateOptions<NoInfer<A>>,
  ): KeyedStream<O, K> {
    const node = this.#add(aggregate<T, A, O>(name, aggregation, options) as KeyedOperator<T, never>)
    return new KeyedStream<O, K>(this.#builder, node)
  }

  /**
   * Brings the values of each key to one of their own type, and hands that on. The first value is handed on as it is. The
   * function is pure; it need not be commutative, as a key's values come in order.
   *
   * Throws a {@link ConfigurationError} where an option makes no sense.
   *
   * @example
   * readings.keyBy('by-sensor', (r) => r.sensor).reduce('highest', (a, b) => (b.celsius > a.celsius ? b : a), {
   *   emit: 'on-update',
   *   ttl: { by: 'event-time', after: days(1) },
   * })
   */
  reduce(name: string, step: (reduced: T, value: T) => T, options: AggregateOptions<NoInfer<T>>): KeyedStream<T, K> {
    const node = this.#add(reduce<T>(name, step, options) as KeyedOperator<T, never>)
    return new KeyedStream<T, K>(this.#builder, node)
  }

  /**
   * Lets the first of what is the same pass, and drops the others until the TTL has passed: for duplicates that the
   * producers make. What Lambda, Kinesis or a retry delivers twice needs no step, it is applied once anyway.
   *
   * Throws a {@link ConfigurationError} where there is no TTL, or one of no length.
   *
   * @example
   * payments
   *   .keyBy('by-account', (p) => p.account)
   *   .deduplicate('once', { by: (p) => p.paymentId, ttl: { by: 'event-time', after: days(1) } })
   */
  deduplicate(name: string, options: Deduplication<T>): KeyedStream<T, K> {
    const node = this.#add(deduplicate<T>(name, options) as KeyedOperator<T, never>)
    return new KeyedStream<T, K>(this.#builder, node)
  }

  /**
   * Parts the values of each key into windows of their event times, to be aggregated there: tumbling, hopping, sliding,
   * session or calendar-day windows; or windows of a number of values.
   *
   * @example
   * const perHotel = bookings
   *   .keyBy('by-hotel', (b) => b.hotelId)
   *   .window(tumbling(minutes(5), { grace: minutes(2) }))
   *   .aggregate('bookings-per-hotel', { count: count(), revenue: sum((b) => b.price) }, { emit: 'on-close' })
   * perHotel.results.map(({ key, window, revision, value }) => ({ hotelId: key, ...window, revision, ...value })).to(hotelBookings)
   * perHotel.late.to(lateBookings)
   */
  window<W extends Windows>(windows: W): WindowedStream<T, K, W> {
    const add = (operator: KeyedOperator<T, never>): KeyedNode => this.#add(operator)
    return new WindowedStream<T, K, W>(this.#builder, windows, add)
  }
}

/** What comes of windows of event time: their results, and the records that came too late for them. */
export interface Windowed<T, K extends Key, V> {
  readonly results: Stream<WindowResult<K, V>>
  /** Records that are later than the grace, as they came. They must go somewhere: `plan` refuses a stream that is lost. */
  readonly late: Stream<T>
}

/** When results come. */
export interface WindowOptions<E extends WindowEmission = WindowEmission> {
  /**
   * 'on-close': at a window's end, then for each record that comes late within the grace; 'final': once, after the grace;
   * 'on-update': after each record. It has no default, as readers see different things.
   */
  readonly emit: E
}

/** Windows of numbers of records have no late ones, and their bounds are known only once they are full. */
type WindowedBy<W, T, K extends Key, V> = W extends CountWindows
  ? Pick<Windowed<T, K, V>, 'results'>
  : Windowed<T, K, V>
type EmissionOf<W> = W extends TimeWindows ? WindowEmission : 'on-close' | 'final'

/** A keyed stream in windows, made by {@link KeyedStream.window}. */
export class WindowedStream<T, K extends Key, W extends Windows> {
  readonly #builder: GraphBuilder
  readonly #windows: W
  readonly #add: (operator: KeyedOperator<T, never>) => KeyedNode

  /** Made by {@link KeyedStream.window}, never by hand. */
  constructor(builder: GraphBuilder, windows: W, add: (operator: KeyedOperator<T, never>) => KeyedNode) {
    this.#builder = builder
    this.#windows = windows
    this.#add = add
  }

  /**
   * Gathers the values of each window: by named aggregators, whose results have the same names; by one aggregator; or by
   * `init`, `add`, `merge` and `result` of your own. They are pure, and give the same in whatever order the values come.
   *
   * A result carries the key, its window `[startMs, endMs)`, a revision from 0 and whether it is the last one. Its event time
   * is `endMs - 1`.
   *
   * Throws a {@link ConfigurationError} where `emit` is left out, and for what is no aggregator.
   *
   * @example
   * .aggregate('delays', { count: count(), mean: mean((f) => f.delay), p90: quantile(0.9, (f) => f.delay) }, { emit: 'final' })
   *
   * @example
   * .aggregate('longest', {
   *   init: () => 0,
   *   add: (longest, trip) => Math.max(longest, trip.km),
   *   merge: Math.max,
   *   result: (longest) => longest,
   * }, { emit: 'on-close' })
   */
  aggregate<F extends Aggregators<T>>(
    name: string,
    aggregators: F,
    options: WindowOptions<EmissionOf<W>>,
  ): WindowedBy<W, T, K, ResultsOf<F>>
  aggregate<A, O>(
    name: string,
    aggregation: CustomAggregation<T, A, O>,
    options: WindowOptions<EmissionOf<W>>,
  ): WindowedBy<W, T, K, O>
  aggregate(name: string, aggregation: WindowAggregation<T>, options: WindowOptions): WindowedBy<W, T, K, unknown> {
    const operator = windowed<T>(name, this.#windows, aggregation, options?.emit)
    const node = this.#add(operator as KeyedOperator<T, never>)
    const results = new Stream<WindowResult<K, unknown>>(this.#builder, node)
    if (operator.sides.length === 0) return { results } as WindowedBy<W, T, K, unknown>
    const side = this.#builder.add({ type: 'side', name: lateSide, input: node })
    return { results, late: new Stream<T>(this.#builder, side) } as WindowedBy<W, T, K, unknown>
  }
}

/** The results of a `process` step, and its side outputs beside them. */
export class ProcessedStream<T, K extends Key, S extends SideDeclarations> extends KeyedStream<T, K> {
  readonly sides: SideStreams<S>

  /** Made by {@link KeyedStream.process}, never by hand. */
  constructor(builder: GraphBuilder, node: KeyedNode) {
    super(builder, node)
    const streams = node.operator.sides.map((name) => {
      return [name, new Stream(builder, builder.add({ type: 'side', name, input: node }))] as const
    })
    this.sides = Object.fromEntries(streams) as SideStreams<S>
  }
}

/** A stream that comes straight from a source; it is also the handle that is bound and sent to. `I` is what the wire carries. */
export class SourceStream<T, I> extends Stream<T> implements SourceHandle<I> {
  readonly type = 'source'
  readonly name: string
  readonly declaration: SourceHandle<I>['declaration']

  constructor(builder: GraphBuilder, node: SourceHandle<I>['declaration']) {
    super(builder, node)
    this.name = node.name
    this.declaration = node
  }
}

function slotsFor(keyBy: string, slots: number): number {
  try {
    return checkSlots(slots)
  } catch (refused) {
    throw new ConfigurationError(`keyBy "${keyBy}": ${describeError(refused).message}`)
  }
}

function checkArms(arms: readonly Arm<unknown>[]): void {
  const names = arms.map((arm) => arm.name).join(', ')
  if (arms.some((arm) => /^\d+$/.test(arm.name))) {
    throw new ConfigurationError(
      `branch({ ${names} }) has an arm named by a number, whose place among the arms is not kept: name it by a word.`,
    )
  }
  const last = arms.findIndex((arm) => arm.takes === otherwise)
  if (last === -1)
    throw new ConfigurationError(`branch({ ${names} }) is not exhaustive: end it with an arm of \`otherwise\`.`)
  if (last !== arms.length - 1) {
    throw new ConfigurationError(
      `branch({ ${names} }) has \`otherwise\` before its last arm: the arms after it would never take a value.`,
    )
  }
}
