/** What the checks of the conformance suite of state stores demand, and how they say that it was not met. */
import { isDeepStrictEqual } from 'node:util'
import { MillraceError } from '../core/errors.ts'

/** A store that breaks a rule, with the rule and what was seen. Its code is `state-store-conformance`. */
export class StateStoreConformanceError extends MillraceError {
  override readonly name: string = 'StateStoreConformanceError'

  constructor(message: string) {
    super('state-store-conformance', message)
  }
}

export function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new StateStoreConformanceError(message)
}

export const show = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner))?.slice(0, 300) ??
  'undefined'

export function demandEqual(found: unknown, expected: unknown, what: string): void {
  demand(isDeepStrictEqual(found, expected), `${what} is ${show(found)}, not ${show(expected)}`)
}

/** A signal that never aborts. */
export const open = (): AbortSignal => new AbortController().signal
