/**
 * The state port of a keyed stage: all that the batch protocol asks of a table. The memory store and the DynamoDB store
 * implement it, and `stateStoreConformance` holds both to the rules below.
 *
 * 1. Every read is strongly consistent on its own. Two reads are two moments: a commit may fall between them.
 * 2. `commit` is atomic over the key item and all entries that it names, and takes place only where the key's position is
 *    still the one that was read. Whoever loses is given the key item that won.
 * 3. `writeProgress` takes place only where the version is still the one that was read.
 * 4. A call that rejects may have taken effect: its answer was lost, and the caller reads again.
 * 5. What is read equals what was written: numbers, BigInt, binary, nested data. What a store could not return unchanged
 *    is refused by `checkValue` before it is written, and the reader owns its copy. Properties come in the order of their
 *    names, whatever order they were written in.
 * 6. TTL removes items one by one, at any time after their expiry. Until then an expired item is read and conditions see
 *    it, like any other.
 * 7. After an abort nothing new is sent to the table. What was sent is awaited; the call rejects unless it was complete.
 * 8. `writeManifest` takes place only where there is no manifest, `replaceManifest` only where it still equals the one that was
 *    read.
 * 9. Due entries are hints that point at keys with timers: to put or delete one a second time changes nothing, and nothing
 *    conditions them. They are read by slot and domain in the order of their times, those of one time in the order of the
 *    UTF-8 bytes of their keys (keys that are too long for a sort key by their beginning). A call of many entries is not atomic.
 *
 * Keys and names of entries are texts, of any length; `keyText` makes them of bytes and of several texts.
 */

/** A value as states hold it: what the table returns unchanged. */
export type StateValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly StateValue[]
  | { readonly [name: string]: StateValue }

/** What a stage keeps of one key, in one item. */
export interface KeyItem {
  /** The number of the log that the state includes; it only grows. */
  readonly position: number
  /** Value, list, reducing and aggregating states by name. */
  readonly states: { readonly [name: string]: StateValue }
  /** When TTL may take the item, in seconds since 1970 UTC; undefined where it stays. */
  readonly expiresAtSeconds: number | undefined
  /** The runner's own attributes beside the user's values. */
  readonly own?: StateValue | undefined
}

/** One entry of a map state, in an item of its own. */
export interface EntryItem {
  /** The position of the commit that wrote it. */
  readonly position: number
  /** Undefined says removed: the tombstone keeps its position until TTL. */
  readonly value: StateValue | undefined
  /** When TTL may take the entry, in seconds since 1970 UTC; undefined where it stays. */
  readonly expiresAtSeconds?: number | undefined
  /** The runner's own attributes beside the user's value. */
  readonly own?: StateValue | undefined
}

/** Names one entry of a key's map state. */
export interface EntryName {
  readonly key: string
  readonly state: string
  readonly entry: string
}

/** What one commit writes. */
export interface KeyCommit {
  readonly key: string
  /** The position that was read; undefined where the key had no item. */
  readonly readPosition: number | undefined
  readonly item: KeyItem
  /** The entries that changed; undefined as value removes one. */
  readonly entries: readonly {
    readonly state: string
    readonly entry: string
    readonly value: StateValue | undefined
    readonly expiresAtSeconds?: number | undefined
    readonly own?: StateValue | undefined
  }[]
}

export type CommitOutcome =
  | { readonly status: 'committed' }
  /** The position was another; `found` is the item that is there, undefined where there is none. */
  | { readonly status: 'conflict'; readonly found: KeyItem | undefined }

/** What progress is made of is the runtime's own; a store keeps it as it is. */
export interface StoredProgress {
  /** Grows by one with each write, from 1. */
  readonly version: number
  readonly value: StateValue
}

/** What a timer goes by: the watermark, or the clock on the wall. */
export type TimerDomain = 'event-time' | 'processing-time'

/** Says that a key has a timer that is due then. */
export interface DueEntry {
  /** The slot of the key: an integer from 0. */
  readonly slot: number
  readonly domain: TimerDomain
  /** In whole ms since 1970 UTC. */
  readonly timeMs: number
  readonly key: string
}

/** What one read of due entries found. */
export interface DuePage {
  /** Ascending by time, then by key. */
  readonly entries: readonly DueEntry[]
  /** The time of the first entry beyond; undefined where there is none, or not all up to there were read. */
  readonly nextMs: number | undefined
  /** Whether these are all up to the time that was asked for. */
  readonly isComplete: boolean
}

export interface StateStore {
  /** The progress of a partition of the stage's stream; undefined where there is none. */
  readProgress(partition: string, signal: AbortSignal): Promise<StoredProgress | undefined>
  /** Writes version `readVersion + 1` (0 where none was read); false where another version is there. */
  writeProgress(partition: string, readVersion: number, value: StateValue, signal: AbortSignal): Promise<boolean>
  /** The items of distinct keys, in any number; keys without an item are left out. */
  readKeys(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, KeyItem>>
  /** Distinct entries, in the order asked for; undefined where there is no item. */
  readEntries(names: readonly EntryName[], signal: AbortSignal): Promise<readonly (EntryItem | undefined)[]>
  /** All entries of a key's map state, tombstones left out, in the order of their names' UTF-8 bytes. */
  listEntries(key: string, state: string, signal: AbortSignal): Promise<ReadonlyMap<string, EntryItem>>
  commit(write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome>
  /** What the table says of itself: whose state it holds, and how that is laid out. Undefined where it was never written. */
  readManifest(signal: AbortSignal): Promise<StateValue | undefined>
  /** Writes the manifest; false where there is one. */
  writeManifest(value: StateValue, signal: AbortSignal): Promise<boolean>
  /** Writes a manifest over the one that was read; false where another is there, or none. */
  replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal): Promise<boolean>
  /** Puts due entries, in any number. */
  putDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void>
  /**
   * The first `limit` entries of a slot whose time is `untilMs` or earlier, behind `after` where that is given (whether it
   * is there still or not). `untilMs` may be infinite: with minus infinity only `nextMs` is told.
   */
  readDue(
    slot: number,
    domain: TimerDomain,
    untilMs: number,
    options: { readonly limit: number; readonly after?: DueEntry | undefined },
    signal: AbortSignal,
  ): Promise<DuePage>
  /** Deletes due entries, in any number, whether they are there or not. */
  deleteDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void>
}
