/**
 * What every store demands of a write before it sends anything, so that all of them refuse the same.
 *
 * 1. Values are those that the table returns unchanged (`checkValue`).
 * 2. No item comes near the 400 KB that a table item can hold, and no commit goes beyond one transaction.
 * 3. A commit moves the position of its key on: the position is the version that the next commit is conditional on.
 * 4. What was checked is not looked through again, but for its sizes.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
 */
import { invariant, TerminalError } from '../core/errors.ts'
import { entryKey, keyItemKey, manifestKey, progressKey, type TableKey } from './key-encoding.ts'
import { readKeyOwn } from './key-own.ts'
import { keyPath } from './key-path.ts'
import type { DueEntry, KeyCommit, KeyItem, StateValue, TimerDomain } from './state-store.ts'
import { CheckedCopy, checkValue, sizeOf } from './values.ts'

/** An item that is large enough to be told about, while it is still written. */
export interface LargeItem {
  readonly stage: string
  /** The key's text; of progress, the partition. */
  readonly key: string
  /** The state that takes most of the item; undefined for progress. */
  readonly state: string | undefined
  /** As DynamoDB counts. */
  readonly bytes: number
}

export interface StateLimits {
  /** The stage whose state this is, as errors name it. */
  readonly stage: string
  /** The largest item that is written, in bytes, up to the table's own 409,600. @default 389_120 */
  readonly mostItemBytes?: number
  /** From this size on `onLargeItem` is called, in bytes. @default 262_144 */
  readonly largeItemBytes?: number
  /** Called for each item of that size that is about to be written: for a metric. @default nothing */
  readonly onLargeItem?: (item: LargeItem) => void
}

/** The actions of one DynamoDB transaction: the key item and 99 entries. */
export const mostTransactionItems = 100
const mostTransactionBytes = 4 * 1_024 * 1_024
const defaultMostItemBytes = 380 * 1_024
const defaultLargeItemBytes = 256 * 1_024
/** The names and numbers of our own attributes. */
const ownBytes = 96

interface Sized {
  readonly key: string
  readonly state: string | undefined
  readonly bytes: number
  /** Of a key's item: what it remembers of redriven records, where that is more than any state. */
  readonly redriven?: { readonly records: number; readonly bytes: number }
}

/** A commit as it will be read back. Only {@link checkedCommit} and {@link checkedDraft} make one; it stays as it is. */
export class CheckedCommit implements KeyCommit {
  readonly key: string
  readonly readPosition: number | undefined
  readonly item: KeyItem
  readonly entries: KeyCommit['entries']
  readonly #sizes: readonly Sized[]

  constructor({ key, readPosition, item, entries }: KeyCommit, sizes: readonly Sized[]) {
    this.key = key
    this.readPosition = readPosition
    this.item = item
    this.entries = entries
    this.#sizes = sizes
  }

  /** The largest of its items, in bytes, as DynamoDB counts. */
  get largestItemBytes(): number {
    return this.#sizes.reduce((most, { bytes }) => Math.max(most, bytes), 0)
  }

  /** The commit, where it keeps the limits. Throws a {@link TerminalError} that names stage, key and state. */
  within(limits: StateLimits): this {
    for (const size of this.#sizes) checkItemSize(size, limits)
    if (this.#sizes.length > 1) checkTransaction(this.#sizes, limits)
    return this
  }
}

/**
 * The commit as it will be read back; of one that was checked before only the sizes are looked at again, as limits differ.
 * Throws a {@link TerminalError} that names stage, key and state.
 */
export function checkedCommit(commit: KeyCommit, limits: StateLimits): CheckedCommit {
  if (commit instanceof CheckedCommit) return commit.within(limits)
  const { key, item } = commit
  const states = checkedStates(key, item, limits, false)
  const entries = commit.entries.map((entry) => {
    const path = pathOf(limits.stage, key, `${entry.state}[${JSON.stringify(shown(entry.entry))}]`)
    return {
      ...withOwn(entry, { path: `${path}: the runner's own attribute` }),
      value: entry.value === undefined ? undefined : checkValue(entry.value, path),
    }
  })
  return sized(commit, states, entries, limits)
}

/** What a draft wants to commit, checked: its values were checked and frozen when they were written or read. */
export function checkedDraft(commit: KeyCommit, limits: StateLimits): CheckedCommit {
  const states = checkedStates(commit.key, commit.item, limits, true)
  const entries = commit.entries.map(({ own, ...entry }) => (own === undefined ? entry : { ...entry, own }))
  return sized(commit, states, entries, limits)
}

function sized(
  { key, readPosition, item, entries }: KeyCommit,
  states: KeyItem['states'],
  checkedEntries: KeyCommit['entries'],
  limits: StateLimits,
): CheckedCommit {
  if (!(Number.isSafeInteger(item.position) && item.position > (readPosition ?? -1)))
    invariant(false, `a commit goes from position ${readPosition} to ${item.position}`)
  if (entries.length > 1) {
    const names = new Set(entries.map(({ state, entry }) => JSON.stringify([state, entry])))
    invariant(names.size === entries.length, 'a commit names an entry twice')
  }
  const { position, expiresAtSeconds, own } = item
  const checked: KeyItem =
    own === undefined
      ? { position, states, expiresAtSeconds }
      : { position, states, expiresAtSeconds, own: new CheckedCopy(ownPath(key, limits)).of(own) }
  const sizes = [keyItemSize(key, checked)]
  for (const { state, entry, value, own } of checkedEntries) {
    const bytes = keyBytes(entryKey({ key, state, entry })) + optionalSize(value) + optionalSize(own)
    sizes.push({ key, state, bytes })
  }
  return new CheckedCommit({ key, readPosition, item: checked, entries: checkedEntries }, sizes).within(limits)
}

/** Is put into words only where something is refused. */
const ownPath = (key: string, { stage }: StateLimits) => ({
  get path() {
    return `${keyPath(key, stage)}: the runner's own attribute`
  },
})

type WithOwn = { readonly own?: StateValue | undefined }

/** Without a property `own` where there is nothing in it, as it is read back. */
function withOwn<Item extends WithOwn>(
  { own, ...item }: Item,
  path: { readonly path: string },
): Omit<Item, 'own'> & WithOwn {
  return own === undefined ? item : { ...item, own: new CheckedCopy(path).of(own) }
}

/** What `readDue` is asked for. */
export interface DueQuery {
  readonly slot: number
  readonly domain: TimerDomain
  readonly untilMs: number
  readonly limit: number
  readonly after?: DueEntry | undefined
}

/** The query as it is. To ask for anything else is a bug of ours. */
export function checkedDueQuery(query: DueQuery): DueQuery {
  const { slot, domain, untilMs, limit, after } = query
  invariant(!Number.isNaN(untilMs), 'due entries were read up to the time NaN')
  invariant(Number.isSafeInteger(limit) && limit > 0, `${limit} due entries were asked for`)
  invariant(
    after === undefined || (after.slot === slot && after.domain === domain),
    'due entries were read behind one of another slot or domain',
  )
  return query
}

const optionalSize = (value: StateValue | undefined): number => (value === undefined ? 0 : sizeOf(value))

/** Progress as it will be read back. Throws a {@link TerminalError} that names stage and partition. */
export function checkedProgress(partition: string, value: StateValue, limits: StateLimits): StateValue {
  const checked = checkValue(value, `stage "${limits.stage}": the progress of partition "${partition}"`)
  const bytes = keyBytes(progressKey(partition)) + sizeOf(checked)
  checkItemSize({ key: partition, state: undefined, bytes }, limits)
  return checked
}

/** The manifest as it will be read back. Throws a {@link TerminalError} that names the stage. */
export function checkedManifest(value: StateValue, limits: StateLimits): StateValue {
  const checked = checkValue(value, `stage "${limits.stage}": the manifest`)
  checkItemSize({ key: 'manifest', state: undefined, bytes: keyBytes(manifestKey()) + sizeOf(checked) }, limits)
  return checked
}

function checkedStates(
  key: string,
  { states }: KeyItem,
  { stage }: StateLimits,
  isChecked: boolean,
): { [name: string]: StateValue } {
  const all: { [name: string]: StateValue } = {}
  for (const name of Object.keys(states).sort()) {
    // The table holds no attribute without a name; "__proto__" cannot be a name of an object of ours.
    if (name === '' || name === '__proto__' || !name.isWellFormed()) {
      throw new TerminalError(
        `${pathOf(stage, key, name)} has a name that the table cannot hold: give the state another one`,
        { code: 'unsupported-value' },
      )
    }
    const value = states[name] as StateValue
    all[name] = isChecked ? value : checkValue(value, pathOf(stage, key, name))
  }
  return all
}

const shown = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}...` : text)

const pathOf = (stage: string, key: string, state: string): string => `${keyPath(key, stage)}: the state ${state}`

function keyBytes({ pk, sk, pkText = '', skText = '' }: TableKey): number {
  return (
    ownBytes + Buffer.byteLength(pk) + Buffer.byteLength(sk) + Buffer.byteLength(pkText) + Buffer.byteLength(skText)
  )
}

function keyItemSize(key: string, { states, own }: Pick<KeyItem, 'states' | 'own'>): Sized {
  let bytes = keyBytes(keyItemKey(key)) + optionalSize(own)
  let state: string | undefined
  let mostBytes = -1
  for (const [name, value] of Object.entries(states)) {
    const stateBytes = 1 + Buffer.byteLength(name) + sizeOf(value)
    bytes += stateBytes
    if (stateBytes > mostBytes) [state, mostBytes] = [name, stateBytes]
  }
  const { redrives } = readKeyOwn(own)
  if (redrives === undefined) return { key, state, bytes }
  const redriven = { records: Object.keys(redrives).length, bytes: sizeOf(redrives) }
  return redriven.bytes > mostBytes ? { key, state, bytes, redriven } : { key, state, bytes }
}

function checkItemSize({ key, state, bytes, redriven }: Sized, limits: StateLimits): void {
  const { stage, mostItemBytes = defaultMostItemBytes, largeItemBytes = defaultLargeItemBytes, onLargeItem } = limits
  if (bytes >= largeItemBytes) onLargeItem?.({ stage, key, state, bytes })
  if (bytes <= mostItemBytes) return
  if (redriven !== undefined) {
    throw new TerminalError(
      `${keyPath(key, stage)}: the item would have ${bytes} bytes, where ${mostItemBytes} are allowed, and ${redriven.bytes} of them name the ${redriven.records} redriven records that the key remembers, each for as long as the stage's input is retained: redrive this one again when that has passed for some of them`,
      { code: 'state-too-large' },
    )
  }
  if (state === undefined) {
    throw new TerminalError(
      `stage "${stage}": the item of ${JSON.stringify(shown(key))} would have ${bytes} bytes, where ${mostItemBytes} are allowed`,
      { code: 'state-too-large' },
    )
  }
  throw new TerminalError(
    `${pathOf(stage, key, state)} is the largest in an item of ${bytes} bytes, where ${mostItemBytes} are allowed: keep less per key, or use a map state, whose entries are items of their own`,
    { code: 'state-too-large' },
  )
}

function checkTransaction(sizes: readonly Sized[], { stage }: StateLimits): void {
  const bytes = sizes.reduce((sum, size) => sum + size.bytes, 0)
  if (sizes.length <= mostTransactionItems && bytes <= mostTransactionBytes) return
  const { key, state } = sizes.at(-1) as Sized
  throw new TerminalError(
    `${pathOf(stage, key, String(state))} takes part in a commit of ${sizes.length} items and ${bytes} bytes, where a transaction holds ${mostTransactionItems} and ${mostTransactionBytes}: change fewer entries of one key per record, and per timer`,
    { code: 'commit-too-large' },
  )
}
