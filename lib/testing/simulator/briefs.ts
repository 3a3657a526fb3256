/**
 * States with a TTL of every kind, in the application without time, and what they must be: values that are forgotten while
 * input still comes. Runs in which TTL takes items have them.
 */
import { milliseconds } from '../../core/duration.ts'
import { listState, mapState, reducingState } from '../../state/states.ts'
import type { KeyedStream } from '../../topology/stream.ts'
import type { Topology } from '../../topology/topology.ts'
import type { Line } from './lines.ts'

const briefMs = 20_000
const after = milliseconds(briefMs)
const atMost = 3

export const briefNames = { first: 'recent-items', brief: 'briefs', byEventTime: 'recently' } as const

/** What is still known of a user when a line comes. */
export interface Brief {
  readonly user: string
  readonly line: string
  /** Lines of the item, each entry with a TTL by processing time. */
  readonly ofItem: number
  /** The newest lines, with a TTL by event time that reading puts off. */
  readonly lines: readonly string[]
  /** The largest amount, with a TTL by event time. */
  readonly most: number
}

export function addBriefs(app: Topology, byUser: KeyedStream<Line>): void {
  const firsts = app.sink<Line>(briefNames.first, { key: ({ user }) => user })
  const briefs = app.sink<Brief>(briefNames.brief, { key: ({ user }) => user })
  byUser.deduplicate(briefNames.byEventTime, { by: ({ item }) => item, ttl: { by: 'event-time', after } }).to(firsts)
  byUser
    .process('brief', {
      state: {
        ofItem: mapState<number>({ ttl: { by: 'processing-time', after } }),
        lines: listState<string>({ atMost, ttl: { by: 'event-time', after, refreshedOn: 'read-and-write' } }),
        most: reducingState<number>((a, b) => Math.max(a, b), { ttl: { by: 'event-time', after } }),
      },
      prefetch: ({ item }: Line) => ({ ofItem: [item] }),
      step: ({ line, item, cents, does }: Line, { key, state }): Brief[] => {
        const ofItem = (state.ofItem.get(item) ?? 0) + 1
        state.ofItem.set(item, ofItem)
        if (does === 'add') state.lines.add(line)
        const lines = state.lines.get()
        state.most.add(cents)
        return [{ user: key, line, ofItem, lines, most: state.most.get() ?? 0 }]
      },
    })
    .to(briefs)
}

/** A value that is gone once the time of its key is so far ahead of its last touch. */
class Fading<T> {
  #value: T
  #touchedMs = Number.NEGATIVE_INFINITY
  readonly #initial: T

  constructor(initial: T) {
    this.#initial = initial
    this.#value = initial
  }

  isGone(timeMs: number): boolean {
    return timeMs >= this.#touchedMs + briefMs
  }

  get(timeMs: number): T {
    return this.isGone(timeMs) ? this.#initial : this.#value
  }

  set(timeMs: number, value: T): void {
    this.#value = value
    this.#touchedMs = timeMs
  }
}

/** What briefs keep of one user. */
export class BriefOracle {
  /** How often something was gone that had been there. */
  forgotten = 0
  #eventTimeMs = Number.NEGATIVE_INFINITY
  #arrivalTimeMs = Number.NEGATIVE_INFINITY
  readonly #recently = new Map<string, Fading<boolean>>()
  readonly #ofItem = new Map<string, Fading<number>>()
  readonly #lines = new Fading<readonly string[]>([])
  readonly #most = new Fading<number>(0)

  take(
    { user, line, item, cents, does }: Line,
    eventTimeMs: number,
    arrivalTimeMs: number,
  ): { readonly isFirst: boolean; readonly brief: Brief } {
    this.#eventTimeMs = Math.max(this.#eventTimeMs, eventTimeMs)
    this.#arrivalTimeMs = Math.max(this.#arrivalTimeMs, arrivalTimeMs)
    const [eventMs, arrivedMs] = [this.#eventTimeMs, this.#arrivalTimeMs]
    const recently = this.#of(this.#recently, item, false, eventMs)
    const isFirst = !recently.get(eventMs)
    if (isFirst) recently.set(eventMs, true)
    const ofItem = this.#of(this.#ofItem, item, 0, arrivedMs)
    ofItem.set(arrivedMs, ofItem.get(arrivedMs) + 1)
    const before = this.#lines.get(eventMs)
    const lines = does === 'add' ? [...before, line].slice(-atMost) : before
    // A list that is empty is not there, so reading does not touch it.
    if (lines.length > 0) this.#lines.set(eventMs, lines)
    this.#most.set(eventMs, Math.max(this.#most.get(eventMs), cents))
    return { isFirst, brief: { user, line, ofItem: ofItem.get(arrivedMs), lines, most: this.#most.get(eventMs) } }
  }

  #of<T>(values: Map<string, Fading<T>>, name: string, initial: T, timeMs: number): Fading<T> {
    const known = values.get(name)
    if (known?.isGone(timeMs)) this.forgotten += 1
    const value = known ?? new Fading(initial)
    values.set(name, value)
    return value
  }
}
