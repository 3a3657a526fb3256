/**
 * The three kinds of table that a stateless step can be enriched from. A call per record cannot be written: a step
 * names a key, and the runtime has loaded the row before the step runs.
 */
import { type Duration, msOf } from '../../core/duration.ts'
import { ConfigurationError } from '../../core/errors.ts'

/** How fresh the row is that a `join` was given. */
export interface Freshness {
  /** When the table, or this row of a lookup, was loaded; ms since 1970 UTC. */
  readonly loadedAtMs: number
  /** How old that is now, in ms. A static table's rows age too: it is loaded once per execution environment. */
  readonly stalenessMs: number
}

/** Loaded whole, once, when an execution environment starts. */
export interface StaticTable<V> {
  readonly kind: 'static'
  readonly name: string
  readonly load: () => ReadonlyMap<string, V> | Promise<ReadonlyMap<string, V>>
}

/** Loaded whole at start and again in the background, once a copy is older than `everyMs`. */
export interface RefreshedTable<V> {
  readonly kind: 'refreshed'
  readonly name: string
  readonly load: () => Promise<ReadonlyMap<string, V>>
  readonly everyMs: number
  readonly maxStalenessMs: number
  readonly acknowledged: boolean
}

/** Rows fetched for the keys of a batch in one call, and cached for `ttlMs`. */
export interface LookupTable<V> {
  readonly kind: 'lookup'
  readonly name: string
  readonly load: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>
  readonly ttlMs: number
  readonly maxEntries: number
  readonly acknowledged: boolean
}

export type Table<V = unknown> = StaticTable<V> | RefreshedTable<V> | LookupTable<V>

/** What a linked `enrich` step reads. */
export interface TableView<V> {
  /** The row; undefined where the table has none; `notLoaded` where the runtime must load it first. */
  get(key: string): V | undefined | typeof notLoaded
  freshness(key: string): Freshness
}

/** Says that the row of this key is still to be loaded; the runtime runs the record again once it is. */
export const notLoaded: unique symbol = Symbol('not loaded')

/** An answer that may differ on a retry must be said out loud where `filter` or `keyBy` depends on it. */
export interface ChangingAnswers {
  /**
   * Set to `'may-change'` to allow a `filter`, `flatMap`, `branch` or `keyBy` after this enrichment: on a retry the row
   * may differ, so the record may then take another way. @default 'refuse'
   */
  readonly answers?: 'refuse' | 'may-change'
}

/**
 * A table that is loaded once, when an execution environment starts.
 *
 * @example
 * const airports = staticTable('airports', () => new Map(rows.map((row) => [row.code, row])))
 * flights.enrich({ from: airports, key: (f) => f.origin, join: (f, airport) => ({ ...f, origin: airport }) })
 */
export function staticTable<V>(name: string, load: StaticTable<V>['load']): StaticTable<V> {
  return { kind: 'static', name, load }
}

/**
 * A table that is loaded at start and refreshed in the background. Its staleness is a metric, and `join` is told it. Throws a
 * {@link ConfigurationError} for what is no length of time, and where `maxStaleness` is shorter than `every`.
 *
 * @example
 * refreshedTable('rates', { load: fetchRates, every: minutes(5), maxStaleness: hours(1) })
 */
export function refreshedTable<V>(
  name: string,
  options: {
    readonly load: RefreshedTable<V>['load']
    /** A copy older than this is replaced in the background. */
    readonly every: Duration
    /** A copy older than this is not used: the batch waits for a fresh one. At least `every`. @default never */
    readonly maxStaleness?: Duration
  } & ChangingAnswers,
): RefreshedTable<V> {
  const everyMs = lengthOf(name, 'every', options.every)
  const maxStalenessMs =
    options.maxStaleness === undefined ? Number.POSITIVE_INFINITY : lengthOf(name, 'maxStaleness', options.maxStaleness)
  if (maxStalenessMs < everyMs) {
    throw new ConfigurationError(
      `table "${name}" is refreshed every ${everyMs} ms but may be no older than ${maxStalenessMs} ms: make maxStaleness at least every.`,
    )
  }
  return {
    kind: 'refreshed',
    name,
    load: options.load,
    everyMs,
    maxStalenessMs,
    acknowledged: options.answers === 'may-change',
  }
}

/**
 * Rows fetched by key: one call per batch for all keys that the cache lacks. Keys that the call leaves out have no row.
 * Throws a {@link ConfigurationError} for a `ttl` that is no length of time.
 *
 * @example
 * lookup('accounts', { load: (ids) => fetchAccounts(ids), ttl: minutes(1) })
 */
export function lookup<V>(
  name: string,
  options: {
    /** Gets distinct keys; resolves with the rows that exist. */
    readonly load: LookupTable<V>['load']
    /** How long a row, or its absence, may be used. */
    readonly ttl: Duration
    /** Rows kept, absent ones included; the least recently used go first. @default 10000 */
    readonly maxEntries?: number
  } & ChangingAnswers,
): LookupTable<V> {
  return {
    kind: 'lookup',
    name,
    load: options.load,
    ttlMs: lengthOf(name, 'ttl', options.ttl),
    maxEntries: options.maxEntries ?? 10_000,
    acknowledged: options.answers === 'may-change',
  }
}

const lengthOf = (table: string, option: string, length: Duration): number =>
  msOf(`table "${table}": ${option} is`, length, 0, 'give a length of time, such as minutes(5).')
