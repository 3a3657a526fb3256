import { TerminalError } from '../../core/errors.ts'
import type { RecordInfo } from '../../core/record.ts'
import { type Emit, refusePromise } from '../operator.ts'

/** What a step may return: any iterable but text, such as an array or a generator, or nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a step may end in a call that gives nothing, such as state.last.set(value)
export type Outputs<O> = (Iterable<O> & object) | void

/** Hands on what a step returned, one after the other. */
export function handOn<O>(operator: string, outputs: Outputs<O>, next: Emit<O>, record: RecordInfo): void {
  if (outputs === undefined) return
  refusePromise(operator, outputs)
  if (typeof outputs !== 'object' || outputs === null || typeof outputs[Symbol.iterator] !== 'function') {
    throw new TerminalError(
      `the function of ${operator} returned ${named(outputs)} that is no list of outputs: return an array, a synchronous generator or nothing`,
      { code: 'outputs-not-iterable' },
    )
  }
  for (const output of outputs) {
    if (typeof output === 'object') refusePromise(operator, output)
    next(output, record)
  }
}

function named(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
