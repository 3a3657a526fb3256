import { thrownBy } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { type Operator, refusePromise } from './operator.ts'

/** One value in, one value out. */
export function map<I, O>(step: (value: I, record: RecordInfo) => O): Operator<I, O> {
  return {
    kind: 'map',
    link: (next, context) => (value, record) => {
      try {
        const result = step(value, record)
        if (typeof result === 'object') refusePromise('map', result)
        next(result, record)
      } catch (error) {
        throw thrownBy(context.step, error)
      }
    },
  }
}
