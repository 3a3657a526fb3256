/**
 * What the manifest of a state table says of states: the kind and the schema version of each that was ever declared on it, and by which
 * aggregators windows have gathered.
 *
 * 1. A state, or an aggregator of one, that is of another kind than what is stored under its name would be misread: the stage refuses
 *    to run.
 * 2. What was declared once is not forgotten, as its values may be there still. So a name is used again for the same kind only.
 * 3. Schema versions are recorded and not compared: a deployment that wrote nothing yet can be rolled back. Each value says its
 *    own version, and one that is newer than ours waits where it is met.
 * 4. What a release adds to it is a field of the manifest itself. A container of the release before, which begins while a deployment
 *    rolls out, keeps fields that it does not know, and writes anew what it has of a state.
 */
import { ConfigurationError } from '../core/errors.ts'
import { type AggregatorKinds, mergedKinds, misreadKinds } from '../operators/aggregators/kinds.ts'
import { type KeyedStageLock, operatorsOf } from '../plan/lock.ts'
import type { KeyedStage } from '../plan/plan.ts'

/** One state; `windows` tells apart how window operators lay out theirs, `aggregators` by what they gather. */
export type RecordedState = {
  readonly kind: string
  readonly version: number
  readonly windows?: 'slices' | 'sessions' | 'count'
  /** Missing where a release wrote it that did not record them. */
  readonly aggregators?: AggregatorKinds
}
/** By stored name. */
export type RecordedStates = { readonly [name: string]: RecordedState }

/** What a manifest has of states. */
export type StatesOfManifest = {
  /** Missing where a release wrote it that did not record them, and where the stage keeps no keys. */
  readonly states?: RecordedStates
  /** By the stored name of the state. Another release had them in the states themselves: both are read. */
  readonly aggregators?: { readonly [name: string]: AggregatorKinds }
}

/** What a stage declares, as a manifest has it. */
export const declaredStates = (stage: KeyedStage): RecordedStates => statesOf(operatorsOf(stage))

/** What a lock says of the operators of a stage, as a manifest has it. */
export function statesOf(operators: KeyedStageLock['operators']): RecordedStates {
  const declared: Record<string, RecordedState> = {}
  for (const { window, aggregators, states } of Object.values(operators)) {
    const gathered = {
      ...(window !== undefined && { windows: layoutOf(window) }),
      ...(aggregators !== undefined && { aggregators }),
    }
    for (const [name, state] of Object.entries(states)) declared[name] = { ...state, ...gathered }
  }
  return declared
}

/** What a manifest says, each state with its aggregators. */
export function recordedIn({ states = {}, aggregators = {} }: StatesOfManifest): RecordedStates {
  const whole = Object.entries(states).map(([name, state]) => {
    const kinds = Object.hasOwn(aggregators, name) ? aggregators[name] : undefined
    return [
      name,
      kinds === undefined ? state : { ...state, aggregators: mergedKinds(state.aggregators, kinds) },
    ] as const
  })
  return Object.fromEntries(whole)
}

/** States as a manifest has them. */
export function inManifest(recorded: RecordedStates): StatesOfManifest {
  const states: Record<string, RecordedState> = {}
  const gathered: [string, AggregatorKinds][] = []
  for (const [name, { aggregators, ...state }] of Object.entries(recorded)) {
    states[name] = state
    if (aggregators !== undefined) gathered.push([name, aggregators])
  }
  return { states, ...(gathered.length > 0 && { aggregators: Object.fromEntries(gathered) }) }
}

function layoutOf(label: string): 'slices' | 'sessions' | 'count' {
  if (label.startsWith('session')) return 'sessions'
  return label.startsWith('countWindow') ? 'count' : 'slices'
}

/**
 * What was recorded with what is declared. Throws a {@link ConfigurationError} `state-changed` for a state of another kind.
 */
export function mergedStates(stage: string, recorded: RecordedStates, declared: RecordedStates): RecordedStates {
  const merged: Record<string, RecordedState> = { ...recorded }
  for (const [name, now] of Object.entries(declared)) {
    const otherwise = misreadState(stage, name, recorded, now)
    if (otherwise !== undefined) throw new ConfigurationError(otherwise, { code: 'state-changed' })
    const { aggregators } = now
    const before = recordedAs(recorded, name)?.aggregators
    merged[name] = aggregators === undefined ? now : { ...now, aggregators: mergedKinds(before, aggregators) }
  }
  return merged
}

/** Why a declared state would misread what was recorded under its name, and what to do; undefined where it would not. */
export function misreadState(
  stage: string,
  name: string,
  recorded: RecordedStates,
  now: RecordedState,
): string | undefined {
  const before = recordedAs(recorded, name) ?? now
  const state = `state "${name}" of stage "${stage}"`
  if (before.kind !== now.kind || before.windows !== now.windows) {
    return `${state} is ${kindOf(now)}, but its table has values of it that are ${kindOf(before)}: go back to that kind, or give the new state another name.`
  }
  const [misread] = misreadKinds(before.aggregators, now.aggregators)
  if (misread === undefined) return undefined
  return `${misread.what} of ${state} is ${misread.now}, but its table has values of it that are ${misread.before}: go back to that, or give the new ${misread.renamed} another name.`
}

/** Names are the user's, such as `constructor`. */
const recordedAs = (recorded: RecordedStates, name: string): RecordedState | undefined =>
  Object.hasOwn(recorded, name) ? recorded[name] : undefined

const kindOf = ({ kind, windows }: RecordedState): string =>
  windows === undefined ? `of the kind "${kind}"` : `windows kept as ${windows}`
