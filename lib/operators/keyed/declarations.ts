/** What keyed operators declare, checked where it is declared: each error names the operator and the remedy. */
import { ConfigurationError } from '../../core/errors.ts'
import type { OperatorStateDeclaration, StateDeclaration } from '../../state/states.ts'
import type { SideDeclarations } from './side-output.ts'
import type { TimerDeclarations } from './timers.ts'

export type AnyStateDeclaration = StateDeclaration | OperatorStateDeclaration
export type StateDeclarations = { readonly [name: string]: AnyStateDeclaration }

/** How often an operator that keeps one result per key publishes it: after each value, or the last of each batch. */
export type Emission = 'on-update' | 'per-batch'

const namePattern = /^[a-z][a-z0-9]*$/i
const longestName = 64
const kinds: readonly string[] = ['value', 'list', 'map', 'reducing', 'aggregating', 'operator']

/** Throws a {@link ConfigurationError} where the states of `operator`, such as `process "totals"`, cannot be kept. */
export function checkStates(operator: string, states: StateDeclarations, timers: TimerDeclarations): void {
  const declared = Object.entries(states ?? {})
  if (declared.length === 0) {
    const otherwise =
      Object.keys(timers).length > 0 ? 'for what a timer is to find when it fires' : 'or use flatMap, which needs none'
    throw new ConfigurationError(
      `${operator} declares no state: give it one, such as state: { last: valueState() }, ${otherwise}.`,
    )
  }
  for (const [name, state] of declared) {
    checkMemberName(operator, 'state', name)
    if (kinds.includes(state?.kind)) continue
    throw new ConfigurationError(
      `the state "${name}" of ${operator} is none: declare it with valueState(), listState(), mapState(), reducingState(), aggregatingState() or operatorState().`,
    )
  }
}

/** Throws a {@link ConfigurationError} where a side output cannot be one. */
export function checkSides(operator: string, sides: SideDeclarations): void {
  for (const [name, side] of Object.entries(sides)) {
    checkMemberName(operator, 'side output', name)
    if (side?.kind === 'side') continue
    throw new ConfigurationError(`the side output "${name}" of ${operator} is none: declare it with sideOutput().`)
  }
}

/** Throws a {@link ConfigurationError} where a timer cannot be one, or has nothing to do, or where something waits for none. */
export function checkTimers(
  operator: string,
  timers: TimerDeclarations,
  handlers: { readonly [name: string]: unknown },
): void {
  for (const [name, timer] of Object.entries(timers)) {
    checkMemberName(operator, 'timer', name)
    if (timer?.kind !== 'timer') {
      throw new ConfigurationError(
        `the timer "${name}" of ${operator} is none: declare it with eventTimer() or processingTimer().`,
      )
    }
    if (Object.hasOwn(handlers, name) && typeof handlers[name] === 'function') continue
    throw new ConfigurationError(
      `the timer "${name}" of ${operator} has nothing to do: add onTimer: { ${name}: (timeMs, { state }) => [...] }.`,
    )
  }
  const unknown = Object.keys(handlers).find((name) => !Object.hasOwn(timers, name))
  if (unknown === undefined) return
  throw new ConfigurationError(
    `onTimer of ${operator} names "${unknown}", which is no timer of it: add timers: { ${unknown}: eventTimer() }.`,
  )
}

/** What `emit` means to the runtime. It has no default, as the two differ in what readers see. */
export function emissionOf(operator: string, emit: Emission): 'each' | 'latest' {
  if (emit === 'on-update') return 'each'
  if (emit === 'per-batch') return 'latest'
  throw new ConfigurationError(
    `${operator} says emit: ${JSON.stringify(emit)}: say 'on-update' for a result after each record, or 'per-batch' for the last one of each key and batch.`,
  )
}

function checkMemberName(operator: string, what: string, name: string): void {
  if (namePattern.test(name) && name.length <= longestName) return
  throw new ConfigurationError(
    `${JSON.stringify(name)} cannot name a ${what} of ${operator}: use letters and digits, a letter first, at most ${longestName} of them, such as "lastSeen".`,
  )
}
