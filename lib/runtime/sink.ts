/**
 * The sink port: how outputs leave a stage. Ours (Kinesis, DynamoDB, memory, dead letters) and the user's own are the
 * same to the runner; `sinkConformance` in `millrace/testing` holds any of them to the rules below.
 *
 * 1. `prepare` is synchronous and pure. It runs inside the step, so what it throws is that record's failure.
 * 2. `deliver` answers for every item, by index, and resolves only when the outside world holds what it calls
 *    delivered: the checkpoint moves on its word.
 * 3. Items of one key are delivered in the order given; nothing of a key overtakes an item of it that was refused.
 * 4. An item may come again after any failure: it carries the same identity and, with pure steps, the same content.
 * 5. Once the signal aborts, `deliver` awaits what is in flight and answers `retry` for the rest.
 */
import type { RecordInfo } from '../core/record.ts'

/** One value on its way to a sink. */
export interface Output<T = unknown> {
  readonly value: T
  /** What the sink's `key` function said; undefined where the sink declares none. */
  readonly key: string | undefined
  /** The input record that the value was made of. */
  readonly record: RecordInfo
  /** Place among the outputs of that record to this sink, from 0. With the record it names the output for ever. */
  readonly index: number
}

/** What became of one item. */
export type Outcome =
  | { readonly status: 'delivered' }
  /** Not now: the input record goes back to the source, with everything after it in its partition. */
  | { readonly status: 'retry'; readonly error: Error }
  /** Never: the output becomes a dead letter, with the input record that it was made of. */
  | { readonly status: 'rejected'; readonly error: Error }

/** The one outcome that carries nothing. */
export const delivered: Outcome = { status: 'delivered' }

/** What `deliver` may know of the call. */
export interface DeliveryCall {
  /** Aborts when the margin before the invocation's deadline begins. */
  readonly signal: AbortSignal
}

/**
 * A sink. `Item` is whatever `prepare` makes for `deliver`.
 *
 * @example
 * const webhook: Sink<Order, string> = {
 *   prepare: ({ value }) => JSON.stringify(value),
 *   deliver: async (bodies, { signal }) => {
 *     const answer = await post('/orders', bodies, signal)
 *     return bodies.map((_, i) => (answer.ok[i] ? delivered : { status: 'retry', error: new Error('503') }))
 *   },
 * }
 */
export interface Sink<T = unknown, Item = unknown> {
  prepare(output: Output<T>): Item
  deliver(items: readonly Item[], call: DeliveryCall): Promise<readonly Outcome[]>
}
