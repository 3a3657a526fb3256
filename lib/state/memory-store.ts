/**
 * The state store in memory: for tests, the test driver and the simulator. It owns its items and nothing else; whoever
 * wants faults or delays wraps the port.
 *
 * 1. It keeps every rule of the port, and refuses whatever the table would refuse, with the same errors.
 * 2. It is deterministic: a call takes effect at once, in the order of the calls; time is that of the clock it is given.
 * 3. Nothing that may change is shared with the caller: values are copied on their way out, and on their way in but for
 *    those of a {@link CheckedCommit}.
 */
import type { Clock } from '../core/clock.ts'
import { RetryableError } from '../core/errors.ts'
import { checkedCommit, checkedDueQuery, checkedManifest, checkedProgress, type StateLimits } from './commit-rules.ts'
import { compareUtf8, entryKey, entryPrefix, keyItemKey, progressKey } from './key-encoding.ts'
import { MemoryDue } from './memory-due.ts'
import type {
  CommitOutcome,
  DueEntry,
  DuePage,
  EntryItem,
  EntryName,
  KeyCommit,
  KeyItem,
  StateStore,
  StateValue,
  StoredProgress,
  TimerDomain,
} from './state-store.ts'
import { canonicalText, checkValue } from './values.ts'

/** An item that has expired: of a key, or of one entry of its map state. */
export type ExpiredItem = { readonly key: string } | EntryName

export interface MemoryStateStoreOptions extends StateLimits {
  /** What TTL goes by. */
  readonly clock: Pick<Clock, 'nowMs'>
  /** Whether TTL takes an item that has expired. DynamoDB takes days, and item by item. @default always */
  readonly ttlTakes?: (item: ExpiredItem) => boolean
}

/** The entries of a key's map states, by their sort keys. */
type Entries = Map<string, { readonly name: EntryName; readonly item: EntryItem }>

const copyOf = (value: StateValue): StateValue => checkValue(value, 'a stored value')

const copyOfOwn = ({ own }: { readonly own?: StateValue | undefined }) =>
  own === undefined ? undefined : { own: copyOf(own) }

const copyOfItem = (item: KeyItem): KeyItem => ({
  ...item,
  ...copyOfOwn(item),
  states: Object.fromEntries(Object.entries(item.states).map(([name, value]) => [name, copyOf(value)])),
})

const copyOfEntry = (item: EntryItem): EntryItem => ({
  ...item,
  ...copyOfOwn(item),
  value: item.value === undefined ? undefined : copyOf(item.value),
})

/** Throws what the table's own key of that key would throw. */
const refuseUnsupported = (key: string): void => void keyItemKey(key)

function demandTime(signal: AbortSignal): void {
  if (signal.aborted) throw new RetryableError('the deadline has come: nothing was sent', { code: 'state-deadline' })
}

/**
 * A {@link StateStore} in memory.
 *
 * @example
 * const store = new MemoryStateStore({ stage: 'by-hotel', clock: new VirtualClock() })
 */
export class MemoryStateStore implements StateStore {
  readonly #options: MemoryStateStoreOptions
  /** By the texts of the keys, which tell them apart as the table's own keys do, and take no memory of their own. */
  readonly #items = new Map<string, KeyItem>()
  /** Of the keys that have any: most stages keep none, and a million maps without entries take longer to walk than to fill. */
  readonly #entries = new Map<string, Entries>()
  readonly #progress = new Map<string, StoredProgress>()
  readonly #due = new MemoryDue()
  #manifest: StateValue | undefined

  constructor(options: MemoryStateStoreOptions) {
    this.#options = options
  }

  async readProgress(partition: string, signal: AbortSignal): Promise<StoredProgress | undefined> {
    demandTime(signal)
    const progress = this.#progress.get(progressKey(partition).pk)
    return progress && { version: progress.version, value: copyOf(progress.value) }
  }

  async writeProgress(
    partition: string,
    readVersion: number,
    value: StateValue,
    signal: AbortSignal,
  ): Promise<boolean> {
    demandTime(signal)
    const checked = checkedProgress(partition, value, this.#options)
    const { pk } = progressKey(partition)
    if ((this.#progress.get(pk)?.version ?? 0) !== readVersion) return false
    this.#progress.set(pk, { version: readVersion + 1, value: checked })
    return true
  }

  async readKeys(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, KeyItem>> {
    demandTime(signal)
    const items = new Map<string, KeyItem>()
    for (const key of keys) {
      const item = this.#keyItem(key)
      if (item !== undefined) items.set(key, copyOfItem(item))
    }
    return items
  }

  async readEntries(names: readonly EntryName[], signal: AbortSignal): Promise<readonly (EntryItem | undefined)[]> {
    demandTime(signal)
    return names.map((name) => {
      const item = this.#entryItem(name)
      return item && copyOfEntry(item)
    })
  }

  async listEntries(key: string, state: string, signal: AbortSignal): Promise<ReadonlyMap<string, EntryItem>> {
    demandTime(signal)
    const prefix = entryPrefix(state)
    refuseUnsupported(key)
    const entries: Entries = this.#entries.get(key) ?? new Map()
    const names = [...entries].filter(([sk]) => sk.startsWith(prefix)).map(([, { name }]) => name)
    const list = new Map<string, EntryItem>()
    for (const name of names.sort((a, b) => compareUtf8(a.entry, b.entry))) {
      const item = this.#entryItem(name)
      if (item?.value !== undefined) list.set(name.entry, copyOfEntry(item))
    }
    return list
  }

  async commit(write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome> {
    demandTime(signal)
    const { key, readPosition, item, entries } = checkedCommit(write, this.#options)
    const found = this.#keyItem(key)
    if (found?.position !== readPosition) return { status: 'conflict', found: found && copyOfItem(found) }

    this.#items.set(key, item)
    for (const { state, entry, ...written } of entries) {
      const name = { key, state, entry }
      this.#entriesOf(key).set(entryKey(name).sk, { name, item: { position: item.position, ...written } })
    }
    return { status: 'committed' }
  }

  #entriesOf(key: string): Entries {
    const found = this.#entries.get(key)
    if (found !== undefined) return found
    const entries: Entries = new Map()
    this.#entries.set(key, entries)
    return entries
  }

  async readManifest(signal: AbortSignal): Promise<StateValue | undefined> {
    demandTime(signal)
    return this.#manifest === undefined ? undefined : copyOf(this.#manifest)
  }

  async writeManifest(value: StateValue, signal: AbortSignal): Promise<boolean> {
    demandTime(signal)
    const checked = checkedManifest(value, this.#options)
    if (this.#manifest !== undefined) return false
    this.#manifest = checked
    return true
  }

  async replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal): Promise<boolean> {
    demandTime(signal)
    const checked = checkedManifest(value, this.#options)
    if (this.#manifest === undefined || canonicalText(this.#manifest) !== canonicalText(checkValue(read, 'manifest'))) {
      return false
    }
    this.#manifest = checked
    return true
  }

  async putDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    demandTime(signal)
    this.#due.put(entries)
  }

  async readDue(
    slot: number,
    domain: TimerDomain,
    untilMs: number,
    options: { readonly limit: number; readonly after?: DueEntry | undefined },
    signal: AbortSignal,
  ): Promise<DuePage> {
    demandTime(signal)
    return this.#due.read(checkedDueQuery({ slot, domain, untilMs, ...options }))
  }

  async deleteDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    demandTime(signal)
    this.#due.delete(entries)
  }

  #keyItem(key: string): KeyItem | undefined {
    refuseUnsupported(key)
    const item = this.#items.get(key)
    if (item === undefined || !this.#taken(item, { key })) return item
    this.#items.delete(key)
    return undefined
  }

  #entryItem(name: EntryName): EntryItem | undefined {
    const { sk } = entryKey(name)
    const entries = this.#entries.get(name.key)
    const item = entries?.get(sk)?.item
    if (item === undefined || !this.#taken(item, name)) return item
    entries?.delete(sk)
    return undefined
  }

  #taken({ expiresAtSeconds }: { readonly expiresAtSeconds?: number | undefined }, item: ExpiredItem): boolean {
    const { clock, ttlTakes = () => true } = this.#options
    return expiresAtSeconds !== undefined && expiresAtSeconds * 1_000 <= clock.nowMs() && ttlTakes(item)
  }
}
