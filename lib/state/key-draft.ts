/**
 * One key's state while a batch runs: what was read, and what the steps so far made of it.
 *
 * 1. Between `begin` and `accept` or `rollback` a step runs. What it changed is kept whole or not at all.
 * 2. The key's times are the largest of its records so far, the one at hand included, and what its timers have moved them to. They
 *    move with every step, whatever else it does, and are committed where a TTL goes by them: otherwise the cut of a batch could
 *    bring back what expired.
 * 3. What has expired is never handed out, and leaves the key's item with the next commit. An expired entry is left to the
 *    table's own TTL, unless a step touches it.
 * 4. Timers are part of the key's item, and of the step like any state.
 * 5. The entries of a key without an item are none: what is still there of an earlier life of the key does not count.
 */
import { invariant, isRetryable, TerminalError } from '../core/errors.ts'
import { EntryNotLoaded } from './entry-not-loaded.ts'
import { commitOf, type DraftContent, type EntryBook, timeOf, type UndeclaredState } from './key-commit.ts'
import { compareUtf8 } from './key-encoding.ts'
import { type KeyOwn, readKeyOwn, readTouched } from './key-own.ts'
import { keyPath } from './key-path.ts'
import { type KeyTimer, KeyTimers } from './key-timers.ts'
import { StateCell } from './state-cell.ts'
import type { StateAccess } from './state-links.ts'
import type { EntryItem, KeyCommit, KeyItem, StateValue, TimerDomain } from './state-store.ts'
import type { StateDeclaration } from './states.ts'
import { StepCells } from './step-cells.ts'
import { changeTexts, type StepChange } from './step-changes.ts'

export { EntryNotLoaded } from './entry-not-loaded.ts'
export type { KeyTimer } from './key-timers.ts'
export { linkStates } from './state-links.ts'
export type { TimerDomain } from './state-store.ts'

/** When the record of a step was, as its TTLs see it; of a step of timers, what the key's times are at least. */
export interface StepTime {
  /** In ms since 1970 UTC; minus infinity where the record moves no time. */
  readonly eventTimeMs: number
  /** When the broker took in the record that it comes from, in ms since 1970 UTC. */
  readonly arrivalTimeMs: number
}

/** What was loaded of a map state. */
interface Entries {
  readonly declaration: StateDeclaration
  readonly cells: Map<string, StateCell>
  isComplete: boolean
}

/**
 * The state of one key, between two reads of the table.
 *
 * @example
 * const draft = new KeyDraft('h1', item, states)
 * draft.begin({ eventTimeMs, arrivalTimeMs })
 * try {
 *   step() // by way of views: see `linkStates`
 *   draft.accept(number)
 * } catch (error) {
 *   draft.rollback()
 * }
 * await store.commit(draft.commit(clock.nowMs(), retentionMs), signal)
 * draft.committed()
 */
export class KeyDraft implements StateAccess {
  readonly key: string
  readonly #stage: string | undefined
  readonly #declarations: ReadonlyMap<string, StateDeclaration>
  readonly #cells = new Map<string, StateCell>()
  readonly #maps = new Map<string, Entries>()
  readonly #own: KeyOwn
  readonly #undeclared: UndeclaredState[] = []
  /** Undefined before the first: most stages have none. */
  #timers: KeyTimers | undefined
  readonly #redrives: Map<string, number>
  readonly #isNew: boolean
  #keepsEntries = false
  #keepsEventTime = false
  #keepsArrivalTime = false
  #readPosition: number | undefined
  #position: number
  #book: EntryBook
  #bookOfCommit: EntryBook

  readonly #times: Times
  readonly #timesBefore: Times
  /** When the record of the step at hand arrived. */
  #stepArrivedAtMs = Number.NEGATIVE_INFINITY
  readonly #stepCells = new StepCells()
  readonly #stepRedrives: string[] = []
  /** What a view threw first in the step at hand that is not the step's to answer. */
  #stepEnd: Error | undefined

  #isChanged = false
  readonly #changedEntries = new Set<StateCell>()

  /** `states` are all that the stage declares, by stored name; `stage` is for errors to name. */
  constructor(
    key: string,
    item: KeyItem | undefined,
    states: ReadonlyMap<string, StateDeclaration>,
    stage?: string | undefined,
  ) {
    this.key = key
    this.#stage = stage
    this.#declarations = states
    this.#own = readKeyOwn(item?.own)
    this.#readPosition = item?.position
    this.#position = item?.position ?? 0
    const { eventTimeMs = Number.NEGATIVE_INFINITY, arrivalTimeMs = Number.NEGATIVE_INFINITY } = this.#own
    this.#times = { eventTimeMs, arrivalTimeMs }
    this.#timesBefore = { eventTimeMs, arrivalTimeMs }
    const { lastingEntries = 0, entriesUntilSeconds = 0, entriesSince } = this.#own
    this.#book = { lastingEntries, entriesUntilSeconds, entriesSince }
    this.#bookOfCommit = this.#book
    if (this.#own.timers !== undefined) this.#timers = new KeyTimers(this, this.#own.timers)
    this.#redrives = new Map(this.#own.redrives && Object.entries(this.#own.redrives))
    this.#isNew = item === undefined
    for (const { kind, ttl } of states.values()) {
      if (kind === 'map') this.#keepsEntries = true
      if (ttl?.by === 'event-time') this.#keepsEventTime = true
      if (ttl?.by === 'processing-time') this.#keepsArrivalTime = true
    }
    if (item === undefined) return
    for (const [name, value] of Object.entries(item.states)) this.#load(name, value)
  }

  /** How errors name the key. */
  get path(): string {
    return keyPath(this.key, this.#stage)
  }

  /** The position that the next commit is conditional on; undefined where the key had no item. */
  get readPosition(): number | undefined {
    return this.#readPosition
  }

  /** What the draft includes; 0 where nothing ever was. */
  get position(): number {
    return this.#position
  }

  /** Whether there is anything to commit since the last commit, or since the key was read. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** How many entries of map states a commit would write. */
  get changedEntries(): number {
    return this.#changedEntries.size
  }

  /** Whether the entry was loaded, or is known to be absent. */
  hasEntry(state: string, entry: string): boolean {
    const { cells, isComplete } = this.#entriesOf(state)
    return isComplete || cells.has(entry)
  }

  /** Takes an entry from the store; undefined says that there is none. One that was loaded before stays as it is now. */
  loadEntry(state: string, entry: string, item: EntryItem | undefined): void {
    const entries = this.#entriesOf(state)
    if (!entries.cells.has(entry)) this.#addEntry(entries, state, entry, item)
  }

  /** Takes all entries that a map state has in the store. */
  loadAllEntries(state: string, items: ReadonlyMap<string, EntryItem>): void {
    for (const [entry, item] of items) this.loadEntry(state, entry, item)
    this.#entriesOf(state).isComplete = true
  }

  /**
   * A step begins, of a record or of timers alone. What an earlier one left that was neither accepted nor rolled back is undone.
   */
  begin({ eventTimeMs, arrivalTimeMs }: StepTime, isOfRecord = true): void {
    this.rollback()
    this.#stepCells.begin()
    this.#stepEnd = undefined
    this.#stepArrivedAtMs = isOfRecord ? arrivalTimeMs : Number.NEGATIVE_INFINITY
    if (this.#keepsEventTime && eventTimeMs > this.#times.eventTimeMs) this.#times.eventTimeMs = eventTimeMs
    if (this.#keepsArrivalTime && arrivalTimeMs > this.#times.arrivalTimeMs) this.#times.arrivalTimeMs = arrivalTimeMs
  }

  /**
   * Throws what a view threw in the step at hand that is not the step's to answer: an entry that is not loaded, or a value of a
   * newer release. To be called behind whatever is the user's, which may have caught it.
   */
  throwAgain(): void {
    if (this.#stepEnd !== undefined) throw this.#stepEnd
  }

  /** The step is done: what it wrote is kept, and the draft includes `position`. */
  accept(position: number): void {
    // The message is made only where it is needed: this happens once per record.
    if (!(position > this.#position)) invariant(false, `a draft went from position ${this.#position} to ${position}`)
    this.#position = position
    this.#stepCells.addEntriesTo(this.#changedEntries)
    if (this.#stepCells.isChanging || this.#timers?.isChanged || this.#stepRedrives.length > 0) this.#isChanged = true
    const { eventTimeMs, arrivalTimeMs } = this.#timesBefore
    if (this.#times.eventTimeMs !== eventTimeMs || this.#times.arrivalTimeMs !== arrivalTimeMs) this.#isChanged = true
    this.#endStep()
  }

  /**
   * The record at `position` is given up, and no step is under way: nothing changes but the position, which is committed, so
   * that no other attempt applies the record later.
   */
  skip(position: number): void {
    invariant(position > this.#position, `a draft went from position ${this.#position} to ${position}`)
    this.#position = position
    this.#isChanged = true
  }

  /** The step threw: all is as before `begin`. */
  rollback(): void {
    this.#stepCells.rollback()
    this.#timers?.rollback()
    for (const id of this.#stepRedrives) this.#redrives.delete(id)
    copyTimes(this.#timesBefore, this.#times)
    this.#endStep()
  }

  #endStep(): void {
    copyTimes(this.#times, this.#timesBefore)
    this.#stepCells.end()
    this.#timers?.accept()
    if (this.#stepRedrives.length > 0) this.#stepRedrives.length = 0
  }

  /** What the step at hand changed so far. */
  changes(): readonly StepChange[] {
    const changes = this.#stepCells.changes()
    if (this.#timers?.isChanged) changes.push(...this.#timers.changes())
    return changes
  }

  /** The same as one text: equal for two runs of the step that did the same. */
  changesText(): string {
    return changeTexts(this.changes()).join('\n')
  }

  /**
   * Sets the timer of that stored name, whatever it was set to. Throws a TerminalError for a time that is no whole number of
   * ms (`unsupported-timer`) and for one timer too many (`too-many-timers`).
   */
  setTimer(domain: TimerDomain, name: string, timeMs: number): void {
    this.#timers ??= new KeyTimers(this, undefined)
    this.#timers.set(domain, name, timeMs)
  }

  /** Removes the timer, where it is set. */
  clearTimer(domain: TimerDomain, name: string): void {
    this.#timers?.clear(domain, name)
  }

  /** When the timer is due, in ms since 1970 UTC; undefined where it is not set. */
  timer(domain: TimerDomain, name: string): number | undefined {
    return this.#timers?.timeOf(domain, name)
  }

  /** The timer that is due first; of one time, that with the lesser name. Cheap: to be asked for each record. */
  nextTimer(domain: TimerDomain): KeyTimer | undefined {
    return this.#timers?.next(domain)
  }

  /** When the first timer of the key's item, as it was read or committed last, is due: for due entries. */
  storedNextMs(domain: TimerDomain): number | undefined {
    return this.#timers?.storedNextMs(domain)
  }

  /** Whether the key took the redriven record of that identity already. */
  tookRedrive(id: string): boolean {
    return this.#redrives.has(id)
  }

  /** Notes that the step takes a redriven record; the note may go after `untilSeconds` since 1970 UTC. */
  takeRedrive(id: string, untilSeconds: number): void {
    if (this.#redrives.has(id)) return
    this.#redrives.set(id, untilSeconds)
    this.#stepRedrives.push(id)
  }

  /** What to write: `nowMs` is the time on the wall, `retentionMs` for how long a record may be on its way here. */
  commit(nowMs: number, retentionMs: number): KeyCommit {
    const { commit, book } = commitOf(this.#content(this.#position, this.#changedEntries), nowMs, retentionMs)
    this.#bookOfCommit = book
    return commit
  }

  /** What there would be to write if the step at hand were accepted as it is. */
  commitOfStep(position: number, nowMs: number, retentionMs: number): KeyCommit {
    const entries = this.#stepCells.addEntriesTo(new Set(this.#changedEntries))
    return commitOf(this.#content(position, entries), nowMs, retentionMs).commit
  }

  #content(position: number, changedEntries: Iterable<StateCell>): DraftContent {
    return {
      key: this.key,
      readPosition: this.#readPosition,
      position,
      times: this.#times,
      keepsEntries: this.#keepsEntries,
      cells: this.#cells.values(),
      undeclared: this.#undeclared,
      changedEntries,
      book: this.#book,
      timers: this.#timers?.toStored(),
      redrives: this.#redrives,
    }
  }

  /** What `commit` gave last took place, and no step ran since. */
  committed(): void {
    for (const cell of this.#changedEntries) cell.stored(timeOf(cell, this.#times))
    this.#changedEntries.clear()
    this.#timers?.committed()
    this.#book = this.#bookOfCommit
    this.#readPosition = this.#position
    this.#isChanged = false
  }

  read(state: string): unknown {
    return this.#read(this.#cellOf(state))
  }

  write(state: string, value: unknown): void {
    this.#change(this.#cellOf(state)).set(value)
  }

  append(state: string, element: unknown, atMost: number): void {
    const cell = this.#cellOf(state)
    const list = this.#isVisible(cell) ? (cell.value as readonly StateValue[]) : []
    this.#change(cell).append(list, element, atMost)
  }

  remove(state: string): void {
    this.#remove(this.#cellOf(state))
  }

  /** Removes a state of the key's item whatever it is, also one that cannot be read. */
  drop(state: string): void {
    const cell = this.#cellOf(state)
    if (cell.value !== undefined) this.#stepCells.note(cell).clear()
  }

  readEntry(state: string, entry: string): unknown {
    return this.#read(this.#entryOf(state, entry))
  }

  writeEntry(state: string, entry: string, value: unknown): void {
    this.#change(this.#entryOf(state, entry)).set(value)
  }

  removeEntry(state: string, entry: string): void {
    this.#remove(this.#entryOf(state, entry))
  }

  readEntries(state: string): readonly (readonly [entry: string, value: unknown])[] {
    const { cells, isComplete } = this.#entriesOf(state)
    if (!isComplete) throw this.#ends(new EntryNotLoaded(state, undefined))
    const visible: [string, unknown][] = []
    for (const [entry, cell] of cells) {
      const value = this.#read(cell)
      if (value !== undefined) visible.push([entry, value])
    }
    return visible.sort(([a], [b]) => compareUtf8(a, b))
  }

  #isVisible(cell: StateCell): boolean {
    if (cell.value === undefined) return false
    this.#makeReady(cell)
    return !cell.isExpiredAt(timeOf(cell, this.#times))
  }

  #read(cell: StateCell): unknown {
    if (!this.#isVisible(cell)) return undefined
    const isRefreshed = cell.declaration.ttl?.refreshedOn === 'read-and-write'
    if (isRefreshed && cell.touchedMs !== this.#touchTimeOf(cell)) this.#change(cell)
    return cell.handOut()
  }

  #makeReady(cell: StateCell): void {
    try {
      this.#stepCells.makeReady(cell)
    } catch (error) {
      throw isRetryable(error) ? this.#ends(error as Error) : error
    }
  }

  #ends<E extends Error>(error: E): E {
    this.#stepEnd ??= error
    return error
  }

  /** Notes that the step changes the cell, and touches it. */
  #change(cell: StateCell): StateCell {
    this.#makeReady(cell)
    this.#stepCells.note(cell)
    if (cell.declaration.ttl !== undefined) cell.touchedMs = this.#touchTimeOf(cell)
    return cell
  }

  /** The time from which a cell's TTL counts. Of a key that has no event time yet it is the arrival of the record at hand. */
  #touchTimeOf(cell: StateCell): number {
    const timeMs = timeOf(cell, this.#times)
    if (timeMs > Number.NEGATIVE_INFINITY) return timeMs
    return this.#stepArrivedAtMs > Number.NEGATIVE_INFINITY ? this.#stepArrivedAtMs : Number.NaN
  }

  #remove(cell: StateCell): void {
    if (cell.value !== undefined) this.#change(cell).clear()
  }

  #cellOf(state: string): StateCell {
    return this.#cells.get(state) ?? this.#addCell(state)
  }

  #addCell(state: string): StateCell {
    const declaration = this.#declarations.get(state)
    invariant(declaration !== undefined && declaration.kind !== 'map', `${state} is no state of the key's item`)
    const cell = new StateCell(declaration, { stage: this.#stage, key: this.key, state }, undefined)
    this.#cells.set(state, cell)
    return cell
  }

  #load(state: string, value: StateValue): void {
    const declaration = this.#declarations.get(state)
    if (declaration === undefined || declaration.kind === 'map') {
      this.#undeclared.push({ name: state, value, own: this.#ownOf(state) })
      return
    }
    const stored = { value, touched: readTouched(this.#ownOf(state)), expiresAtSeconds: undefined }
    this.#cells.set(state, new StateCell(declaration, { stage: this.#stage, key: this.key, state }, stored))
  }

  /** Names are the user's: one may be that of a property that every object has. */
  #ownOf(state: string): StateValue | undefined {
    const { states } = this.#own
    return states !== undefined && Object.hasOwn(states, state) ? states[state] : undefined
  }

  #entriesOf(state: string): Entries {
    return this.#maps.get(state) ?? this.#addMap(state)
  }

  #addMap(state: string): Entries {
    const declaration = this.#declarations.get(state)
    invariant(declaration?.kind === 'map', `${state} is no map state`)
    const entries = { declaration, cells: new Map(), isComplete: this.#isNew }
    this.#maps.set(state, entries)
    return entries
  }

  #entryOf(state: string, entry: string): StateCell {
    const entries = this.#entriesOf(state)
    const cell = entries.cells.get(entry)
    if (cell !== undefined) return cell
    if (typeof entry !== 'string' || !entry.isWellFormed()) {
      throw new TerminalError(
        `${this.path}: the map state ${state} has no entry ${JSON.stringify(entry)}: the name of an entry is text without halves of surrogate pairs`,
        { code: 'unsupported-key' },
      )
    }
    if (!entries.isComplete) throw this.#ends(new EntryNotLoaded(state, entry))
    return this.#addEntry(entries, state, entry, undefined)
  }

  #addEntry({ cells, declaration }: Entries, state: string, entry: string, item: EntryItem | undefined): StateCell {
    const stored =
      item?.value === undefined || item.position < (this.#book.entriesSince ?? 0)
        ? undefined
        : { value: item.value, touched: readTouched(item.own), expiresAtSeconds: item.expiresAtSeconds }
    const cell = new StateCell(declaration, { stage: this.#stage, key: this.key, state, entry }, stored)
    cells.set(entry, cell)
    return cell
  }
}

type Times = { eventTimeMs: number; arrivalTimeMs: number }

/** In place: this happens once per record. */
function copyTimes(from: Readonly<Times>, to: Times): void {
  to.eventTimeMs = from.eventTimeMs
  to.arrivalTimeMs = from.arrivalTimeMs
}
