/**
 * The state tables of a run: a store behind a port at which everything waits for its turn, with the faults of a table.
 *
 * 1. A conditional write may take place and its answer be lost: the caller sees a conflict with what it wrote itself, or
 *    an error.
 * 2. Reads of several items are several reads: others may write in between.
 * 3. The table refuses everything for a while; callers wait with a backoff until their deadline, as the real store does.
 */
import { RetryableError } from '../../core/errors.ts'
import type { RunnerClock } from '../../runtime/ports.ts'
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
} from '../../state/state-store.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import { outOfTime } from './streams.ts'

export interface StatePortOptions {
  readonly owner: Owner
  readonly scheduler: Scheduler
  readonly clock: RunnerClock
  readonly random: Random
  readonly faults: () => Faults
  /** Until then the table refuses everything. */
  readonly refusesUntilMs: () => number
  /** How many commits the tables have seen: what was read before and after one is of two moments. */
  readonly writes: () => number
  readonly count: (name: string) => void
}

const unanswered = () =>
  new RetryableError('the answer of a write was lost; it may have taken effect', { code: 'state-unanswered' })

/** A {@link StateStore} whose calls the scheduler orders. */
export class ScheduledStore implements StateStore {
  readonly #inner: StateStore
  readonly #options: StatePortOptions

  constructor(inner: StateStore, options: StatePortOptions) {
    this.#inner = inner
    this.#options = options
  }

  readProgress(partition: string, signal: AbortSignal): Promise<StoredProgress | undefined> {
    return this.#call(
      'read progress',
      signal,
      () => partition,
      () => this.#inner.readProgress(partition, signal),
    )
  }

  async writeProgress(
    partition: string,
    readVersion: number,
    value: StateValue,
    signal: AbortSignal,
  ): Promise<boolean> {
    const detail = () => `${partition} version ${readVersion + 1}`
    const done = await this.#call('write progress', signal, detail, () =>
      this.#inner.writeProgress(partition, readVersion, value, signal),
    )
    return done && this.#isAnswered('progress')
  }

  readManifest(signal: AbortSignal): Promise<StateValue | undefined> {
    return this.#call('read manifest', signal, noDetail, () => this.#inner.readManifest(signal))
  }

  async writeManifest(value: StateValue, signal: AbortSignal): Promise<boolean> {
    const done = await this.#call('write manifest', signal, noDetail, () => this.#inner.writeManifest(value, signal))
    return done && this.#isAnswered('the manifest')
  }

  async replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal): Promise<boolean> {
    const done = await this.#call('replace manifest', signal, noDetail, () =>
      this.#inner.replaceManifest(read, value, signal),
    )
    return done && this.#isAnswered('the manifest')
  }

  async readKeys(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, KeyItem>> {
    const parts = await this.#torn(keys, (part, note) =>
      this.#call(
        'read keys',
        signal,
        () => part.join(' '),
        () => {
          note()
          return this.#inner.readKeys(part, signal)
        },
      ),
    )
    return new Map(parts.flatMap((part) => [...part]))
  }

  async readEntries(names: readonly EntryName[], signal: AbortSignal): Promise<readonly (EntryItem | undefined)[]> {
    const parts = await this.#torn(names, (part, note) =>
      this.#call(
        'read entries',
        signal,
        () => entriesText(part),
        () => {
          note()
          return this.#inner.readEntries(part, signal)
        },
      ),
    )
    return parts.flat()
  }

  async listEntries(key: string, state: string, signal: AbortSignal): Promise<ReadonlyMap<string, EntryItem>> {
    const { random, faults, writes, count } = this.#options
    const moments = new Set<number>()
    const list = () =>
      this.#call(
        'list entries',
        signal,
        () => `${key} ${state}`,
        () => {
          moments.add(writes())
          return this.#inner.listEntries(key, state, signal)
        },
      )
    const first = await list()
    if (!random.chance(faults().tornRead)) return first
    // Two pages: what stands before the border is of the first moment, what stands behind it of the second.
    const border = [...first.keys()][Math.floor(first.size / 2)]
    if (border === undefined) return first
    const second = await list()
    if (moments.size > 1) count('torn read')
    const before = [...first].filter(([entry]) => entry < border)
    return new Map([...before, ...[...second].filter(([entry]) => entry >= border)])
  }

  async commit(write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome> {
    const detail = () => `${write.key} ${write.readPosition ?? '-'} to ${write.item.position}`
    const outcome = await this.#call('commit', signal, detail, () => this.#inner.commit(write, signal))
    if (outcome.status === 'conflict' || this.#isAnswered('a commit')) return outcome
    const found = await this.#call(
      'commit again',
      signal,
      () => write.key,
      () => this.#inner.commit(write, signal),
    )
    // The client's own second try: its condition meets what the first one wrote, or what came after that.
    return found
  }

  async putDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    await this.#call(
      'put due entries',
      signal,
      () => dueText(entries),
      () => this.#inner.putDue(entries, signal),
    )
    this.#mayLoseDueAnswer()
  }

  readDue(...args: Parameters<StateStore['readDue']>): Promise<DuePage> {
    const [slot, domain, untilMs, , signal] = args
    const detail = () => `slot ${slot} ${domain} ${untilMs}`
    return this.#call('read due entries', signal, detail, () => this.#inner.readDue(...args))
  }

  async deleteDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    await this.#call(
      'delete due entries',
      signal,
      () => dueText(entries),
      () => this.#inner.deleteDue(entries, signal),
    )
    this.#mayLoseDueAnswer()
  }

  #mayLoseDueAnswer(): void {
    const { random, faults, count } = this.#options
    if (!random.chance(faults().lostDueAnswer)) return
    count('lost answer of due entries')
    throw unanswered()
  }

  /** False where the answer is lost and looks like a conflict; throws where it does not come at all. */
  #isAnswered(what: string): boolean {
    const { random, faults, count } = this.#options
    if (!random.chance(faults().lostAnswer)) return true
    count(`lost answer of ${what}`)
    if (random.chance(0.5)) throw unanswered()
    return false
  }

  async #torn<Item, Result>(
    items: readonly Item[],
    read: (part: readonly Item[], note: () => void) => Promise<Result>,
  ): Promise<Result[]> {
    const { random, faults, writes, count } = this.#options
    if (items.length < 2 || !random.chance(faults().tornRead)) return [await read(items, () => undefined)]
    const border = random.integer(1, items.length - 1)
    const parts = [items.slice(0, border), items.slice(border)]
    const moments = new Set<number>()
    const results = await Promise.all(parts.map((part) => read(part, () => moments.add(writes()))))
    if (moments.size > 1) count('torn read')
    return results
  }

  async #call<T>(label: string, signal: AbortSignal, detail: () => string, effect: () => Promise<T>): Promise<T> {
    const { scheduler, owner, clock, random, count } = this.#options
    for (let attempt = 1; this.#options.refusesUntilMs() > scheduler.nowMs(); attempt++) {
      count('throttled call')
      await clock.sleep(random.next() * Math.min(3_200, 50 * 2 ** attempt), signal)
      if (signal.aborted) throw outOfTime(label)
    }
    return scheduler.call(owner, label, effect, detail)
  }
}

const noDetail = () => ''

const entriesText = (names: readonly EntryName[]): string =>
  names.map(({ key, state, entry }) => `${key}/${state}/${entry}`).join(' ')

const dueText = (entries: readonly DueEntry[]): string => entries.map(({ key, timeMs }) => `${key}@${timeMs}`).join(' ')
