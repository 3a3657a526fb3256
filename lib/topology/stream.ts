/** The stream builder: each call adds one step to the topology's graph and returns the stream behind it. */
import { ConfigurationError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type Arm, type Otherwise, otherwise, type Predicate } from '../operators/branch.ts'
import { type Enrichment, enrich } from '../operators/enrich/enrich.ts'
import type { Freshness, Table } from '../operators/enrich/table.ts'
import { filter } from '../operators/filter.ts'
import { flatMap } from '../operators/flat-map.ts'
import { map } from '../operators/map.ts'
import type { Operator } from '../operators/operator.ts'
import type { GraphNode } from './graph.ts'
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
   * Says by which key the operators behind it keep their state. The name owns that state, so it is unique in the
   * topology and stays. Without such an operator nothing is re-keyed, and `plan` hints at it.
   *
   * @example
   * bookings.keyBy('by-hotel', (b) => b.hotelId)
   */
  keyBy(name: string, key: (value: T) => string): KeyedStream<T> {
    const node = {
      type: 'key-by',
      kind: 'keyBy',
      name,
      key: key as (value: unknown) => string,
      input: this.#node,
    } as const
    return new KeyedStream<T>(this.#builder, this.#builder.add(node))
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

/** A stream whose records are meant by their key. */
export class KeyedStream<T> extends Stream<T> {}

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
