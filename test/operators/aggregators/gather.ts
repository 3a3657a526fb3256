/** Gathers values as a keyed stage might: in any order, in parts that are merged, through the table now and then. */
import fc from 'fast-check'
import type { Aggregator } from '../../../lib/operators/aggregators/aggregator.ts'
import { checkValue } from '../../../lib/state/values.ts'

export interface Timed<T> {
  readonly value: T
  readonly timeMs: number
}

/** What chance decides: the order, into which part each value goes, and after which of them a part is stored. */
export interface Gathering<T> {
  readonly values: readonly Timed<T>[]
  readonly shuffled: readonly Timed<T>[]
  readonly parts: readonly number[]
  readonly stores: readonly boolean[]
}

export function gatherings<T>(values: fc.Arbitrary<T>, maxLength = 40): fc.Arbitrary<Gathering<T>> {
  const timed = fc.record({ value: values, timeMs: fc.integer({ min: -5, max: 5 }) })
  return fc.array(timed, { maxLength }).chain((list) =>
    fc.record({
      values: fc.constant(list),
      shuffled: fc.shuffledSubarray(list, { minLength: list.length }),
      parts: fc.array(fc.nat(3), { minLength: list.length, maxLength: list.length }),
      stores: fc.array(fc.boolean(), { minLength: list.length, maxLength: list.length }),
    }),
  )
}

export function gathered<T, O, A>(aggregator: Aggregator<T, O, A>, how: Gathering<T>): O {
  const parts = [0, 1, 2, 3].map(() => aggregator.init())
  for (const [i, { value, timeMs }] of how.shuffled.entries()) {
    const part = how.parts[i] as number
    const before = parts[part] as A
    // A step that is taken back, and one that runs twice, leave no trace.
    aggregator.add(before, how.shuffled[0]?.value as T, { eventTimeMs: timeMs })
    const after = aggregator.add(before, value, { eventTimeMs: timeMs })
    parts[part] = how.stores[i] ? stored(aggregator, after) : after
  }
  const [a, b, c, d] = parts as [A, A, A, A]
  aggregator.merge(a, b)
  return aggregator.result(aggregator.merge(aggregator.merge(d, a), aggregator.merge(b, c)))
}

/** Through the table: throws for what it could not return. */
export function stored<A>(aggregator: Aggregator<never, unknown, A>, accumulator: A): A {
  return aggregator.decode(checkValue(aggregator.encode(accumulator), 'accumulator'))
}
