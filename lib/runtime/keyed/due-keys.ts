/**
 * Which keys fire at which number, and the due entries that find them when no record does.
 *
 * 1. A due entry is put before the commit that makes it necessary, and deleted when stored progress has passed its time and
 *    its key waits for it no more: so at every moment each timer in the table has its entry. An entry without a timer does no
 *    harm: it finds nothing to fire.
 * 2. The entries of a slot are queried only where its earliest due time is reached by the end of the batch.
 * 3. A slot's earliest due time is a bound from below: the least of what the query saw beyond (not queried: the stored value),
 *    of what any key waits for that was loaded, stepped here or not, and of the entries that are not to be deleted yet: a key
 *    may have gone past its own before the entry of the log that makes it due is done.
 */
import type { SlotMemo } from '../../core/slot.ts'
import type { KeyDraft, TimerDomain } from '../../state/key-draft.ts'
import type { DueEntry, StateStore } from '../../state/state-store.ts'
import { positionHashOf } from '../frames/position.ts'
import type { EarliestDue, KeyedProgress } from '../progress/progress.ts'
import { inParallel } from './in-parallel.ts'
import { TimeHeap } from './time-heap.ts'

export const domains: readonly TimerDomain[] = ['event-time', 'processing-time']

/** How far both kinds of time have come, in ms since 1970 UTC. */
export interface TimesReached {
  readonly watermarkMs: number
  readonly processingMs: number
}

export const reached = (domain: TimerDomain, times: TimesReached): number =>
  domain === 'event-time' ? times.watermarkMs : times.processingMs

/**
 * How far all that is due has fired. A partition begins with the largest times of its parents, and what the others left fires
 * at its first number: before that is done, nothing has passed.
 */
export function passedBy(progress: KeyedProgress): TimesReached {
  return progress.completed === undefined ? nothingPassed : progress
}

const nothingPassed: TimesReached = {
  watermarkMs: Number.NEGATIVE_INFINITY,
  processingMs: Number.NEGATIVE_INFINITY,
}

/** Whether any timer of the key is due. */
export function isDue(draft: KeyDraft, times: TimesReached): boolean {
  const event = draft.nextTimer('event-time')
  if (event !== undefined && event.timeMs <= times.watermarkMs) return true
  const processing = draft.nextTimer('processing-time')
  return processing !== undefined && processing.timeMs <= times.processingMs
}

/** A key that may fire, with the hash that orders it among those that fire at the same number. */
export interface FiringKey {
  readonly key: string
  readonly keyHash: string
}

const nobody: readonly FiringKey[] = []

/** Slots that are queried at a time. */
const mostQueries = 16
/** Due entries per page of a query. */
const pageSize = 1_000

const earliestOf = (earliest: EarliestDue, domain: TimerDomain): ReadonlyMap<number, number> =>
  domain === 'event-time' ? earliest.event : earliest.processing

interface Domain {
  /** What is due, found or loaded, by time. */
  readonly heap: TimeHeap
  /** By key, the time for which it was put into the heap last: most steps leave a key's next timer as it is. */
  readonly noted: Map<string, number>
  /** By slot, what the query saw beyond the end of the batch; undefined inside where it saw nothing. */
  readonly beyond: Map<number, number | undefined>
  /** By slot, the least time that any loaded key waits for. */
  readonly waiting: Map<number, number>
  /** By key, what it waits for: already reached where its last record was given up at the number that reached it. */
  readonly left: Map<string, number>
}

export class DueKeys {
  readonly #store: StateStore
  readonly #slots: SlotMemo
  readonly #progress: KeyedProgress
  readonly #signal: AbortSignal
  readonly #domains: Readonly<Record<TimerDomain, Domain>> = {
    'event-time': newDomain(),
    'processing-time': newDomain(),
  }
  /** Entries that were found or put. */
  readonly #entries: DueEntry[] = []

  constructor(
    { store, slots }: { readonly store: StateStore; readonly slots: SlotMemo },
    progress: KeyedProgress,
    signal: AbortSignal,
  ) {
    this.#store = store
    this.#slots = slots
    this.#progress = progress
    this.#signal = signal
  }

  /** Finds what becomes due up to the end of the batch. */
  async find(end: TimesReached): Promise<void> {
    for (const domain of domains) {
      const untilMs = reached(domain, end)
      const due = [...earliestOf(this.#progress.earliest, domain)].filter(([, earliestMs]) => earliestMs <= untilMs)
      await inParallel(due, mostQueries, ([slot]) => this.#query(slot, domain, untilMs))
    }
  }

  async #query(slot: number, domain: TimerDomain, untilMs: number): Promise<void> {
    const { heap, beyond } = this.#domains[domain]
    let after: DueEntry | undefined
    for (;;) {
      const options = { limit: pageSize, ...(after === undefined ? {} : { after }) }
      const { entries, nextMs, isComplete } = await this.#store.readDue(slot, domain, untilMs, options, this.#signal)
      for (const entry of entries) {
        heap.push(entry.timeMs, entry.key)
        this.#entries.push(entry)
      }
      after = entries.at(-1)
      if (!isComplete && after !== undefined) continue
      beyond.set(slot, nextMs)
      return
    }
  }

  /** A key was loaded or stepped: what it waits for now. */
  note(draft: KeyDraft): void {
    for (const domain of domains) {
      const next = draft.nextTimer(domain)
      if (next === undefined) continue
      const { heap, noted } = this.#domains[domain]
      if (noted.get(draft.key) === next.timeMs) continue
      noted.set(draft.key, next.timeMs)
      heap.push(next.timeMs, draft.key)
    }
  }

  /**
   * Notes what keys of the warm cache wait for. Their due entries may be gone: another attempt that has fired them deletes the
   * entries once its progress is stored, which can be between our reading progress and our query. They fire here at the same
   * number, and lose their commit.
   */
  noteWarm(drafts: Iterable<KeyDraft>): void {
    const { event, processing } = this.#progress.earliest
    if (event.size + processing.size === 0) return
    for (const draft of drafts) this.note(draft)
  }

  /** The keys that something may be due for at these times, in the order in which they fire. Each is told once. */
  take(times: TimesReached): readonly FiringKey[] {
    const { 'event-time': event, 'processing-time': processing } = this.#domains
    if (event.heap.firstMs > times.watermarkMs && processing.heap.firstMs > times.processingMs) return nobody
    const keys = new Set<string>()
    for (const domain of domains) {
      const { heap, noted } = this.#domains[domain]
      heap.takeUntil(reached(domain, times), keys)
      for (const key of keys) noted.delete(key)
    }
    const firing = Array.from(keys, (key) => ({ key, keyHash: positionHashOf(key) }))
    return firing.sort((a, b) => (a.keyHash < b.keyHash ? -1 : 1))
  }

  /** Puts the entries that commits of these drafts make necessary. */
  async put(drafts: readonly KeyDraft[]): Promise<void> {
    const entries: DueEntry[] = []
    for (const draft of drafts) {
      for (const domain of domains) {
        const timeMs = draft.nextTimer(domain)?.timeMs
        if (timeMs === undefined || timeMs === draft.storedNextMs(domain)) continue
        entries.push({ slot: this.#slots.of(draft.key), domain, timeMs, key: draft.key })
      }
    }
    if (entries.length === 0) return
    this.#entries.push(...entries)
    await this.#store.putDue(entries, this.#signal)
  }

  /** What a draft waits for counts for its slot from here on. */
  keepEarliest(drafts: Iterable<KeyDraft>): void {
    for (const draft of drafts) {
      for (const domain of domains) {
        const { waiting, left } = this.#domains[domain]
        const timeMs = leastOf(draft, domain)
        if (timeMs === undefined) {
          left.delete(draft.key)
          continue
        }
        left.set(draft.key, timeMs)
        const slot = this.#slots.of(draft.key)
        const known = waiting.get(slot)
        if (known === undefined || timeMs < known) waiting.set(slot, timeMs)
      }
    }
  }

  /** The earliest due times where `passed` has fired; of a batch that was cut, what was due before still counts. */
  earliest(isCut: boolean, passed: TimesReached): EarliestDue {
    const of = (domain: TimerDomain): Map<number, number> => {
      const { beyond, waiting } = this.#domains[domain]
      const stored = earliestOf(this.#progress.earliest, domain)
      const kept = this.#earliestEntries(domain, passed)
      const least = new Map<number, number>()
      for (const slot of this.#progress.held) {
        const before = isCut || !beyond.has(slot) ? stored.get(slot) : undefined
        const known = [before, beyond.get(slot), waiting.get(slot), kept.get(slot)]
        const leastMs = Math.min(...known.filter((timeMs) => timeMs !== undefined))
        if (leastMs < Number.POSITIVE_INFINITY) least.set(slot, leastMs)
      }
      return least
    }
    return { event: of('event-time'), processing: of('processing-time') }
  }

  /** By slot, the least time of the entries that stay in the table. */
  #earliestEntries(domain: TimerDomain, passed: TimesReached): ReadonlyMap<number, number> {
    const reachedMs = reached(domain, passed)
    const least = new Map<number, number>()
    for (const { slot, domain: own, timeMs } of this.#entries) {
      if (own === domain && timeMs > reachedMs) least.set(slot, Math.min(timeMs, least.get(slot) ?? timeMs))
    }
    return least
  }

  /** Deletes the entries that stored progress has passed. */
  async deletePassed(stored: KeyedProgress, signal: AbortSignal): Promise<void> {
    const times = passedBy(stored)
    const passed = this.#entries.filter(
      ({ domain, timeMs, key }) => timeMs <= reached(domain, times) && this.#domains[domain].left.get(key) !== timeMs,
    )
    if (passed.length > 0) await this.#store.deleteDue(passed, signal)
  }
}

const newDomain = (): Domain => ({
  heap: new TimeHeap(),
  noted: new Map(),
  beyond: new Map(),
  waiting: new Map(),
  left: new Map(),
})

/** What a key waits for, as the draft or as the table has it: a draft that was stepped and not committed is ahead of the table. */
function leastOf(draft: KeyDraft, domain: TimerDomain): number | undefined {
  const [next, stored] = [draft.nextTimer(domain)?.timeMs, draft.storedNextMs(domain)]
  return next === undefined || (stored !== undefined && stored < next) ? stored : next
}
