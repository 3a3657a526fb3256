/** Runs one keyed operator over real drafts, as the runtime does: a step that throws leaves nothing behind. */
import { SourceRecord } from '../../../lib/core/record.ts'
import type { KeyedOperator } from '../../../lib/operators/keyed/keyed-operator.ts'
import { EntryNotLoaded, KeyDraft } from '../../../lib/state/key-draft.ts'
import { type Key, keyText } from '../../../lib/state/key-encoding.ts'

export class OperatorWorld<I, O> {
  readonly outputs: O[] = []
  /** What was emitted to sides, by name, and among it the outputs under the name `out`, in the order of handing on. */
  readonly handedOn: (readonly [name: string, value: unknown])[] = []
  /** Map entries that a step asked for and `prefetch` had not named. */
  readonly loadedLate: string[] = []
  /** Values of operator states by stored name. */
  readonly slot = new Map<string, unknown>()
  readonly #operator: KeyedOperator<I, O>
  readonly #drafts = new Map<string, KeyDraft>()
  readonly #emit: (value: I, record: SourceRecord) => void
  #key: Key = ''

  constructor(operator: KeyedOperator<I, O>) {
    this.#operator = operator
    const next = (value: O): void => {
      this.outputs.push(value)
      this.handedOn.push(['out', value])
    }
    const side = (name: string) => (value: unknown) => void this.handedOn.push([name, value])
    const { record } = operator.link(next, side, {
      step: operator.name,
      table: () => {
        throw new Error('no table')
      },
      draft: () => this.draft(this.#key),
      key: () => this.#key,
      operatorState: (storedName) => this.slot.get(storedName),
      times: () => ({ watermarkMs: -Infinity, ownMarkMs: -Infinity, processingMs: 0 }),
      result: () => {
        throw new Error('nothing fires')
      },
    })
    this.#emit = record
  }

  draft(key: Key): KeyDraft {
    const text = keyText(key)
    const draft =
      this.#drafts.get(text) ??
      new KeyDraft(text, { position: 0.5, states: {}, expiresAtSeconds: undefined }, this.#operator.states)
    this.#drafts.set(text, draft)
    return draft
  }

  /** Steps one value at `timeMs`, and gives the outputs of this step. */
  step(key: Key, value: I, timeMs = 0): readonly O[] {
    const before = this.outputs.length
    const record = new SourceRecord({
      source: 's',
      partition: 'p',
      position: '1',
      arrivalTimeMs: timeMs,
      payload: null,
    })
    this.#key = key
    const draft = this.draft(key)
    for (const { state, entry } of this.#operator.prefetch?.(value, record) ?? [])
      draft.loadEntry(state, entry, undefined)
    draft.begin({ eventTimeMs: timeMs, arrivalTimeMs: timeMs })
    try {
      this.#emit(value, record)
    } catch (thrown) {
      draft.rollback()
      if (!(thrown instanceof EntryNotLoaded) || thrown.entry === undefined) throw thrown
      this.loadedLate.push(thrown.entry)
      this.outputs.length = before
      draft.loadEntry(thrown.state, thrown.entry, undefined)
      return this.step(key, value, timeMs)
    }
    draft.accept(Math.floor(draft.position) + 1)
    return this.outputs.slice(before)
  }
}
