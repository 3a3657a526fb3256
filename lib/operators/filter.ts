import { thrownBy } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type Operator, refusePromise } from './operator.ts'

/** Lets a value pass where the predicate holds. */
export function filter<T>(predicate: (value: T, record: RecordInfo) => boolean): Operator<T, T> {
  return {
    kind: 'filter',
    link: (next, context) => (value, record) => {
      try {
        const passes = predicate(value, record)
        if (typeof passes === 'object') refusePromise('filter', passes)
        if (passes) next(value, record)
      } catch (error) {
        throw thrownBy(context.step, error)
      }
    },
  }
}
