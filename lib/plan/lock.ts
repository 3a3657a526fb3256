/**
 * What a topology keeps that outlives a deployment, as data: what `millrace.lock.json` records of it, and what may not become of
 * that while there is state.
 *
 * 1. Whatever only adds (stages, operators, states, sinks, higher versions with their upcasters) is compatible.
 * 2. Whatever would lose or misread what is stored, or on its way, is a problem with a name.
 */
import { isDeepStrictEqual } from 'node:util'
import { type AggregatorKinds, misreadKinds } from '../operators/aggregators/kinds.ts'
import type { KeyedOperator, WindowTraits } from '../operators/keyed/keyed-operator.ts'
import type { KeyedStage, Plan, StagePlan } from './plan.ts'

/** One state, by its stored name. */
export interface StateLock {
  readonly kind: string
  /** The schema version of its values. */
  readonly version: number
}

/** An operator of a keyed stage: its name owns its states and timers. */
export interface OperatorLock {
  readonly kind: string
  /** Of a window operator, such as `tumbling(300000 ms)`: open windows are kept by it. */
  readonly window?: string
  /** Of windows of event time: by it windows are settled for good. Missing where a release recorded it that did not know it. */
  readonly graceMs?: number
  /** Of a window operator, too. Missing where a release recorded it that did not know them. */
  readonly aggregators?: AggregatorKinds
  /** By stored name. */
  readonly states: Readonly<Record<string, StateLock>>
}

/** A stage that reads a source. */
export interface SourceStageLock {
  readonly kind: 'source'
}

export interface KeyedStageLock {
  readonly kind: 'keyed'
  readonly slots: number
  /** The schema version of the values that travel to it. */
  readonly valueVersion: number
  readonly operators: Readonly<Record<string, OperatorLock>>
}

export type StageLock = SourceStageLock | KeyedStageLock

/** What is recorded of a sink: nothing but its name, so far. */
export type SinkLock = Readonly<Record<string, never>>

/** What is recorded of one topology. It has no lists, which every formatter of JSON breaks in lines of its own way. */
export interface TopologyLock {
  readonly sinks: Readonly<Record<string, SinkLock>>
  readonly stages: Readonly<Record<string, StageLock>>
}

/** What may not be, and the name under which it is accepted all the same. */
export interface LockProblem {
  readonly name: string
  /** What was changed, what would come of it, and what to do. */
  readonly message: string
}

/**
 * What is to be recorded of a topology.
 *
 * @example
 * const { stages, sinks } = lockOf(plan(bookings))
 */
export function lockOf({ graph, stages }: Plan): TopologyLock {
  return {
    sinks: sorted(graph.sinks.map(({ name }) => [name, {}])),
    stages: sorted(stages.map((stage) => [stage.name, stageLockOf(stage)])),
  }
}

function stageLockOf(stage: StagePlan): StageLock {
  if (stage.kind !== 'keyed') return { kind: 'source' }
  return { kind: 'keyed', slots: stage.slots, valueVersion: stage.input.schema.version, operators: operatorsOf(stage) }
}

/** The operators of a keyed stage with what each keeps. */
export function operatorsOf(stage: Pick<KeyedStage, 'nodes'>): KeyedStageLock['operators'] {
  return sorted(
    stage.nodes.flatMap((node) => (node.type === 'keyed' ? [[node.name, operatorLockOf(node.operator)] as const] : [])),
  )
}

function operatorLockOf({ kind, window, states, operatorStates }: KeyedOperator): OperatorLock {
  const kept: (readonly [string, StateLock])[] = []
  for (const [name, state] of states) kept.push([name, { kind: state.kind, version: state.version }])
  // They have no versions: `add` reads what it made itself.
  for (const [name, state] of operatorStates) kept.push([name, { kind: state.kind, version: 1 }])
  return { kind, ...(window && windowLockOf(window)), states: sorted(kept) }
}

const windowLockOf = ({ label, hasLate, graceMs, aggregators }: WindowTraits) => {
  return { window: label, ...(hasLate && { graceMs }), aggregators }
}

const sorted = <V>(entries: readonly (readonly [string, V])[]): Record<string, V> =>
  Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))

/**
 * What of the recorded topology the present one would lose or misread; empty where every change is compatible.
 *
 * @example
 * const problems = compareLock(locked, lockOf(plan(bookings)))
 */
export function compareLock(locked: TopologyLock, current: TopologyLock): readonly LockProblem[] {
  const problems: LockProblem[] = []
  for (const [name, stage] of Object.entries(locked.stages)) {
    const now = own(current.stages, name)
    if (now === undefined) problems.push(stageGone(name, stage, locked, current))
    else if (now.kind !== stage.kind) problems.push(stageOfAnotherKind(name, stage, now))
    else if (stage.kind === 'keyed') problems.push(...compareKeyed(name, stage, now as KeyedStageLock))
  }
  for (const name of Object.keys(locked.sinks)) {
    if (own(current.sinks, name) === undefined) problems.push(sinkGone(name))
  }
  return problems
}

/** Whether nothing at all was changed. */
export const sameLock = (locked: TopologyLock, current: TopologyLock): boolean =>
  isDeepStrictEqual([locked.sinks, locked.stages], [current.sinks, current.stages])

function compareKeyed(name: string, locked: KeyedStageLock, current: KeyedStageLock): readonly LockProblem[] {
  const problems: LockProblem[] = []
  if (locked.slots !== current.slots) {
    problems.push({
      name,
      message: `stage "${name}" has ${current.slots} slots instead of ${locked.slots}: its state is found by them. Keep keyBy("${name}", ..., { slots: ${locked.slots} }), or give the stage another name and with it new state.`,
    })
  }
  if (locked.valueVersion > current.valueVersion) {
    problems.push({
      name,
      message: `the values that travel to stage "${name}" have the version ${current.valueVersion} instead of ${locked.valueVersion}: those on their way would wait for ever. Keep keyBy("${name}", ..., { version: ${locked.valueVersion} }), or undo the change in a version ${locked.valueVersion + 1} with an upcaster.`,
    })
  }
  for (const [operator, kept] of Object.entries(locked.operators)) {
    const now = own(current.operators, operator)
    if (now === undefined) problems.push(operatorGone(name, operator, kept, locked, current))
    else problems.push(...compareOperator(name, operator, kept, now))
  }
  return problems
}

function compareOperator(
  stage: string,
  name: string,
  locked: OperatorLock,
  current: OperatorLock,
): readonly LockProblem[] {
  const what = `${locked.kind} "${name}" of stage "${stage}"`
  if (locked.kind !== current.kind) {
    return [
      {
        name,
        message: `${what} has become ${current.kind} "${name}", which would misread its state (${stateNames(locked)}): give the new operator another name.`,
      },
    ]
  }
  const problems = misreadKinds(locked.aggregators, current.aggregators).map(
    ({ what: which, before, now, renamed: owner }) => ({
      name,
      message: `${which} of state "${name}" of stage "${stage}" is ${now} instead of ${before}: what open windows have gathered would be misread. Give the new ${owner} another name.`,
    }),
  )
  if (locked.window !== current.window) {
    return [
      {
        name,
        message: `${what} has the windows ${current.window} instead of ${locked.window}: what is gathered in open windows would be misread. Give the new windows another name; where every window is closed, \`millrace lock --accept ${name}\`.`,
      },
      ...problems,
    ]
  }
  problems.push(...graceChanged(what, name, locked, current))
  const states = Object.entries(locked.states).flatMap(([state, kept]) => {
    const now = own(current.states, state)
    return now === undefined
      ? [stateGone(stage, state, kept, locked, current)]
      : compareState(`state "${state}" of stage "${stage}"`, state, kept, now)
  })
  return [...problems, ...states]
}

/**
 * A settled window is forgotten. Whoever has a longer grace takes a late record for it that begins it anew: a deployment with a
 * longer grace does, and, where the new grace is shorter, the deployment before, for as long as both run.
 */
function graceChanged(what: string, name: string, locked: OperatorLock, current: OperatorLock): readonly LockProblem[] {
  const { graceMs: before } = locked
  const { graceMs: now } = current
  if (before === undefined || now === undefined || before === now) return []
  const loss = 'a second result that holds late records alone'
  const message =
    now > before
      ? `what was settled by the shorter one gets ${loss}, where one comes within the longer. Where that does not matter, \`millrace lock --accept ${name}\`.`
      : `while both deployments run, the one before may take a late record for a window that this one has settled, which gets ${loss}. Drain first: \`millrace drain\`, then \`millrace lock --accept ${name}\`.`
  return [{ name, message: `${what} has a grace of ${now} ms instead of ${before} ms: ${message}` }]
}

/** What may not become of one state; `what` is what the message calls it. */
export function compareState(
  what: string,
  name: string,
  locked: StateLock,
  current: StateLock,
): readonly LockProblem[] {
  if (locked.kind !== current.kind) {
    const message = `${what} is of the kind "${current.kind}" instead of "${locked.kind}": what is stored would be misread. Give the new state another name.`
    return [{ name, message }]
  }
  if (locked.version <= current.version) return []
  const message = `${what} has the version ${current.version} instead of ${locked.version}: values of the later one would wait for ever. Keep version ${locked.version}, or undo the change in a version ${locked.version + 1} with an upcaster.`
  return [{ name, message }]
}

function stageGone(name: string, stage: StageLock, locked: TopologyLock, current: TopologyLock): LockProblem {
  const loses =
    stage.kind === 'keyed'
      ? `its state (${Object.values(stage.operators).map(stateNames).join(', ')}) and what is on its way to it would be lost`
      : 'what it has not read yet of its source would be lost'
  const added = addedOf(locked.stages, current.stages).filter((other) => current.stages[other]?.kind === stage.kind)
  return {
    name,
    message: `stage "${name}" is gone: ${loses}. ${renamed('the stage', added)}To remove it, drain first: \`millrace drain\`, then \`millrace lock --accept ${name}\`.`,
  }
}

const stageOfAnotherKind = (name: string, locked: StageLock, current: StageLock): LockProblem => ({
  name,
  message: `"${name}" was ${stageWords[locked.kind]} and is ${stageWords[current.kind]} now, which would misread what it keeps: give it another name.`,
})

const stageWords = { source: 'a stage that reads a source', keyed: 'a keyed stage' } as const

function operatorGone(
  stage: string,
  name: string,
  operator: OperatorLock,
  locked: KeyedStageLock,
  current: KeyedStageLock,
): LockProblem {
  const added = addedOf(locked.operators, current.operators).filter(
    (other) => current.operators[other]?.kind === operator.kind,
  )
  return {
    name,
    message: `${operator.kind} "${name}" of stage "${stage}" is gone: its state (${stateNames(operator)}) would be lost. ${renamed('it', added)}To remove it, \`millrace lock --accept ${name}\`.`,
  }
}

function stateGone(
  stage: string,
  name: string,
  state: StateLock,
  locked: OperatorLock,
  current: OperatorLock,
): LockProblem {
  const added = addedOf(locked.states, current.states).filter((other) => current.states[other]?.kind === state.kind)
  return {
    name,
    message: `state "${name}" of stage "${stage}" is gone: its values would be lost. ${renamed('it', added)}To remove it, \`millrace lock --accept ${name}\`.`,
  }
}

const sinkGone = (name: string): LockProblem => ({
  name,
  message: `sink "${name}" is gone: what is on its way to it would be lost. Keep its name; to remove it, drain first: \`millrace drain\`, then \`millrace lock --accept ${name}\`.`,
})

/** A name that came in place of another owns nothing of it. */
function renamed(what: string, added: readonly string[]): string {
  const [first] = added
  return first === undefined
    ? 'Keep its name. '
    : `Where ${what} was renamed to "${first}", keep the old name: it owns what is stored. `
}

const addedOf = (locked: object, current: object): readonly string[] =>
  Object.keys(current).filter((name) => !Object.hasOwn(locked, name))

const stateNames = ({ states }: OperatorLock): string => Object.keys(states).join(', ')

/** Names are the user's, such as `constructor`. */
const own = <V>(record: Readonly<Record<string, V>>, name: string): V | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined
