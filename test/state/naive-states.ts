/**
 * What keyed states are, told as simply as possible: plain values in memory, each with the key's time of its last touch. It
 * knows no store, no items, no loading; a step that throws, a crash and a reload are copies put aside and taken back.
 */

import { compareUtf8 } from '../../lib/state/key-encoding.ts'
import type { StateValue, TimerDomain } from '../../lib/state/state-store.ts'
import type { Ttl } from '../../lib/state/states.ts'
import { canonicalText } from '../../lib/state/values.ts'

interface Kept {
  readonly value: StateValue
  readonly touchedMs: number
}

export interface NaiveState {
  readonly kind: 'value' | 'list' | 'map' | 'reducing' | 'aggregating' | 'packed'
  readonly ttl: Ttl | undefined
}

/** One thing that a step does. `value` is used by what writes, `entry` by maps. */
export interface Operation {
  readonly state: string
  readonly call: 'get' | 'set' | 'add' | 'clear' | 'has' | 'entries'
  readonly entry: string
  readonly value: StateValue
}

/** What a step does to its timers, or asks of them. */
export interface TimerOperation {
  readonly state: 'timers'
  readonly call: 'set' | 'clear' | 'get' | 'next'
  readonly domain: TimerDomain
  readonly name: string
  readonly timeMs: number
}

export const atMost = 3

/** The reduction and the aggregation that tests declare: they keep everything that was added, as text. */
export const reduced = (a: StateValue, b: StateValue): StateValue => `${canonicalText(a)}+${canonicalText(b)}`
export const gathered = (all: readonly StateValue[], value: StateValue): readonly StateValue[] => [...all, value]
export const resultOf = (all: readonly StateValue[]): StateValue => all.map(canonicalText).join()

export class NaiveStates {
  readonly #states: ReadonlyMap<string, NaiveState>
  /** By state and, of maps, entry. */
  #kept = new Map<string, Map<string, Kept>>()
  #timers: Record<TimerDomain, Map<string, number>> = { 'event-time': new Map(), 'processing-time': new Map() }
  #times = { 'event-time': Number.NEGATIVE_INFINITY, 'processing-time': Number.NEGATIVE_INFINITY }

  constructor(states: ReadonlyMap<string, NaiveState>) {
    this.#states = states
  }

  copy(): NaiveStates {
    const copy = new NaiveStates(this.#states)
    copy.#kept = new Map([...this.#kept].map(([state, entries]) => [state, new Map(entries)]))
    copy.#timers = {
      'event-time': new Map(this.#timers['event-time']),
      'processing-time': new Map(this.#timers['processing-time']),
    }
    copy.#times = { ...this.#times }
    return copy
  }

  begin(eventTimeMs: number, arrivalTimeMs: number): void {
    this.#times['event-time'] = Math.max(this.#times['event-time'], eventTimeMs)
    this.#times['processing-time'] = Math.max(this.#times['processing-time'], arrivalTimeMs)
  }

  /** How much longer anything is visible, by the key's times as they are: infinite where something stays. */
  longestRemainingMs(): number {
    let longestMs = (this.nextTimer('event-time') ?? this.nextTimer('processing-time')) ? Number.POSITIVE_INFINITY : 0
    for (const [state, entries] of this.#kept) {
      const afterMs = this.#state(state).ttl?.after.ms ?? Number.POSITIVE_INFINITY
      for (const { touchedMs } of entries.values())
        longestMs = Math.max(longestMs, touchedMs + afterMs - this.#timeOf(state))
    }
    return longestMs
  }

  nextTimer(domain: TimerDomain): { readonly name: string; readonly timeMs: number } | undefined {
    const timers = [...this.#timers[domain]].map(([name, timeMs]) => ({ name, timeMs }))
    return timers.sort((a, b) => a.timeMs - b.timeMs || (a.name < b.name ? -1 : 1))[0]
  }

  /** What the call returns. */
  runTimer({ call, domain, name, timeMs }: TimerOperation): unknown {
    const timers = this.#timers[domain]
    if (call === 'next') return this.nextTimer(domain)
    if (call === 'get') return timers.get(name)
    if (call === 'set') timers.set(name, timeMs)
    else timers.delete(name)
    return undefined
  }

  /** What the call returns. */
  run({ state, call, entry, value }: Operation): unknown {
    const { kind } = this.#state(state)
    const place = kind === 'map' ? entry : ''
    switch (call) {
      case 'get': {
        const found = this.#read(state, place)
        if (kind === 'list') return found ?? []
        return kind === 'aggregating' && found !== undefined ? resultOf(found as StateValue[]) : found
      }
      case 'has':
        return this.#read(state, place) !== undefined
      case 'set':
        return this.#write(state, place, kind === 'list' ? (value as StateValue[]).slice(-atMost) : value)
      case 'add': {
        const found = this.#visible(state, place)
        if (kind === 'list')
          return this.#write(state, place, [...((found ?? []) as StateValue[]), value].slice(-atMost))
        if (kind === 'reducing') return this.#write(state, place, found === undefined ? value : reduced(found, value))
        return this.#write(state, place, gathered((found ?? []) as StateValue[], value))
      }
      case 'clear':
        this.#entries(state).delete(place)
        return undefined
      case 'entries': {
        const names = [...this.#entries(state).keys()].sort(compareUtf8)
        return names.map((name) => [name, this.#read(state, name)]).filter(([, found]) => found !== undefined)
      }
    }
  }

  #state(state: string): NaiveState {
    return this.#states.get(state) as NaiveState
  }

  #entries(state: string): Map<string, Kept> {
    const entries = this.#kept.get(state) ?? new Map()
    this.#kept.set(state, entries)
    return entries
  }

  #timeOf(state: string): number {
    const { ttl } = this.#state(state)
    return ttl === undefined ? 0 : this.#times[ttl.by]
  }

  #visible(state: string, place: string): StateValue | undefined {
    const { ttl } = this.#state(state)
    const kept = this.#entries(state).get(place)
    return kept !== undefined && ttl !== undefined && this.#timeOf(state) >= kept.touchedMs + ttl.after.ms
      ? undefined
      : kept?.value
  }

  #read(state: string, place: string): StateValue | undefined {
    const found = this.#visible(state, place)
    if (found !== undefined && this.#state(state).ttl?.refreshedOn === 'read-and-write')
      this.#write(state, place, found)
    return found
  }

  #write(state: string, place: string, value: StateValue): void {
    this.#entries(state).set(place, { value, touchedMs: this.#timeOf(state) })
  }
}
