/**
 * What waits to be delivered to one sink, and how it is delivered.
 *
 * Nothing is taken for delivered because an error was caught: a sink that throws, or answers for fewer items than it was
 * given, has delivered nothing.
 */
import { describeError, RetryableError } from '../core/errors.ts'
import { notPlain, plainCopy } from '../core/plain-copy.ts'
import { encodeValue } from '../core/tagged-json.ts'
import type { FiredTimer } from './dead-letter.ts'
import type { StepPlace } from './feed-lane.ts'
import { LatestOnly } from './latest-only.ts'
import type { Outcome, Output, Sink } from './sink.ts'

/** Where an item comes from. */
export interface Made {
  /** Undefined where the record makes it again. */
  readonly value: ValuePutOut | undefined
  /** Place among the outputs of its step to the sink. */
  readonly index: number
  /** The place of its record in the batch. */
  readonly ordinal: number
  /** The step that put it out; undefined in a stage that keeps nothing, where each record has one. */
  readonly step: StepPlace | undefined
  /** The timer that put it out, if one did. */
  readonly timer: FiredTimer | undefined
}

/**
 * A value as it was put out, whatever its step does with it afterwards. It is written only where it is asked for, as few are; what is no
 * plain data cannot be copied, and is written at once.
 */
export class ValuePutOut {
  readonly #copy: unknown
  readonly #text: string | null | undefined

  constructor(value: unknown) {
    this.#copy = plainCopy(value)
    this.#text = this.#copy === notPlain ? written(value) : undefined
  }

  /** JSON or tagged JSON; null for what neither can hold, such as what a sink of the user's own takes. */
  get text(): string | null {
    return this.#text === undefined ? written(this.#copy) : this.#text
  }
}

function written(value: unknown): string | null {
  try {
    return encodeValue(value, 'a dead letter')
  } catch {
    return null
  }
}

/** What waited for one sink. */
export interface Taken {
  readonly items: readonly unknown[]
  madeOf(item: number): Made
}

/** What waits for one sink, and what each item was made of. */
export class Lane {
  readonly name: string
  readonly sink: Sink
  readonly key: ((value: unknown) => string) | undefined
  items: unknown[] = []
  /** Of each item where it comes from: all of it, or, as that is one object less for each output, its ordinal alone. */
  #made: (Made | number)[] = []
  readonly #keepsValues: boolean
  /** How many items there were before the record at hand. */
  mark = 0
  readonly latest = new LatestOnly()

  constructor(name: string, sink: Sink, key?: (value: unknown) => string, { keepsValues = true } = {}) {
    this.name = name
    this.sink = sink
    this.key = key
    this.#keepsValues = keepsValues
  }

  /** Adds an output. Throws what its sink throws. */
  put(output: Output, ordinal: number, step?: StepPlace, timer?: FiredTimer): void {
    this.items.push(this.sink.prepare(output))
    const { value, index } = output
    this.#made.push(this.#keepsValues ? { value: new ValuePutOut(value), index, ordinal, step, timer } : ordinal)
  }

  /** Takes back what the record at hand has added, and says how many items that were. */
  rewind(): number {
    const added = this.items.length - this.mark
    this.items.length = this.mark
    this.#made.length = this.mark
    this.latest.rewind(this.mark)
    return added
  }

  /** Takes out what waits, but for what a later output has replaced. */
  take(): Taken {
    const isKept = this.latest.take()
    const [items, made] = [this.items, this.#made]
    this.items = []
    this.#made = []
    this.mark = 0
    if (isKept === undefined) return { items, madeOf: (item) => madeOf(made, item) }
    const kept = made.filter((_, i) => isKept(i))
    return { items: items.filter((_, i) => isKept(i)), madeOf: (item) => madeOf(kept, item) }
  }
}

/** The outputs of a record stand side by side. */
function madeOf(made: readonly (Made | number)[], item: number): Made {
  const one = made[item] as Made | number
  if (typeof one !== 'number') return one
  return { value: undefined, index: item - made.indexOf(one), ordinal: one, step: undefined, timer: undefined }
}

/**
 * When a batch must come to its end: `signal` aborts at `atMs`, so that nothing new begins; `closing` aborts, and `late`
 * resolves, when the answer can wait no longer. In between progress is written.
 */
export interface Stop {
  readonly signal: AbortSignal
  readonly atMs: number
  readonly closing: AbortSignal
  readonly late: Promise<undefined>
  /**
   * Whether `signal` has aborted. Where the clock says that the deadline itself has passed it aborts now: in a process that was frozen
   * the timer which would have done it runs late. To be asked before anything is sent.
   */
  isOver(): boolean
}

export const outOfTime = (): RetryableError =>
  new RetryableError('the invocation has no time left', { code: 'deadline' })

/** A sink's answer, or `retry` for every item where there is none that can be trusted. */
export async function outcomesOf(lane: Lane, items: readonly unknown[], stop: Stop): Promise<readonly Outcome[]> {
  const nothingDelivered = (error: Error): Outcome[] => items.map(() => ({ status: 'retry', error }))
  if (stop.isOver()) return nothingDelivered(outOfTime())
  try {
    const outcomes = await Promise.race([lane.sink.deliver(items, { signal: stop.signal }), stop.late])
    if (outcomes === undefined) return nothingDelivered(tooLate(lane))
    if (outcomes.length === items.length) return outcomes
    throw new Error(`sink "${lane.name}" answered for ${outcomes.length} of ${items.length} items`)
  } catch (error) {
    return nothingDelivered(error instanceof Error ? error : new Error(describeError(error).message))
  }
}

export type NotDelivered = Exclude<Outcome, { status: 'delivered' }>

/** What stands for an outcome that a sink left out. */
export const noAnswer = (lane: Lane): NotDelivered => ({
  status: 'retry',
  error: new Error(`sink "${lane.name}" left out the outcome of an item`),
})

const tooLate = (lane: Lane) =>
  new RetryableError(`sink "${lane.name}" did not answer before the deadline`, { code: 'deadline' })
