/** Lets the first of what is the same pass, for as long as its TTL says. */
import { ConfigurationError, TerminalError } from '../../core/errors.ts'
import { linkStates } from '../../state/key-draft.ts'
import { type CheckedOptions, checkOptions, type Ttl } from '../../state/state-options.ts'
import type { MapState, StateDeclaration, ValueState } from '../../state/states.ts'
import { type Emit, refusePromise } from '../operator.ts'
import type { KeyedOperator } from './keyed-operator.ts'

/** What `deduplicate` needs to know. */
export interface Deduplication<T> {
  /**
   * For how long the first of a kind is remembered. It has no default: state that is never forgotten grows with every
   * identity that ever came.
   */
  readonly ttl: Ttl
  /** What makes two values of one key the same. @default the key alone: of each key, one value passes */
  readonly by?: (value: T) => string
}

/** Makes the operator. Throws a {@link ConfigurationError} where the TTL is not one. */
export function deduplicate<T>(name: string, { ttl, by }: Deduplication<T>): KeyedOperator<T, T> {
  const label = `deduplicate "${name}"`
  if (ttl === undefined) {
    throw new ConfigurationError(
      `${label} has no ttl, so it would remember for ever: say for how long, such as { by: 'event-time', after: days(1) }.`,
    )
  }
  const options = checkOptions(label, { ttl })
  const part = by === undefined ? ofKeys<T>(name, options) : ofEntries(name, options, checked(label, by))
  return { kind: 'deduplicate', name, operatorStates: new Map(), sides: [], emits: 'each', ...part }
}

type Part<T> = Pick<KeyedOperator<T, T>, 'states' | 'prefetch' | 'link'>

/** Remembers the key itself, in its item. */
function ofKeys<T>(name: string, options: CheckedOptions): Part<T> {
  const seen: ValueState<true> = { kind: 'value', ...options }
  return {
    states: new Map([[name, seen as StateDeclaration]]),
    link(next, _side, context) {
      const state = linkStates(
        { seen },
        () => name,
        () => context.draft(),
      )
      const pass: Emit<T> = (value, record) => {
        if (state.seen.get() !== undefined) return
        state.seen.set(true)
        next(value, record)
      }
      return { record: pass }
    },
  }
}

/** Remembers each identity in an item of its own, so that a key may have any number of them. */
function ofEntries<T>(name: string, options: CheckedOptions, by: (value: T) => string): Part<T> {
  const seen: MapState<true> = { kind: 'map', ...options }
  return {
    states: new Map([[name, seen as StateDeclaration]]),
    prefetch: (value) => [{ state: name, entry: by(value) }],
    link(next, _side, context) {
      const state = linkStates(
        { seen },
        () => name,
        () => context.draft(),
      )
      const pass: Emit<T> = (value, record) => {
        const entry = by(value)
        if (state.seen.has(entry)) return
        state.seen.set(entry, true)
        next(value, record)
      }
      return { record: pass }
    },
  }
}

function checked<T>(label: string, by: (value: T) => string): (value: T) => string {
  return (value) => {
    const entry: unknown = by(value)
    if (typeof entry === 'string') return entry
    refusePromise(label, entry)
    throw new TerminalError(
      `the function \`by\` of ${label} gave ${entry === null ? 'null' : `a ${typeof entry}`}, not a string: values are the same where their texts are`,
      { code: 'key-not-text' },
    )
  }
}
