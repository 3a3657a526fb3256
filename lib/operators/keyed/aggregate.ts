/** Gathers the values of a key in an accumulator, and hands on what it amounts to. */
import { linkStates } from '../../state/key-draft.ts'
import { checkOptions, type StateOptions } from '../../state/state-options.ts'
import type { AggregatingState, Aggregation, StateDeclaration } from '../../state/states.ts'
import { type Emit, refusePromise } from '../operator.ts'
import { type Emission, emissionOf } from './declarations.ts'
import type { KeyedOperator } from './keyed-operator.ts'

/** When the result is handed on; and the TTL, version and upcasters of the accumulator. */
export type AggregateOptions<A> = {
  /**
   * `on-update`: each value has a result; `per-batch`: sinks and other stages get only the last result of each key and
   * batch, which costs less. Where batches are cut may differ between attempts, so only `on-update` always gives every
   * intermediate result.
   */
  readonly emit: Emission
} & StateOptions<A>

/** Makes the operator. Throws a {@link ConfigurationError} where an option makes no sense. */
export function aggregate<T, A, O>(
  name: string,
  { init, add, result }: Aggregation<T, A, O>,
  options: AggregateOptions<A>,
): KeyedOperator<T, O> {
  const label = `aggregate "${name}"`
  const accumulator: AggregatingState<T, A, O> = {
    kind: 'aggregating',
    init,
    add: (before, value) => {
      const after = add(before, value)
      refusePromise(label, after)
      return after
    },
    result,
    ...checkOptions(label, options),
  }
  return {
    kind: 'aggregate',
    name,
    states: new Map([[name, accumulator as StateDeclaration]]),
    operatorStates: new Map(),
    sides: [],
    emits: emissionOf(label, options.emit),
    link(next, _side, context) {
      const state = linkStates(
        { accumulator },
        () => name,
        () => context.draft(),
      )
      const add: Emit<T> = (value, record) => {
        state.accumulator.add(value)
        const amounts = state.accumulator.get()
        refusePromise(label, amounts)
        next(amounts as O, record)
      }
      return { record: add }
    },
  }
}
