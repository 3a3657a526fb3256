/**
 * Pure steps answer one record the same way every time; all promises rest on it. In tests each record runs twice, and a
 * step that answers otherwise the second time is refused by name.
 */
import { isDeepStrictEqual } from 'node:util'
import { ConfigurationError, isRetryable } from '../core/errors.ts'
import { EntryNotLoaded } from '../state/key-draft.ts'

/** Everything that the steps of one record hand on, in order. */
export class Trace {
  readonly entries: { readonly label: string; readonly value: unknown }[] = []

  /** Notes what a node hands on: a copy, as a step that changes what it has handed on would change both runs'. */
  note(label: string, value: unknown): void {
    this.entries.push({ label, value: copyOf(value) })
  }
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  try {
    return structuredClone(value)
  } catch {
    return value
  }
}

/** A step that is not pure. It is a mistake in the topology, so no record is given up for it. */
export class ImpureStepError extends ConfigurationError {
  constructor(label: string, what: string) {
    super(
      `${label} answered one and the same record in two ways (${what}): a step must be pure, without clock, random numbers, I/O or variables that it changes; take times from the record and keep what must last in a state.`,
      { code: 'impure-step' },
    )
  }
}

/** What one record's run can be made to do twice. */
export interface TwiceRun {
  run(): void
  /** As before the run. */
  takeBack(): void
  /** What the run changed in the key's state; undefined where it has none. */
  changes(): string | undefined
  setTrace(trace: Trace | undefined): void
}

/**
 * Runs a record twice and keeps the second run. Throws what the steps throw, and an {@link ImpureStepError} that names the
 * first step whose answers differ.
 */
export function runTwice(twice: TwiceRun): void {
  const first = new Trace()
  const second = new Trace()
  try {
    twice.setTrace(first)
    twice.run()
    const changes = twice.changes()
    twice.takeBack()
    twice.setTrace(second)
    runAgain(twice, second)
    refuseDifference(first.entries, second.entries)
    refuseOtherChanges(changes, twice.changes())
  } finally {
    twice.setTrace(undefined)
  }
}

function refuseDifference(first: Trace['entries'], second: Trace['entries']): void {
  for (let i = 0; i < Math.max(first.length, second.length); i++) {
    const [a, b] = [first[i], second[i]]
    if (a && b && a.label === b.label && isDeepStrictEqual(a.value, b.value)) continue
    const label = (b ?? a)?.label as string
    if (a === undefined || b === undefined || a.label !== b.label) {
      throw new ImpureStepError(label, 'it handed on a value one time and not the other')
    }
    throw new ImpureStepError(label, 'the values that it handed on differ')
  }
}

function runAgain(twice: TwiceRun, trace: Trace): void {
  try {
    twice.run()
  } catch (error) {
    // What was not there the first time, such as a table or an entry, may still come.
    if (isRetryable(error) || error instanceof EntryNotLoaded) throw error
    throw new ImpureStepError(
      `the step behind ${trace.entries.at(-1)?.label ?? 'the first'}`,
      'it threw the second time',
    )
  }
}

/** Changes are told state by state, as the draft writes them: the first that differs names the operator. */
function refuseOtherChanges(first: string | undefined, second: string | undefined): void {
  if (first === second) return
  const [a, b] = [first?.split('\n') ?? [], second?.split('\n') ?? []]
  const changed = a.find((line) => !b.includes(line)) ?? b.find((line) => !a.includes(line)) ?? ''
  const state = changed.slice(0, changed.indexOf('='))
  throw new ImpureStepError(`the step that keeps the state ${state}`, 'it left another value in it')
}
