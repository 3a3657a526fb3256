/**
 * The tables that steps are enriched from: the only state that outlives an invocation in a stateless stage, owned by one
 * object that the handler makes at start.
 *
 * Invariants
 * 1. A lookup table is called at most once per batch for each `enrich` step that reads it, with all the keys that the
 *    cache lacks; steps that are reached independently of each other share one call.
 * 2. Within one batch a key has one answer, whatever expires or is evicted meanwhile.
 * 3. A background refresh never fails a batch; only a copy beyond its `maxStaleness` makes one wait.
 */
import type { Clock } from '../core/clock.ts'
import { describeError, invariant, isTerminal, RetryableError, TerminalError } from '../core/errors.ts'
import {
  type Freshness,
  type LookupTable,
  notLoaded,
  type RefreshedTable,
  type StaticTable,
  type Table,
  type TableView,
} from '../operators/enrich/table.ts'
import type { Logger, Metrics } from './ports.ts'

interface Copy {
  readonly rows: ReadonlyMap<string, unknown>
  readonly startedAtMs: number
  readonly loadedAtMs: number
}

interface Loading {
  readonly startedAtMs: number
  readonly done: Promise<void>
}

interface Row {
  readonly value: unknown
  readonly loadedAtMs: number
}

export interface TablePorts {
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
}

/** Loads tables, keeps them, and opens one consistent view of all of them per batch. */
export class TableStore {
  readonly #tables: readonly Table[]
  readonly #ports: TablePorts
  readonly #copies = new Map<string, Copy>()
  readonly #caches = new Map<string, RowCache>()
  /** Loads under way, by table. One that never ends is forgotten, as its connection may have died while the environment was frozen. */
  readonly #loading = new Map<string, Loading>()

  constructor(tables: readonly Table[], ports: TablePorts) {
    this.#tables = tables
    this.#ports = ports
    for (const table of tables) if (table.kind === 'lookup') this.#caches.set(table.name, new RowCache(table))
  }

  /** True where some table needs to be asked for the keys of a batch. */
  get hasLookups(): boolean {
    return this.#caches.size > 0
  }

  /** Loads every table that is loaded whole. Rejects with a RetryableError that names the table which could not be. */
  async start(): Promise<void> {
    await Promise.all(
      this.#tables.map((table) =>
        table.kind === 'lookup' || this.#copies.has(table.name) ? undefined : this.#load(table),
      ),
    )
  }

  /** Resolves once no load is under way, however it ended. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#loading.values()].map(({ done }) => done))
  }

  /**
   * The tables as one batch sees them. Starts refreshes that are due, and waits for one only beyond its `maxStaleness`.
   * Rejects with a RetryableError where a table cannot be had, or not before the signal aborts.
   */
  async openBatch(signal: AbortSignal): Promise<BatchTables> {
    try {
      if (this.#tables.length > 0) await untilAborted(this.#ready(), signal)
    } catch (error) {
      if (signal.aborted) this.#loading.clear()
      throw error
    }
    return new BatchTables(this.#tables, this.#copies, this.#caches, this.#ports.metrics, this.#ports.clock.nowMs())
  }

  async #ready(): Promise<void> {
    await this.start()
    const nowMs = this.#ports.clock.nowMs()
    const refreshed = this.#tables.filter((table) => table.kind === 'refreshed')
    if (refreshed.length === 0) return
    // One gauge for all: what matters is the stalest.
    const stalest = Math.max(...refreshed.map((table) => this.#stalenessMs(table, nowMs)))
    this.#ports.metrics.gauge('table-staleness', stalest, 'milliseconds')
    for (const table of refreshed) await this.#keepFresh(table, nowMs)
  }

  #stalenessMs(table: Table, nowMs: number): number {
    return nowMs - (this.#copies.get(table.name)?.loadedAtMs ?? 0)
  }

  async #keepFresh(table: RefreshedTable<unknown>, nowMs: number): Promise<void> {
    const stalenessMs = this.#stalenessMs(table, nowMs)
    if (stalenessMs < table.everyMs) return
    const known = this.#loading.get(table.name)
    if (known && nowMs - known.startedAtMs >= table.everyMs) this.#loading.delete(table.name)
    const refresh = this.#refresh(table)
    if (stalenessMs <= table.maxStalenessMs) return
    await refresh
    const copy = this.#copies.get(table.name)
    if (!copy || this.#ports.clock.nowMs() - copy.loadedAtMs > table.maxStalenessMs) {
      throw new RetryableError(
        `table "${table.name}" is ${stalenessMs} ms old, more than its maxStaleness of ${table.maxStalenessMs} ms, and could not be refreshed`,
        { code: 'table-too-stale' },
      )
    }
  }

  async #refresh(table: RefreshedTable<unknown>): Promise<void> {
    try {
      await this.#load(table)
    } catch (error) {
      this.#ports.logger.warn('a table could not be refreshed; its last copy stays in use', {
        table: table.name,
        error: describeError(error).name,
      })
    }
  }

  /** Loads a table whole; whoever asks while it is being loaded waits for the same call. */
  #load(table: StaticTable<unknown> | RefreshedTable<unknown>): Promise<void> {
    const known = this.#loading.get(table.name)
    if (known) return known.done
    const startedAtMs = this.#ports.clock.nowMs()
    const loading: Loading = {
      startedAtMs,
      done: this.#copy(table, startedAtMs).finally(() => {
        if (this.#loading.get(table.name) === loading) this.#loading.delete(table.name)
      }),
    }
    this.#loading.set(table.name, loading)
    return loading.done
  }

  async #copy(table: StaticTable<unknown> | RefreshedTable<unknown>, startedAtMs: number): Promise<void> {
    try {
      const rows = await table.load()
      refuseOther(rows)
      const present = this.#copies.get(table.name)
      // A load that was given up as lost may still end, behind one that began later.
      if (present && present.startedAtMs > startedAtMs) return
      this.#copies.set(table.name, { rows, startedAtMs, loadedAtMs: this.#ports.clock.nowMs() })
    } catch (error) {
      throw new RetryableError(`table "${table.name}" could not be loaded: ${describeError(error).message}`, {
        code: 'table-not-loaded',
        cause: error,
      })
    }
  }
}

/** The rows of one lookup table, least recently used first. */
class RowCache {
  readonly table: LookupTable<unknown>
  readonly #rows = new Map<string, Row>()

  constructor(table: LookupTable<unknown>) {
    this.table = table
  }

  get(key: string, nowMs: number): Row | undefined {
    const row = this.#rows.get(key)
    if (!row) return undefined
    this.#rows.delete(key)
    if (nowMs - row.loadedAtMs >= this.table.ttlMs) return undefined
    this.#rows.set(key, row)
    return row
  }

  set(key: string, row: Row): void {
    this.#rows.delete(key)
    this.#rows.set(key, row)
    if (this.#rows.size <= this.table.maxEntries) return
    const oldest = this.#rows.keys().next()
    if (!oldest.done) this.#rows.delete(oldest.value)
  }
}

/** One batch's view of every table. */
export class BatchTables {
  readonly #views = new Map<string, TableView<unknown>>()
  readonly #lookups: BatchLookup[] = []

  constructor(
    tables: readonly Table[],
    copies: ReadonlyMap<string, Copy>,
    caches: ReadonlyMap<string, RowCache>,
    metrics: Metrics,
    nowMs: number,
  ) {
    for (const table of tables) {
      const cache = caches.get(table.name)
      if (cache) {
        const lookup = new BatchLookup(cache, metrics, nowMs)
        this.#lookups.push(lookup)
        this.#views.set(table.name, lookup)
        continue
      }
      const copy = copies.get(table.name)
      invariant(copy, `table "${table.name}" was not loaded before a batch`)
      const freshness = { loadedAtMs: copy.loadedAtMs, stalenessMs: Math.max(0, nowMs - copy.loadedAtMs) }
      this.#views.set(table.name, { get: (key) => copy.rows.get(key), freshness: () => freshness })
    }
  }

  view(name: string): TableView<unknown> {
    const view = this.#views.get(name)
    invariant(view, `table "${name}" is not one of the stage's`)
    return view
  }

  /**
   * Loads what records look up, one call per lookup table: `learn` says which keys they want, as far as what is loaded lets them come,
   * again and again until no key is wanted. Keys of pure functions are all known after far fewer rounds than `mostRounds`; those of
   * impure ones would never be.
   */
  async loadLookups(learn: () => void, mostRounds: number, signal: AbortSignal): Promise<void> {
    learn()
    for (let round = 0; round < mostRounds; round++) {
      // The first lookup that wants any, in the order in which records reach them: by then every record that can reach it has said its key.
      const first = this.#lookups.find((lookup) => lookup.wantsKeys)
      if (!first) break
      await first.load(signal)
      learn()
    }
    // From here on a key that was not loaded is a mistake of the step's key function.
    for (const lookup of this.#lookups) lookup.close()
  }
}

/** One lookup table in one batch. */
class BatchLookup implements TableView<unknown> {
  readonly #cache: RowCache
  readonly #metrics: Metrics
  readonly #nowMs: number
  readonly #rows = new Map<string, Row>()
  readonly #wanted = new Set<string>()
  #failure: Error | undefined
  #closed = false

  constructor(cache: RowCache, metrics: Metrics, nowMs: number) {
    this.#cache = cache
    this.#metrics = metrics
    this.#nowMs = nowMs
  }

  get wantsKeys(): boolean {
    return this.#wanted.size > 0
  }

  get(key: string): unknown {
    const pinned = this.#rows.get(key)
    if (pinned) return pinned.value
    const cached = this.#cache.get(key, this.#nowMs)
    if (cached) {
      this.#metrics.count('lookup-hits', 1)
      this.#rows.set(key, cached)
      return cached.value
    }
    if (this.#failure) throw this.#failure
    if (this.#closed) {
      throw new TerminalError(
        `the key of a lookup in "${this.#cache.table.name}" changed between two runs of one record: key functions must be pure`,
        { code: 'impure-key' },
      )
    }
    this.#wanted.add(key)
    return notLoaded
  }

  freshness(key: string): Freshness {
    const loadedAtMs = this.#rows.get(key)?.loadedAtMs ?? this.#nowMs
    return { loadedAtMs, stalenessMs: Math.max(0, this.#nowMs - loadedAtMs) }
  }

  close(): void {
    this.#closed = true
  }

  async load(signal: AbortSignal): Promise<void> {
    const keys = [...this.#wanted]
    this.#wanted.clear()
    const { table } = this.#cache
    this.#metrics.count('lookup-calls', 1)
    this.#metrics.count('lookup-misses', keys.length)
    try {
      const found = await untilAborted(table.load(keys), signal)
      refuseOther(found)
      for (const key of keys) {
        const row = { value: found.get(key), loadedAtMs: this.#nowMs }
        this.#rows.set(key, row)
        this.#cache.set(key, row)
      }
    } catch (error) {
      if (isTerminal(error)) this.#failure = error as Error
      else {
        this.#failure = new RetryableError(
          `lookup table "${table.name}" could not be read: ${describeError(error).message}`,
          { code: 'lookup-failed', cause: error },
        )
      }
    }
  }
}

/** The promise's outcome, unless the signal aborts first. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const aborted = () =>
      reject(new RetryableError('the invocation has no time left to wait for a table', { code: 'deadline' }))
    if (signal.aborted) aborted()
    signal.addEventListener('abort', aborted, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted))
  })
}

/** Takes a Map of any realm: in jest, what Node itself makes is no instance of the test's own Map. */
function refuseOther(rows: unknown): void {
  if (Object.prototype.toString.call(rows) === '[object Map]') return
  throw new TypeError('its load function did not give a Map')
}
