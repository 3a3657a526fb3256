/** Brings the values of a key to one of their own type, and hands that on. */
import { linkStates } from '../../state/key-draft.ts'
import { checkOptions } from '../../state/state-options.ts'
import type { ReducingState, StateDeclaration } from '../../state/states.ts'
import { type Emit, refusePromise } from '../operator.ts'
import type { AggregateOptions } from './aggregate.ts'
import { emissionOf } from './declarations.ts'
import type { KeyedOperator } from './keyed-operator.ts'

/** Makes the operator. Throws a {@link ConfigurationError} where an option makes no sense. */
export function reduce<T>(
  name: string,
  step: (reduced: T, value: T) => T,
  options: AggregateOptions<T>,
): KeyedOperator<T, T> {
  const label = `reduce "${name}"`
  const reduced: ReducingState<T> = {
    kind: 'reducing',
    reduce: (before, value) => {
      const after = step(before, value)
      refusePromise(label, after)
      return after
    },
    ...checkOptions(label, options),
  }
  return {
    kind: 'reduce',
    name,
    states: new Map([[name, reduced as StateDeclaration]]),
    operatorStates: new Map(),
    sides: [],
    emits: emissionOf(label, options.emit),
    link(next, _side, context) {
      const state = linkStates(
        { reduced },
        () => name,
        () => context.draft(),
      )
      const add: Emit<T> = (value, record) => {
        state.reduced.add(value)
        next(state.reduced.get() as T, record)
      }
      return { record: add }
    },
  }
}
