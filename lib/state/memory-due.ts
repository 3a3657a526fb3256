/** The due entries of the memory store: per slot and domain a list in the order in which the table has them. */
import type { DueQuery } from './commit-rules.ts'
import { compareUtf8, dueKey, duePartition, duePrefix } from './key-encoding.ts'
import type { DueEntry, DuePage } from './state-store.ts'

interface Due {
  /** The sort key in the table, which is what entries are ordered and told apart by. */
  readonly sk: string
  readonly entry: DueEntry
  isDeleted: boolean
}

export class MemoryDue {
  readonly #lists = new Map<string, DueList>()

  put(entries: readonly DueEntry[]): void {
    // All are looked at first: a key that the table refuses leaves nothing behind.
    for (const due of entries.map(dueOf)) this.#listOf(due.entry).put(due)
  }

  delete(entries: readonly DueEntry[]): void {
    for (const { sk, entry } of entries.map(dueOf)) this.#listOf(entry).delete(sk)
  }

  read(query: DueQuery): DuePage {
    return this.#listOf(query).read(query)
  }

  #listOf({ slot, domain }: Pick<DueEntry, 'slot' | 'domain'>): DueList {
    const place = duePartition(slot) + duePrefix(domain)
    const list = this.#lists.get(place) ?? new DueList()
    this.#lists.set(place, list)
    return list
  }
}

/** Puts and deletions are cheap, as there are many of them: what they leave to do is done by the next read. */
class DueList {
  readonly #bySortKey = new Map<string, Due>()
  /** In order, with some that are deleted. */
  #sorted: Due[] = []
  #added: Due[] = []

  put(due: Due): void {
    if (this.#bySortKey.has(due.sk)) return
    this.#bySortKey.set(due.sk, due)
    this.#added.push(due)
  }

  delete(sk: string): void {
    const due = this.#bySortKey.get(sk)
    if (due !== undefined) due.isDeleted = true
    this.#bySortKey.delete(sk)
  }

  read({ untilMs, limit, after }: DueQuery): DuePage {
    this.#tidy()
    const entries: DueEntry[] = []
    for (let i = after === undefined ? 0 : this.#firstBehind(dueOf(after)); i < this.#sorted.length; i += 1) {
      const { entry, isDeleted } = this.#sorted[i] as Due
      if (isDeleted) continue
      if (entry.timeMs > untilMs) return { entries, nextMs: entry.timeMs, isComplete: true }
      if (entries.length === limit) return { entries, nextMs: undefined, isComplete: false }
      entries.push({ ...entry })
    }
    return { entries, nextMs: undefined, isComplete: true }
  }

  #tidy(): void {
    if (this.#added.length === 0 && this.#sorted.length <= 2 * this.#bySortKey.size) return
    this.#sorted = [...this.#sorted, ...this.#added].filter(({ isDeleted }) => !isDeleted).sort(compareDue)
    this.#added = []
  }

  #firstBehind(due: Due): number {
    let from = 0
    let to = this.#sorted.length
    while (from < to) {
      const middle = (from + to) >> 1
      if (compareDue(this.#sorted[middle] as Due, due) <= 0) from = middle + 1
      else to = middle
    }
    return from
  }
}

function dueOf({ slot, domain, timeMs, key }: DueEntry): Due {
  const entry = { slot, domain, timeMs: timeMs + 0, key }
  return { sk: dueKey(entry).sk, entry, isDeleted: false }
}

const compareDue = (a: Due, b: Due): number => a.entry.timeMs - b.entry.timeMs || compareUtf8(a.sk, b.sk)
