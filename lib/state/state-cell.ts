/**
 * One value of a draft: a state of the key's item, or one entry of a map state.
 *
 * 1. A value is checked, brought to our schema version and frozen once: when it is written, or read for the first time after
 *    it was loaded. What is handed out is that value; of a list state, and where bytes are in it, a copy. So no step can
 *    change it.
 *    The value of a packed state is handed out and taken as it is; it is encoded, and the encoding checked, where somebody
 *    asks for it, once per value.
 * 2. A step that throws leaves a cell as it was before: what it was is noted on the step's first change.
 */
import { invariant, RetryableError } from '../core/errors.ts'
import { type TouchedValue, writeOwn } from './key-own.ts'
import { keyPath } from './key-path.ts'
import type { StateValue } from './state-store.ts'
import type { StateDeclaration } from './states.ts'
import { CheckedCopy, checkValue, freezeValue } from './values.ts'

/** Where a value stands: errors name it. */
export interface CellPlace {
  /** Undefined where nobody said. */
  readonly stage: string | undefined
  readonly key: string
  /** The stored name. */
  readonly state: string
  /** Of a map state's entry. */
  readonly entry?: string
}

/** A value as the store has it. */
export interface StoredValue {
  readonly value: StateValue
  readonly touched: TouchedValue
  readonly expiresAtSeconds: number | undefined
}

export class StateCell {
  readonly declaration: StateDeclaration
  readonly place: CellPlace
  /** Undefined where there is none. Of a packed state that is ready, what steps see. */
  value: unknown
  /** The schema version of the value. */
  version: number
  /** The key's time when the value was touched last; NaN where nobody noted it. */
  touchedMs: number
  /** Whether the store has a value here. */
  isStored: boolean
  /** Whether the store keeps that value until it is removed. */
  isLasting: boolean
  /** Whether the value is of our version and frozen. */
  #isReady: boolean
  #hasBytes = false
  /** Of a packed state that is ready: what its value is in the table, once somebody asked. */
  #encoded: StateValue | undefined
  /** The step that changed the cell last, and what it was before that step. */
  #step = 0
  #valueBefore: unknown
  #touchedBeforeMs = Number.NaN
  #hasBytesBefore = false
  #encodedBefore: StateValue | undefined
  #versionBefore = 0
  #isReadyBefore = false

  constructor(declaration: StateDeclaration, place: CellPlace, stored: StoredValue | undefined) {
    this.declaration = declaration
    this.place = place
    this.value = stored?.value
    this.version = stored === undefined ? declaration.version : (stored.touched.version ?? 1)
    this.touchedMs = stored?.touched.touchedMs ?? Number.NaN
    this.isStored = stored !== undefined
    this.isLasting = stored !== undefined && stored.expiresAtSeconds === undefined
    this.#isReady = stored === undefined
  }

  /** How errors name the value. */
  get path(): string {
    const { stage, key, state, entry } = this.place
    return `${keyPath(key, stage)}: the state ${state}${entry === undefined ? '' : `[${JSON.stringify(entry)}]`}`
  }

  /** Gone at the key's time `nowMs`. A value that nobody noted a touch of stays until it is written. */
  isExpiredAt(nowMs: number): boolean {
    const { ttl } = this.declaration
    return ttl !== undefined && nowMs >= this.touchedMs + ttl.after.ms
  }

  /** Whether a commit at the key's time keeps the value. What a newer release wrote is not ours to remove. */
  isKeptAt(nowMs: number): boolean {
    return this.value !== undefined && (this.version > this.declaration.version || !this.isExpiredAt(nowMs))
  }

  /** Whether a commit at the key's time keeps the value until it is removed. */
  isLastingAt(nowMs: number): boolean {
    return this.declaration.ttl === undefined && this.isKeptAt(nowMs)
  }

  /** The store has what a commit at the key's time kept. */
  stored(nowMs: number): void {
    this.isStored = this.isKeptAt(nowMs)
    this.isLasting = this.isLastingAt(nowMs)
  }

  /** How much longer the value is visible, from the key's time `nowMs` on; minus infinity where the key has none yet. */
  remainingMs(nowMs: number): number {
    const afterMs = this.declaration.ttl?.after.ms ?? 0
    return Number.isNaN(this.touchedMs) || nowMs === Number.NEGATIVE_INFINITY
      ? afterMs
      : Math.max(0, this.touchedMs + afterMs - nowMs)
  }

  /** What is kept beside the value, at the key's time `nowMs`. */
  own(nowMs: number): StateValue | undefined {
    if (this.declaration.ttl === undefined && this.version === 1) return undefined
    const touchedMs = Number.isNaN(this.touchedMs) ? nowMs : this.touchedMs
    return writeOwn({
      touchedMs: this.declaration.ttl !== undefined && Number.isFinite(touchedMs) ? touchedMs : undefined,
      version: this.version === 1 ? undefined : this.version,
    })
  }

  /** The value for a step, which cannot change it. */
  handOut(): unknown {
    this.makeReady()
    if (this.#hasBytes) return checkValue(this.value, '')
    return this.declaration.kind === 'list' ? (this.value as readonly StateValue[]).slice() : this.value
  }

  /** The value as the table is to hold it. Throws a TerminalError for a packed one that it could not return unchanged. */
  encoded(): StateValue | undefined {
    const { declaration, value } = this
    if (declaration.kind !== 'packed' || !this.#isReady || value === undefined) return value as StateValue | undefined
    this.#encoded ??= new CheckedCopy(this, 'frozen').of(declaration.encode(value))
    return this.#encoded
  }

  /** Brings a value from the store to our version, and freezes it; what throws leaves it as it is. Throws for one of a newer version. */
  makeReady(): void {
    if (this.#isReady) return
    const { version, upcast } = this.declaration
    if (this.version > version) {
      throw new RetryableError(
        `${this.path} has the schema version ${this.version}, and this release knows up to ${version}: deploy the release that wrote it, or a later one`,
        { code: 'newer-schema' },
      )
    }
    let value: unknown = this.value
    let hasBytes = freezeValue(this.value as StateValue)
    for (let older = this.version; older < version; older += 1) value = upcast[older]?.(value)
    if (this.version < version) {
      const copy = new CheckedCopy(this, 'frozen')
      value = copy.of(value)
      hasBytes = copy.hasBytes
    }
    if (this.declaration.kind === 'packed') {
      const decoded = this.declaration.decode(value as StateValue)
      this.#encoded = value as StateValue
      this.value = decoded
      this.#hasBytes = false
    } else {
      this.value = value
      this.#hasBytes = hasBytes
    }
    this.version = version
    this.#isReady = true
  }

  /** The value as it was before `makeReady` brought it to our version. */
  undoUpcast(value: unknown, version: number): void {
    this.value = value
    this.version = version
    this.#isReady = false
    this.#encoded = undefined
  }

  /** Notes what the cell, ready or not, is before the step. True on the step's first call. */
  begin(step: number): boolean {
    if (this.#step === step) return false
    this.#step = step
    this.#versionBefore = this.version
    this.#isReadyBefore = this.#isReady
    this.#valueBefore = this.value
    this.#touchedBeforeMs = this.touchedMs
    this.#hasBytesBefore = this.#hasBytes
    this.#encodedBefore = this.#encoded
    return true
  }

  /** Undoes what happened since `begin`. */
  rollback(): void {
    this.value = this.#valueBefore
    this.touchedMs = this.#touchedBeforeMs
    this.#hasBytes = this.#hasBytesBefore
    this.#encoded = this.#encodedBefore
    this.version = this.#versionBefore
    this.#isReady = this.#isReadyBefore
  }

  /** Takes a value of the user's. Throws a TerminalError for what the table could not return unchanged. */
  set(value: unknown): void {
    if (this.declaration.kind === 'packed') this.#pack(value)
    else if (typeof value === 'number' && Number.isSafeInteger(value)) {
      this.value = value + 0
      this.#hasBytes = false
    } else this.#take(value)
  }

  #pack(value: unknown): void {
    if (value === undefined) invariant(false, `${this.path} was set to undefined: clear it`)
    this.value = value
    this.#encoded = undefined
  }

  #take(value: unknown): void {
    const copy = new CheckedCopy(this, 'frozen')
    this.value = copy.of(value)
    this.#hasBytes = copy.hasBytes
  }

  /** Takes a list of checked elements and one more element of the user's, of which the last `atMost` are kept. */
  append(list: readonly StateValue[], element: unknown, atMost: number): void {
    const copy = new CheckedCopy(this, 'frozen')
    const kept = list.length < atMost ? [...list, null] : list.slice(-atMost).copyWithin(0, 1)
    kept[kept.length - 1] = copy.inside(kept.length - 1, element)
    this.value = kept
    this.#hasBytes ||= copy.hasBytes
  }

  clear(): void {
    this.value = undefined
    this.version = this.declaration.version
    this.#isReady = true
    this.#hasBytes = false
    this.#encoded = undefined
  }
}
