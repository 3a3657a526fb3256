/**
 * The warm cache of an execution environment: drafts of keys that its last batches left behind.
 *
 * 1. Drafts of a partition are good only while its progress still carries the version that this environment wrote last:
 *    then nobody else has written since.
 * 2. They are taken out for a batch and put back when it has ended well, so that no two batches ever share one.
 * 3. The least recently used keys go first.
 */
import type { KeyDraft } from '../../state/key-draft.ts'

interface WarmPartition {
  readonly version: number
  readonly drafts: Map<string, KeyDraft>
}

export class WarmKeys {
  readonly #most: number
  readonly #partitions = new Map<string, WarmPartition>()
  #size = 0

  /** Keeps at most this number of keys over all partitions; 0 keeps none. */
  constructor(most: number) {
    this.#most = most
  }

  /** The drafts of a partition at that version of its progress; none where another version was written since. */
  take(partition: string, version: number): Map<string, KeyDraft> {
    const found = this.#partitions.get(partition)
    if (found === undefined) return new Map()
    this.#partitions.delete(partition)
    this.#size -= found.drafts.size
    return found.version === version ? found.drafts : new Map()
  }

  /** Keeps the drafts of a partition, which this environment has just brought to that version. */
  put(partition: string, version: number, drafts: Map<string, KeyDraft>): void {
    if (this.#most === 0) return
    for (const key of drafts.keys()) {
      if (drafts.size <= this.#most) break
      drafts.delete(key)
    }
    this.take(partition, version)
    this.#partitions.set(partition, { version, drafts })
    this.#size += drafts.size
    for (const oldest of this.#partitions.keys()) {
      if (this.#size <= this.#most) break
      this.take(oldest, -1)
    }
  }
}
