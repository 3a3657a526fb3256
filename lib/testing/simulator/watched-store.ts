/** Counts what invocations ask of the state tables and how large the items become: evidence for the referees. */
import type {
  EntryItem,
  EntryName,
  KeyCommit,
  KeyItem,
  StateStore,
  StateValue,
  StoredProgress,
} from '../../state/state-store.ts'
import { sizeOf } from '../../state/values.ts'

/** What one invocation asked for. */
export interface Usage {
  readonly stage: string
  /** The shard; of Kafka the topic. */
  readonly shardId: string
  /** How many partitions its records are of. */
  readonly partitions: number
  /** The keys and the entries that the batch touches, as its frames say. */
  readonly touched: ReadonlySet<string>
  readonly touchedEntries: ReadonlySet<string>
  /** Lines that read a whole map. */
  readonly audits: number
  keysRead: number
  readonly keysReadByName: Map<string, number>
  entriesRead: number
  listings: number
  progressReads: number
  progressWrites: number
  conflicts: number
  readonly foreignKeys: Set<string>
}

/** The largest things that were written. */
export interface Largest {
  progressBytes: number
  keyItemBytes: number
  entryBytes: number
  keyItem: string
}

export class WatchedStore implements StateStore {
  readonly #inner: StateStore
  readonly #usage: () => Usage | undefined
  readonly #largest: Largest

  constructor(inner: StateStore, usage: () => Usage | undefined, largest: Largest) {
    this.#inner = inner
    this.#usage = usage
    this.#largest = largest
  }

  readProgress(partition: string, signal: AbortSignal): Promise<StoredProgress | undefined> {
    const usage = this.#usage()
    if (usage) usage.progressReads += 1
    return this.#inner.readProgress(partition, signal)
  }

  writeProgress(partition: string, readVersion: number, value: StateValue, signal: AbortSignal): Promise<boolean> {
    const usage = this.#usage()
    if (usage) usage.progressWrites += 1
    this.#largest.progressBytes = Math.max(this.#largest.progressBytes, sizeOf(value))
    return this.#inner.writeProgress(partition, readVersion, value, signal)
  }

  readManifest(signal: AbortSignal): Promise<StateValue | undefined> {
    return this.#inner.readManifest(signal)
  }

  writeManifest(value: StateValue, signal: AbortSignal): Promise<boolean> {
    return this.#inner.writeManifest(value, signal)
  }

  replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal): Promise<boolean> {
    return this.#inner.replaceManifest(read, value, signal)
  }

  readKeys(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, KeyItem>> {
    const usage = this.#usage()
    if (usage) {
      usage.keysRead += keys.length
      for (const key of keys) {
        usage.keysReadByName.set(key, (usage.keysReadByName.get(key) ?? 0) + 1)
        if (!usage.touched.has(key)) usage.foreignKeys.add(key)
      }
    }
    return this.#inner.readKeys(keys, signal)
  }

  readEntries(names: readonly EntryName[], signal: AbortSignal): Promise<readonly (EntryItem | undefined)[]> {
    const usage = this.#usage()
    if (usage) {
      usage.entriesRead += names.length
      for (const { key } of names) if (!usage.touched.has(key)) usage.foreignKeys.add(key)
    }
    return this.#inner.readEntries(names, signal)
  }

  listEntries(key: string, state: string, signal: AbortSignal): Promise<ReadonlyMap<string, EntryItem>> {
    const usage = this.#usage()
    if (usage) {
      usage.listings += 1
      if (!usage.touched.has(key)) usage.foreignKeys.add(key)
    }
    return this.#inner.listEntries(key, state, signal)
  }

  putDue(...args: Parameters<StateStore['putDue']>) {
    return this.#inner.putDue(...args)
  }

  readDue(...args: Parameters<StateStore['readDue']>) {
    return this.#inner.readDue(...args)
  }

  deleteDue(...args: Parameters<StateStore['deleteDue']>) {
    return this.#inner.deleteDue(...args)
  }

  async commit(write: KeyCommit, signal: AbortSignal) {
    const { item, entries, key } = write
    const bytes = sizeOf({ ...item.states, ...(item.own === undefined ? {} : { own: item.own }) })
    if (bytes > this.#largest.keyItemBytes) {
      this.#largest.keyItemBytes = bytes
      this.#largest.keyItem = key
    }
    for (const { value } of entries) {
      this.#largest.entryBytes = Math.max(this.#largest.entryBytes, value === undefined ? 0 : sizeOf(value))
    }
    const usage = this.#usage()
    const outcome = await this.#inner.commit(write, signal)
    if (usage && outcome.status === 'conflict') usage.conflicts += 1
    return outcome
  }
}
