/** What every keyed state may say beside its type: how long a value is visible, and how older values are read. */
import { type Duration, msOf } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'

/**
 * How long a value is visible. Each key has a time of its own, which only moves forward: the largest event time, or the
 * largest arrival time, of its records so far. A value that was touched at the key's time `t` is gone from `t + after` on.
 * So it makes no difference when, or how often, records are processed, and a key without records keeps what it has, but for its timers:
 * where one fires without a record of its key, the key's time is at least that of the oldest record that may still come. By event time
 * that is a day behind the watermark; by processing time, as far behind the time reached as the source and the streams between keep
 * records (seven days where nobody says).
 *
 * Entries of a map state and elements are alike: each entry lives by itself; a list lives as one value.
 *
 * @example
 * valueState<Session>({ ttl: { by: 'event-time', after: minutes(30), refreshedOn: 'read-and-write' } })
 */
export interface Ttl {
  /** `event-time`: what the records tell; `processing-time`: when the broker took them in. Never the clock on the wall. */
  readonly by: 'event-time' | 'processing-time'
  /** Longer than nothing. */
  readonly after: Duration
  /**
   * What touches a value. With `read-and-write` a step that only reads writes too, and `entries()` writes every entry.
   * @default 'write'
   */
  readonly refreshedOn?: 'write' | 'read-and-write'
}

/**
 * Turns a value of one schema version into one of the next. It is pure, and gets a value that cannot be changed. The
 * parameter may be annotated with what that version kept.
 */
export type Upcast<T> = { pure(old: unknown): T }['pure']

/** Versions 2 to 32, each with an upcaster for every version below it. */
type LaterVersion<
  T,
  Below extends readonly unknown[] = [unknown],
  Older extends number = never,
> = Below['length'] extends 32
  ? never
  :
      | {
          readonly version: [...Below, unknown]['length'] & number
          readonly upcast: { readonly [V in Older]: Upcast<unknown> } & {
            readonly [V in Below['length'] & number]: Upcast<T>
          }
        }
      | LaterVersion<T, [...Below, unknown], Older | (Below['length'] & number)>

/** What says how values of a type are laid out, and how those of a release before are read. */
export type SchemaVersion<T> =
  | {
      /**
       * The version of the schema of the values, from 1 to 32. A value of an older version goes through the upcasters on its
       * first read; a state writes it back with the next write. One of a newer version makes this release wait.
       * @default 1
       */
      readonly version?: 1
      readonly upcast?: undefined
    }
  | LaterVersion<T>

/** What each kind of state takes. */
export type StateOptions<T> = {
  /** @default values stay until they are cleared */
  readonly ttl?: Ttl
} & SchemaVersion<T>

/** A schema version as the runtime reads it. */
export interface CheckedVersion {
  readonly version: number
  /** By the version that they read. */
  readonly upcast: { readonly [version: number]: Upcast<unknown> }
}

/** The options as the runtime reads them. */
export interface CheckedOptions extends CheckedVersion {
  readonly ttl: Ttl | undefined
}

/** Throws a {@link ConfigurationError} for what the types refuse, too: topologies are written in JavaScript as well. */
export function checkOptions<T>(kind: string, options: StateOptions<T> = {}): CheckedOptions {
  const { ttl, ...schema } = options
  if (ttl !== undefined) checkTtl(kind, ttl)
  return { ttl, ...checkVersion(kind, schema) }
}

/** Throws a {@link ConfigurationError} where a version cannot be one, or lacks an upcaster. */
export function checkVersion(
  what: string,
  { version = 1, upcast = {} }: { readonly version?: number; readonly upcast?: object | undefined },
): CheckedVersion {
  if (!Number.isInteger(version) || version < 1 || version > 32) {
    throw new ConfigurationError(`${what}: ${version} is no schema version: give an integer from 1 to 32.`)
  }
  for (let older = 1; older < version; older += 1) {
    if (typeof (upcast as CheckedVersion['upcast'])[older] === 'function') continue
    throw new ConfigurationError(
      `${what}: version ${version} has no upcaster for version ${older}: add upcast: { ${older}: (old) => ... }.`,
    )
  }
  return { version, upcast: upcast as CheckedVersion['upcast'] }
}

function checkTtl(kind: string, { by, after, refreshedOn = 'write' }: Ttl): void {
  if (by !== 'event-time' && by !== 'processing-time') {
    throw new ConfigurationError(`${kind}: a ttl by "${String(by)}": say 'event-time' or 'processing-time'.`)
  }
  msOf(`${kind}: a ttl of`, after, 1, 'give a length of time, such as hours(1).')
  if (refreshedOn !== 'write' && refreshedOn !== 'read-and-write') {
    throw new ConfigurationError(
      `${kind}: a ttl that is refreshed on "${String(refreshedOn)}": say 'write' or 'read-and-write'.`,
    )
  }
}
