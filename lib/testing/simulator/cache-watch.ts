/** Counts in which state the cache of an environment is when it begins a shard: there is none, it is warm, or others wrote since. */
import type { StateStore } from '../../state/state-store.ts'
import { storeWith } from './canary.ts'
import type { Owner } from './scheduler.ts'

export class CacheWatch {
  readonly #count: (name: string) => void
  /** By shard, who wrote its progress last. */
  readonly #lastWriter = new Map<string, Owner>()
  /** The shards whose progress each environment wrote. */
  readonly #wrote = new Map<Owner, Set<string>>()

  constructor(count: (name: string) => void) {
    this.#count = count
  }

  begin(owner: Owner, shard: string): void {
    const wrote = this.#wrote.get(owner)
    if (!wrote?.has(shard)) this.#count('cold cache')
    else this.#count(this.#lastWriter.get(shard) === owner ? 'warm cache' : 'stale cache')
  }

  /** The store of one environment, with a note of the progress that it writes. */
  watch(store: StateStore, owner: Owner): StateStore {
    return storeWith(store, {
      writeProgress: async (partition, ...rest) => {
        const isWritten = await store.writeProgress(partition, ...rest)
        if (isWritten) this.#note(owner, partition)
        return isWritten
      },
    })
  }

  #note(owner: Owner, shard: string): void {
    const wrote = this.#wrote.get(owner) ?? new Set()
    this.#wrote.set(owner, wrote.add(shard))
    this.#lastWriter.set(shard, owner)
  }
}
