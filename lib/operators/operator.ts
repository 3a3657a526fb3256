/**
 * What every stateless operator is: a way to link the step before it to the step after it.
 *
 * A linked chain is one plain function call per step. It is synchronous, so a step can do no I/O of its own; whatever
 * needs I/O (a table to enrich from) is loaded before the chain runs.
 */
import { TerminalError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import type { TableView } from './enrich/table.ts'

/** Hands one value on to the next step. */
export type Emit<T> = (value: T, record: RecordInfo) => void

/** What linking may ask the runtime for. */
export interface LinkContext {
  /** What errors call the step at hand, such as `source "orders" > map`. */
  readonly step: string
  /** The runtime's view of a table that an `enrich` step reads. */
  table(name: string): TableView<unknown>
}

/** One stateless operator between two streams. */
export interface Operator<I = unknown, O = unknown> {
  /** The word that errors, plans and descriptions use, such as `map`. */
  readonly kind: string
  link(next: Emit<O>, context: LinkContext): Emit<I>
}

/**
 * Refuses a promise, or anything else with a `then`, where a value is due: an `async` step would be one call per record,
 * and its result would be serialised as `{}`.
 */
export function refusePromise(kind: string, result: unknown): void {
  if (typeof (result as { then?: unknown } | null | undefined)?.then !== 'function') return
  // The rejection of a promise that nobody awaits would end the process.
  if (result instanceof Promise) result.catch(() => undefined)
  throw new TerminalError(
    `the function of a \`${kind}\` step returned a promise, but steps are synchronous: to read another system, use \`enrich\`, which makes one call per batch`,
    { code: 'asynchronous-step' },
  )
}
