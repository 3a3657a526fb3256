import { thrownBy } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type Emit, type LinkContext, refusePromise } from './operator.ts'

/** The arm that takes what no other arm took. */
export const otherwise: unique symbol = Symbol.for('millrace.otherwise')
export type Otherwise = typeof otherwise

/** A predicate over the values of a stream. */
export type Predicate<T> = (value: T, record: RecordInfo) => boolean

/** One arm of a branch: a predicate, or `otherwise` for the last. */
export interface Arm<T> {
  readonly name: string
  readonly takes: Predicate<T> | Otherwise
}

/** Links the arms of a branch: a value goes to the first arm that takes it, and to that arm only. */
export function linkBranch<T>(
  arms: readonly (Arm<T> & { readonly next: Emit<T> })[],
  { step }: Pick<LinkContext, 'step'>,
): Emit<T> {
  return (value, record) => {
    try {
      for (const arm of arms) {
        const takes = arm.takes === otherwise || arm.takes(value, record)
        if (typeof takes === 'object') refusePromise('branch', takes)
        if (takes) return arm.next(value, record)
      }
    } catch (error) {
      throw thrownBy(step, error)
    }
  }
}
