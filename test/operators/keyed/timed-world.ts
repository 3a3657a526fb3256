/**
 * Runs one keyed operator in event time as the runtime does: at each number first what the watermark makes due, other keys in
 * the order of their names, then the record's own key in one step with the record, then what that step set in the past.
 */
import { type RecordInfo, SourceRecord } from '../../../lib/core/record.ts'
import type { KeyedLink, KeyedOperator } from '../../../lib/operators/keyed/keyed-operator.ts'
import { KeyDraft } from '../../../lib/state/key-draft.ts'
import type { KeyItem, StateValue } from '../../../lib/state/state-store.ts'

export interface TimedRecord<I> {
  readonly key?: string
  readonly value: I
  readonly timeMs: number
  /** @default the watermark */
  readonly ownMarkMs?: number
}

export interface TimedWorldOptions {
  /** Whether a key is written and read again after a step. @default never */
  readonly reloads?: () => boolean
  /** Whether a step runs, is taken back and runs again. @default never */
  readonly repeats?: () => boolean
  /** Whether a firing that throws is given up. @default it throws */
  readonly givesUp?: boolean
}

export class TimedWorld<I, O> {
  readonly results: O[] = []
  readonly late: I[] = []
  /** The event times that results carry. */
  readonly resultTimes: number[] = []
  /** How many firings there were, and of how many keys there is anything. */
  firings = 0
  watermarkMs = Number.NEGATIVE_INFINITY
  processingMs = 0
  readonly #operator: KeyedOperator<I, O>
  readonly #link: KeyedLink<I>
  readonly #options: TimedWorldOptions
  readonly #drafts = new Map<string, KeyDraft>()
  #draft: KeyDraft | undefined
  #ownMarkMs = Number.NEGATIVE_INFINITY
  #number = 0

  constructor(operator: KeyedOperator<I, O>, options: TimedWorldOptions = {}) {
    this.#operator = operator
    this.#options = options
    const result = (value: O, record: RecordInfo): void => {
      this.results.push(value)
      this.resultTimes.push(record.eventTimeMs)
    }
    this.#link = operator.link(result, () => (value) => void this.late.push(value as I), {
      step: operator.name,
      table: () => {
        throw new Error('no table')
      },
      draft: () => this.#current(),
      key: () => this.#current().key,
      operatorState: () => undefined,
      times: () => ({
        watermarkMs: this.watermarkMs,
        ownMarkMs: this.#ownMarkMs,
        processingMs: this.processingMs,
      }),
      result: recordAt,
    })
  }

  /** One record at a watermark, which moves the stage's where it is larger; gives the results of this number. */
  take(record: TimedRecord<I>, watermarkMs = this.watermarkMs): readonly O[] {
    return this.#at(watermarkMs, record)
  }

  /** The watermark moves without a record. */
  advance(watermarkMs: number): readonly O[] {
    return this.#at(watermarkMs, undefined)
  }

  /** The states of a key, as the table has them. */
  stored(key = 'k'): { readonly [name: string]: StateValue } {
    return this.#draftOf(key).commit(0, 0).item.states
  }

  nextTimerMs(key = 'k'): number | undefined {
    return this.#draftOf(key).nextTimer('event-time')?.timeMs
  }

  /** The same keys under another operator, as a deployment finds them in the table; `read` may change what is there. */
  redeployed(operator: KeyedOperator<I, O>, read: (stored: KeyItem) => KeyItem = (stored) => stored): TimedWorld<I, O> {
    const next = new TimedWorld(operator, this.#options)
    next.watermarkMs = this.watermarkMs
    next.processingMs = this.processingMs
    next.#number = this.#number
    for (const [key, draft] of this.#drafts) {
      const stored = read(structuredClone(draft.commit(0, 0).item))
      next.#drafts.set(key, new KeyDraft(key, stored, operator.states))
    }
    return next
  }

  #at(watermarkMs: number, record: TimedRecord<I> | undefined): readonly O[] {
    const before = this.results.length
    this.#number += 1
    this.watermarkMs = Math.max(this.watermarkMs, watermarkMs)
    const own = record && (record.key ?? 'k')
    for (const key of [...this.#drafts.keys()].sort()) {
      if (key === own || !this.#isDue(this.#draftOf(key))) continue
      this.#step(key, () => this.#fireAll())
    }
    if (record !== undefined) {
      this.#step(record.key ?? 'k', () => {
        this.#fireAll()
        this.#ownMarkMs = record.ownMarkMs ?? this.watermarkMs
        this.#link.record(record.value, recordAt(record.timeMs))
        this.#ownMarkMs = Number.NEGATIVE_INFINITY
        this.#fireAll()
      })
    }
    return this.results.slice(before)
  }

  #step(key: string, run: () => void): void {
    const draft = this.#draftOf(key)
    this.#draft = draft
    const begin = () => draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    begin()
    if (this.#options.repeats?.()) {
      const marks = [this.results.length, this.late.length, this.resultTimes.length, this.firings] as const
      run()
      const changes = draft.changesText()
      const results = this.results.slice(marks[0])
      draft.rollback()
      this.results.length = marks[0]
      this.late.length = marks[1]
      this.resultTimes.length = marks[2]
      this.firings = marks[3]
      begin()
      run()
      expect(draft.changesText()).toBe(changes)
      expect(this.results.slice(marks[0])).toEqual(results)
    } else run()
    draft.accept(this.#number)
    if (this.#options.reloads?.()) {
      this.#drafts.set(key, new KeyDraft(key, structuredClone(draft.commit(0, 0).item), this.#operator.states))
    }
  }

  #isDue(draft: KeyDraft): boolean {
    const next = draft.nextTimer('event-time')
    return next !== undefined && next.timeMs <= this.watermarkMs
  }

  #fireAll(): void {
    for (const domain of ['event-time', 'processing-time'] as const) {
      for (;;) {
        const draft = this.#current()
        const next = draft.nextTimer(domain)
        const nowMs = domain === 'event-time' ? this.watermarkMs : this.processingMs
        if (next === undefined || next.timeMs > nowMs) break
        draft.clearTimer(domain, next.name)
        this.firings += 1
        try {
          this.#link.fire?.(domain, next.name, next.timeMs)
        } catch (thrown) {
          if (!this.#options.givesUp) throw thrown
          this.#link.skip?.(domain, next.name, next.timeMs)
        }
      }
    }
  }

  #draftOf(key: string): KeyDraft {
    const draft = this.#drafts.get(key) ?? new KeyDraft(key, undefined, this.#operator.states)
    this.#drafts.set(key, draft)
    return draft
  }

  #current(): KeyDraft {
    if (this.#draft === undefined) throw new Error('no step runs')
    return this.#draft
  }
}

function recordAt(eventTimeMs: number): SourceRecord {
  const record = new SourceRecord({ source: 's', partition: 'p', position: '1', arrivalTimeMs: 0, payload: null })
  record.eventTimeMs = eventTimeMs
  return record
}
