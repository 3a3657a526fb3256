/**
 * A table in memory that looks at every moment whether what waits has its due entry: "at every moment each timer in the table
 * has its entry" (lib/runtime/keyed/due-keys.ts).
 */
import type {
  CommitOutcome,
  DueEntry,
  EntryName,
  KeyCommit,
  StateStore,
  StateValue,
  TimerDomain,
} from '../../state/state-store.ts'

const domains: readonly TimerDomain[] = ['event-time', 'processing-time']

/** What a key's item waits for next, in each domain. */
export function waitsFor(
  own: StateValue | undefined,
): readonly { readonly domain: TimerDomain; readonly timeMs: number }[] {
  const timers = (own as { readonly timers?: { readonly [D in TimerDomain]?: { readonly [name: string]: number } } })
    ?.timers
  return domains.flatMap((domain) => {
    const times = Object.values(timers?.[domain] ?? {})
    return times.length === 0 ? [] : [{ domain, timeMs: Math.min(...times) }]
  })
}

const nameOf = (domain: TimerDomain, timeMs: number, key: string): string => `${domain} ${timeMs} of ${key}`

export class DueWatch implements StateStore {
  /** What was found wrong. */
  readonly findings: string[] = []
  readonly #inner: StateStore
  readonly #entries = new Set<string>()
  readonly #waiting = new Map<string, readonly string[]>()

  constructor(inner: StateStore) {
    this.#inner = inner
  }

  async commit(write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome> {
    const outcome = await this.#inner.commit(write, signal)
    if (outcome.status === 'conflict') return outcome
    const names = waitsFor(write.item.own).map(({ domain, timeMs }) => nameOf(domain, timeMs, write.key))
    this.#waiting.set(write.key, names)
    for (const name of names) if (!this.#entries.has(name)) this.findings.push(`no due entry was put for ${name}`)
    return outcome
  }

  async putDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    await this.#inner.putDue(entries, signal)
    for (const { domain, timeMs, key } of entries) this.#entries.add(nameOf(domain, timeMs, key))
  }

  async deleteDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    await this.#inner.deleteDue(entries, signal)
    for (const { domain, timeMs, key } of entries) {
      const name = nameOf(domain, timeMs, key)
      this.#entries.delete(name)
      if (this.#waiting.get(key)?.includes(name)) this.findings.push(`the due entry ${name} was deleted, and it waits`)
    }
  }

  readDue(...args: Parameters<StateStore['readDue']>) {
    return this.#inner.readDue(...args)
  }

  readProgress(partition: string, signal: AbortSignal) {
    return this.#inner.readProgress(partition, signal)
  }

  writeProgress(partition: string, readVersion: number, value: StateValue, signal: AbortSignal) {
    return this.#inner.writeProgress(partition, readVersion, value, signal)
  }

  readManifest(signal: AbortSignal) {
    return this.#inner.readManifest(signal)
  }

  writeManifest(value: StateValue, signal: AbortSignal) {
    return this.#inner.writeManifest(value, signal)
  }

  replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal) {
    return this.#inner.replaceManifest(read, value, signal)
  }

  readKeys(keys: readonly string[], signal: AbortSignal) {
    return this.#inner.readKeys(keys, signal)
  }

  readEntries(names: readonly EntryName[], signal: AbortSignal) {
    return this.#inner.readEntries(names, signal)
  }

  listEntries(key: string, state: string, signal: AbortSignal) {
    return this.#inner.listEntries(key, state, signal)
  }
}
