/** What every kind of window operator is linked with. */
import type { RecordInfo } from '../../../core/record.ts'
import type { Key } from '../../../state/key-encoding.ts'
import type { StateValue } from '../../../state/state-store.ts'
import type { Aggregator } from '../../aggregators/aggregator.ts'
import type { Emit } from '../../operator.ts'
import type { KeyedLinkContext } from '../keyed-operator.ts'
import type { WindowEmission, WindowResult } from './window-result.ts'

/** How one kind of window keeps its state `S` and is linked. */
export interface WindowKind<T, S> {
  encode(state: S): StateValue
  decode(stored: StateValue): S
  link(parts: LinkedParts<T>): WindowLink<T>
}

export interface WindowLink<T> {
  readonly record: Emit<T>
  /** Is left out by windows that wait for no time. A quiet firing puts nothing out. */
  fire?(timeMs: number, isQuiet: boolean): void
}

/** How a window operator is made. */
export interface WindowDeclaration<T> {
  readonly name: string
  readonly emit: WindowEmission
  readonly aggregator: Aggregator<T, unknown>
}

export interface LinkedParts<T> {
  readonly context: KeyedLinkContext
  readonly results: Emit<WindowResult<Key, unknown>>
  readonly late: Emit<T>
}

/** The state of an operator of the key at hand: the draft keeps it as it is, and it is never changed. */
export class WindowState<S> {
  readonly #name: string
  readonly #context: KeyedLinkContext

  constructor(name: string, context: KeyedLinkContext) {
    this.#name = name
    this.#context = context
  }

  get(): S | undefined {
    return this.#context.draft().read(this.#name) as S | undefined
  }

  set(state: S): void {
    this.#context.draft().write(this.#name, state)
  }

  clear(): void {
    this.#context.draft().remove(this.#name)
  }

  /**
   * Sees to it that the timer fires at that time or before. A timer is never moved away: one that fires before anything is
   * due is set anew, which costs less than a new due entry for every record.
   */
  wakeBy(timeMs: number): void {
    const draft = this.#context.draft()
    const setMs = draft.timer('event-time', this.#name)
    if (setMs === undefined || timeMs < setMs) draft.setTimer('event-time', this.#name, timeMs)
  }
}

/** Puts out one result: of a record, or of no one record. */
export function emitResult(
  { context, results }: Pick<LinkedParts<never>, 'context' | 'results'>,
  { window, revision, isFinal, isRetracted, value }: Omit<WindowResult<Key, unknown>, 'key'>,
  record: RecordInfo = context.result(window.endMs - 1),
): void {
  results({ key: context.key(), window, revision, isFinal, isRetracted, value }, record)
}
