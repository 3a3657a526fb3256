import { thrownBy } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type Operator, refusePromise } from './operator.ts'

/** One value in, any number out, in the order in which the step gives them. */
export function flatMap<I, O>(step: (value: I, record: RecordInfo) => Iterable<O>): Operator<I, O> {
  return {
    kind: 'flatMap',
    link: (next, context) => (value, record) => {
      try {
        const results = step(value, record)
        refusePromise('flatMap', results)
        for (const result of results) {
          if (typeof result === 'object') refusePromise('flatMap', result)
          next(result, record)
        }
      } catch (error) {
        throw thrownBy(context.step, error)
      }
    },
  }
}
