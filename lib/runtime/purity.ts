/**
 * Pure steps answer one record the same way every time; all promises rest on it. In tests each record is decoded and runs twice,
 * and a step that answers otherwise the second time is refused by name.
 *
 * To throw is an answer. A RetryableError is none, nor is an entry that is not loaded: both say that the answer may still come, so
 * whether they come, and which time, follows from more than the record.
 */
import { isDeepStrictEqual } from 'node:util'
import { ConfigurationError, isRetryable } from '../core/errors.ts'
import { EntryNotLoaded } from '../state/key-draft.ts'
import { changeTexts, type StepChange } from '../state/step-changes.ts'

/** Where steps note what they hand on. */
export interface Trace {
  note(label: string, value: unknown): void
}

interface Note {
  readonly label: string
  readonly value: unknown
  readonly isPlain: boolean
}

/** Keeps what the first run hands on: copies, as a step that changes what it has handed on would change both runs'. */
class FirstRun implements Trace {
  readonly notes: Note[] = []

  note(label: string, value: unknown): void {
    const plain = plainCopy(value, { left: mostPlain })
    const isPlain = plain !== notPlain
    this.notes.push({ label, value: isPlain ? plain : cloneOf(value), isPlain })
  }
}

/** Compares what the second run hands on, and whether it throws, with what the first one did. */
class SecondRun implements Trace {
  readonly #notes: readonly Note[]
  readonly #threwFirst: boolean
  #count = 0
  #difference: ImpureStepError | undefined
  #last: string | undefined

  constructor({ notes }: FirstRun, threwFirst: boolean) {
    this.#notes = notes
    this.#threwFirst = threwFirst
  }

  note(label: string, value: unknown): void {
    const first = this.#notes[this.#count]
    this.#count += 1
    this.#last = label
    if (this.#difference !== undefined) return
    // What threw the first time was to hand on next.
    if (first === undefined && this.#threwFirst) this.#difference = threwOnce(label, 'first')
    else if (first?.label !== label) this.#difference = onceOnly(label)
    else if (!isSame(first, value)) this.#difference = new ImpureStepError(label, 'the values that it handed on differ')
  }

  /** Throws where the runs differ; `threw` says whether this one threw. */
  end(threw: boolean): void {
    if (this.#difference !== undefined) throw this.#difference
    const missing = this.#notes[this.#count]
    const next = missing?.label ?? (this.#last === undefined ? 'the first step' : `the step behind ${this.#last}`)
    const threwAlike = threw && this.#threwFirst && missing === undefined
    if (threwAlike) return
    if (threw) throw threwOnce(next, 'second')
    if (missing !== undefined) throw onceOnly(next)
    if (this.#threwFirst) throw threwOnce(next, 'first')
  }
}

const onceOnly = (label: string) => new ImpureStepError(label, 'it handed on a value one time and not the other')

const threwOnce = (label: string, time: 'first' | 'second') => new ImpureStepError(label, `it threw the ${time} time`)

const isSame = (first: Note, value: unknown): boolean =>
  (first.isPlain && isSamePlain(first.value, value)) || isDeepStrictEqual(first.value, cloneOf(value))

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
  changes(): readonly StepChange[] | undefined
  setTrace(trace: Trace | undefined): void
}

/**
 * Runs a record twice and keeps the second run. Throws what the steps throw both times, what may come right later at once, and an
 * {@link ImpureStepError} that names the first step whose answers differ.
 */
export function runTwice(twice: TwiceRun): void {
  const first = new FirstRun()
  try {
    twice.setTrace(first)
    const threwFirst = errorOf(twice) !== undefined
    const changes = threwFirst ? undefined : twice.changes()
    twice.takeBack()
    const second = new SecondRun(first, threwFirst)
    twice.setTrace(second)
    const thrown = errorOf(twice)
    second.end(thrown !== undefined)
    if (thrown !== undefined) throw thrown.error
    refuseOtherChanges(changes ?? [], twice.changes() ?? [])
  } finally {
    twice.setTrace(undefined)
  }
}

/** What `answer` gives the second time of two. It notes what it hands on; what it throws is dealt with as in {@link runTwice}. */
export function answeredTwice<T>(answer: (trace: Trace) => T): T {
  let trace: Trace | undefined
  const given: T[] = []
  runTwice({
    run: () => {
      given.push(answer(trace as Trace))
    },
    takeBack: () => undefined,
    changes: () => undefined,
    setTrace: (its) => {
      trace = its
    },
  })
  return given.at(-1) as T
}

/** What the run throws as its answer; throws what is none. */
function errorOf(twice: TwiceRun): { readonly error: unknown } | undefined {
  try {
    twice.run()
    return undefined
  } catch (error) {
    if (isRetryable(error) || error instanceof EntryNotLoaded) throw error
    return { error }
  }
}

/** The first change whose text differs names the operator. Texts are made only where the changes are not the same one by one. */
function refuseOtherChanges(first: readonly StepChange[], second: readonly StepChange[]): void {
  if (first.length === second.length && first.every((change, i) => isSameChange(change, second[i]))) return
  const [a, b] = [changeTexts(first), changeTexts(second)]
  const changed = a.find((text) => !b.includes(text)) ?? b.find((text) => !a.includes(text))
  if (changed === undefined) return
  const state = changed.slice(0, changed.indexOf('='))
  throw new ImpureStepError(`the step that keeps the state ${state}`, 'it left another value in it')
}

const isSameChange = ({ place, value }: StepChange, other: StepChange | undefined): boolean =>
  other !== undefined &&
  (value === other.value || isSamePlain(value, other.value)) &&
  (place === other.place || isSamePlain(place, other.place))

/** Lists and objects that are copied by hand; what has more of them, or contains itself, is cloned. */
const mostPlain = 1_000
const notPlain = Symbol('not plain')

/** A copy of lists and plain objects, which most values are: `structuredClone` takes many times as long. */
function plainCopy(value: unknown, budget: { left: number }): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (budget.left === 0) return notPlain
  budget.left -= 1
  if (Array.isArray(value)) {
    if (Object.keys(value).length !== value.length) return notPlain
    const list: unknown[] = []
    for (const element of value) {
      const copy = plainCopy(element, budget)
      if (copy === notPlain) return notPlain
      list.push(copy)
    }
    return list
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return notPlain
  const object: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const copy = plainCopy((value as { readonly [name: string]: unknown })[name], budget)
    if (copy === notPlain || name === '__proto__') return notPlain
    object[name] = copy
  }
  return object
}

/** Whether a value equals a plain copy; false also for what only a closer look can tell. */
function isSamePlain(copy: unknown, value: unknown): boolean {
  // Two runs make two functions, whose answers show in what is made of them.
  if (typeof copy === 'function') return typeof value === 'function'
  if (typeof copy !== 'object' || copy === null) return Object.is(copy, value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(copy)) {
    return Array.isArray(value) && copy.length === value.length && copy.every((one, i) => isSamePlain(one, value[i]))
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  const names = Object.keys(copy)
  if (Object.keys(value).length !== names.length) return false
  const [one, other] = [copy as Fields, value as Fields]
  return names.every((name) => Object.hasOwn(other, name) && isSamePlain(one[name], other[name]))
}

type Fields = { readonly [name: string]: unknown }

/** What cannot be cloned, as it holds functions, is not compared: what is made of it is. */
function cloneOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  try {
    return structuredClone(value)
  } catch {
    return notCloned
  }
}

const notCloned = Symbol('not cloned')
