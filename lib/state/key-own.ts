/**
 * What the runner keeps of a key, of one of its states and of an entry beside the user's values: the attribute `own`, in
 * words that whoever reads the table understands. What is not needed is left out.
 */
import type { StateValue, TimerDomain } from './state-store.ts'

/** Of one state, or of one entry. */
export type TouchedValue = {
  /** The key's time, by the kind that the state's TTL goes by, at which the value was touched last. */
  readonly touchedMs?: number
  /** The schema version of the value. @default 1 */
  readonly version?: number
}

/** By domain and name, in ms since 1970 UTC. */
export type StoredTimers = { readonly [D in TimerDomain]?: Readonly<Record<string, number>> }

/** Of a key. */
export type KeyOwn = {
  /** The largest event time of the key's records, where a TTL goes by it. */
  readonly eventTimeMs?: number
  /** The largest arrival time of the key's records, where a TTL goes by it. */
  readonly arrivalTimeMs?: number
  readonly states?: Readonly<Record<string, TouchedValue>>
  /** The position of the first commit of a key with map states: older entries are remains of a life that TTL ended. */
  readonly entriesSince?: number
  /** How many entries stay until they are removed. */
  readonly lastingEntries?: number
  /** When the last of the other entries has expired, in seconds since 1970 UTC. */
  readonly entriesUntilSeconds?: number
  /** The timers that are set, by name: when they are due, in ms since 1970 UTC. */
  readonly timers?: StoredTimers
  /** The redriven records that the key took, each with when it may be forgotten, in seconds since 1970 UTC. */
  readonly redrives?: Readonly<Record<string, number>>
}

/** The store gave it back as it was written. */
export const readKeyOwn = (own: StateValue | undefined): KeyOwn => (own ?? {}) as KeyOwn
export const readTouched = (own: StateValue | undefined): TouchedValue => (own ?? {}) as TouchedValue

/** Undefined where there is nothing to keep. */
export function writeOwn(own: { readonly [name: string]: StateValue | undefined }): StateValue | undefined {
  let kept: { [name: string]: StateValue } | undefined
  for (const name of Object.keys(own)) {
    const value = own[name]
    if (value === undefined) continue
    kept ??= {}
    kept[name] = value
  }
  return kept
}
