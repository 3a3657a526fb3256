/**
 * The keys of one attempt at a keyed batch: their drafts, and the steps over them.
 *
 * 1. A step that finds something of its key's state missing is taken back, and runs again when that is loaded.
 * 2. Whoever finds that another attempt committed a key goes on from there: up to the position found all is done, and what
 *    lies beyond is stepped in silence, as it was published already.
 * 3. Whatever draft a key gets, its timers are noted, at the latest when it has fired, so that none is overlooked.
 */
import type { EntryNotLoaded, KeyDraft } from '../../state/key-draft.ts'
import type { KeyItem } from '../../state/state-store.ts'
import type { Halt } from '../batch.ts'
import { endOf, positionHashOf } from '../frames/position.ts'
import type { Outbox } from '../outbox.ts'
import { declaredEntries } from './declared-entries.ts'
import { type DueKeys, isDue } from './due-keys.ts'
import { KeyLoading, KeyMoved } from './key-loading.ts'
import { type FiringLine, hasRecord, type RecordLine, type Stepped, type SteppedLoaded } from './keyed-line.ts'
import type { KeyedLog } from './keyed-log.ts'
import type { KeyedParts } from './keyed-parts.ts'
import type { LineSteps } from './line-steps.ts'
import type { OperatorStates } from './operator-states.ts'

/** From this number of changed entries on a key is committed before its next step: a transaction holds 99. */
const manyEntries = 50

export interface BatchKeysParts {
  readonly parts: KeyedParts
  readonly partition: string
  readonly log: KeyedLog
  readonly steps: LineSteps
  readonly operatorStates: OperatorStates
  readonly due: DueKeys
  readonly outbox: Outbox
  /** Keys that are committed after each step, as their state is near its limit. */
  readonly careful: ReadonlySet<string>
  /** Numbers up to this one were done before the attempt. */
  readonly doneThrough: number
  readonly signal: AbortSignal
}

export class BatchKeys {
  /** Keys that were changed since the last flush. */
  readonly changed = new Set<string>()
  readonly #of: BatchKeysParts
  readonly #loading: KeyLoading
  #drafts = new Map<string, KeyDraft>()
  /** Changed keys that have many changed entries. */
  readonly #crowded = new Set<string>()
  /** Keys that this attempt loaded, or took over from another, and has not let go. */
  readonly #loaded = new Set<string>()
  #recordsStepped = 0

  constructor(of: BatchKeysParts) {
    this.#of = of
    this.#loading = new KeyLoading(of.parts.store, of.parts.stage, of.signal)
  }

  /** How many records were applied. */
  get recordsStepped(): number {
    return this.#recordsStepped
  }

  /** All drafts, for the cache. */
  get drafts(): Map<string, KeyDraft> {
    return this.#drafts
  }

  /** Loads the keys of the batch's records, or takes them from the cache, which is good for a version of progress. */
  async load(version: number): Promise<void> {
    const { parts, partition, log, careful, steps } = this.#of
    const { warm, ports, stage } = parts
    const cached = warm.take(partition, version)
    const cold = [...log.keys].filter((key) => careful.has(key) || !cached.has(key))
    const drafts = await this.#loading.keys(cold)
    ports.metrics.count('keys-read', cold.length)
    ports.metrics.count('keys-cached', log.keys.size - cold.length)
    // The batch's keys come last, so that the cache drops others first.
    for (const key of log.keys) {
      const draft = drafts.get(key) ?? cached.get(key)
      if (!draft) continue
      cached.delete(key)
      cached.set(key, draft)
    }
    this.#drafts = cached
    await this.#loading.prefetch(this.#drafts, declaredEntries(stage, log.lines, steps))
    for (const key of log.keys) this.#adopt(key, this.draft(key))
    this.#of.due.noteWarm(this.#drafts.values())
  }

  /** Loads keys that fire, but for those that are loaded. */
  async loadMore(keys: readonly string[]): Promise<void> {
    const cold = keys.filter((key) => !this.#drafts.has(key))
    this.#of.parts.ports.metrics.count('keys-read', cold.length)
    // Their timers are noted when they have fired.
    for (const [key, draft] of await this.#loading.keys(cold)) this.#put(key, draft)
  }

  draft(key: string): KeyDraft {
    return this.#drafts.get(key) as KeyDraft
  }

  /** The drafts of the batch's own keys and of those that were loaded to fire; where loading failed, of some. */
  ownDrafts(): readonly KeyDraft[] {
    return [...new Set([...this.#of.log.keys, ...this.#loaded])].flatMap((key) => this.#drafts.get(key) ?? [])
  }

  #adopt(key: string, draft: KeyDraft): void {
    this.#put(key, draft)
    this.#of.due.note(draft)
  }

  #put(key: string, draft: KeyDraft): void {
    this.#drafts.set(key, draft)
    this.#loaded.add(key)
    const { outbox, doneThrough } = this.#of
    const { readPosition = 0 } = draft
    if (readPosition <= doneThrough) return
    // Another attempt committed this key beyond our progress: what it sent we cannot vouch for.
    for (const { sender } of outbox.target.feeds ?? []) sender.foundAhead(endOf(readPosition))
  }

  /** Whether what waits is to be committed before a step of that key. */
  isFull(key: string): boolean {
    if (this.changed.size >= this.#of.parts.mostKeysPerCommit && !this.changed.has(key)) return true
    return this.#crowded.has(key) || this.isCarefulAndChanged(key)
  }

  /** Whether the key's next step, of whatever kind, has to find it committed. */
  isCarefulAndChanged(key: string): boolean {
    const { careful } = this.#of
    return careful.size > 0 && careful.has(key) && this.changed.has(key)
  }

  /** What was changed is committed. */
  flushed(): void {
    this.changed.clear()
    this.#crowded.clear()
  }

  /**
   * Keys that only fired are not kept once they are committed, as very many may fire at one number; nor are those that had nothing
   * to fire any more, because another attempt did it and ended before it wrote progress.
   */
  letGo(keys: readonly string[]): void {
    const { log, due } = this.#of
    for (const key of keys) {
      const draft = this.#drafts.get(key)
      if (draft === undefined || draft.isChanged || log.keys.has(key)) continue
      due.keepEarliest([draft])
      this.#drafts.delete(key)
      this.#loaded.delete(key)
      // It may have been changed before another attempt's commit was taken over.
      this.changed.delete(key)
      this.#crowded.delete(key)
    }
  }

  /** Steps a line: at once where all of its key's state is loaded. */
  step(line: RecordLine, index: number, quiet = false): SteppedLoaded | Promise<SteppedLoaded> {
    const stepped = this.#tryStep(line, index, quiet)
    if (stepped === 'done' || !('wants' in stepped)) return stepped
    return this.#loadAndStep(line, index, quiet, stepped.wants)
  }

  #tryStep(line: RecordLine, index: number, quiet: boolean): Stepped {
    const { steps, operatorStates } = this.#of
    const draft = this.draft(line.record.key)
    const before = draft.position
    const stepped = steps.step(line, index, draft, operatorStates.at(index), quiet)
    if (stepped !== 'done') return stepped
    if (!quiet && draft.position > before) this.#recordsStepped++
    this.#stepped(draft)
    return stepped
  }

  async #loadAndStep(line: RecordLine, index: number, quiet: boolean, wants: EntryNotLoaded): Promise<SteppedLoaded> {
    for (let missing = wants; ; ) {
      await this.#loadMissing(line.record.key, missing, line.number)
      const stepped = this.#tryStep(line, index, quiet)
      if (stepped === 'done' || !('wants' in stepped)) return stepped
      missing = stepped.wants
    }
  }

  /** Loads what a step at that number wants. What another attempt committed is what we stepped too; it goes on from there. */
  async #loadMissing(key: string, wants: EntryNotLoaded, number: number): Promise<void> {
    try {
      await this.#loading.more(this.draft(key), wants)
    } catch (error) {
      if (!(error instanceof KeyMoved)) throw error
      await this.takeOver(key, error.item, number - 1)
    }
  }

  #stepped(draft: KeyDraft): void {
    if (draft.isChanged) this.changed.add(draft.key)
    if (draft.changedEntries >= manyEntries) this.#crowded.add(draft.key)
    this.#of.due.note(draft)
  }

  /** Fires what is due of a key at a line that is not its own. */
  async fire(firing: FiringLine, quiet = false): Promise<Halt | undefined> {
    const { steps, operatorStates } = this.#of
    const { key, line, index } = firing
    for (;;) {
      const draft = this.draft(key)
      const stepped = steps.fire(firing, draft, operatorStates.at(index), quiet)
      if (stepped === 'done') {
        this.#stepped(draft)
        return undefined
      }
      if ('halt' in stepped) return { number: line.number, error: stepped.halt, counts: stepped.counts }
      if (!('wants' in stepped)) throw stepped.givenUp
      await this.#loadMissing(key, stepped.wants, line.number)
    }
  }

  /** A record that is a dead letter moves its key's position: an attempt that wakes late must not apply it as well. */
  skip({ number, record: { key } }: RecordLine): void {
    const draft = this.draft(key)
    if (draft.position < number) {
      draft.skip(number)
      this.changed.add(key)
    }
  }

  /** Goes on from what another attempt committed: steps in silence what lies beyond it, up to `target`. */
  async takeOver(key: string, item: KeyItem | undefined, target: number): Promise<void> {
    const { log, doneThrough } = this.#of
    this.#adopt(key, this.#loading.draft(key, item))
    const keyHash = positionHashOf(key)
    for (const [index, line] of log.lines.entries()) {
      if (line.number > target) break
      if (line.number <= doneThrough) continue
      if (hasRecord(line) && line.record.key === key) {
        const stepped = await this.step(line, index, true)
        if (stepped !== 'done' && 'halt' in stepped) throw stepped.halt
        if (stepped === 'done' && line.record.redrive === undefined) continue
        const halt = await this.fire({ line, index, key, keyHash: undefined }, true)
        if (halt) throw halt.error
        if (stepped !== 'done') this.skip(line)
      } else if (isDue(this.draft(key), line)) {
        const halt = await this.fire({ line, index, key, keyHash }, true)
        if (halt) throw halt.error
      }
    }
  }
}
