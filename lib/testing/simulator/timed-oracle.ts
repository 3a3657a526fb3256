/**
 * What must come out of windows and timers, computed in the most naive way that there is: one number of the log after the
 * other, each key asked at each number, whole windows in plain maps. No due entries, slices, batches or caches.
 */
import { positionHashOf } from '../../runtime/frames/position.ts'
import { contentOf } from './sinks.ts'
import type { TimedLine, TimedLog, TimedRecord } from './timed-log.ts'
import {
  bucketOf,
  dayMs,
  echoBehindMs,
  type Hit,
  timedNames,
  timerFails,
  type Watched,
  type WindowOutput,
  type WindowSpec,
} from './timed-workload.ts'

/** Puts a value out of the step at hand to a sink. */
export type Put = (sink: string, value: object) => void

/** A record for windows. */
export interface Timed {
  readonly eventTimeMs: number
  readonly ownMarkMs: number
  readonly cents: number
  /** What the late output has. */
  readonly value: object
}

/** What one kind of windows keeps of one key. */
export interface KeyWindows {
  take(record: Timed, watermarkMs: number, put: Put): void
  fire(watermarkMs: number, put: Put): void
}

interface OpenWindow {
  readonly startMs: number
  readonly endMs: number
  count: number
  cents: number
  /** The last that was put out; -1 where none was. */
  revision: number
}

/** The windows of one size that hold a time, by their starts. */
export function startsOf(timeMs: number, { sizeMs, everyMs = sizeMs }: WindowSpec): readonly number[] {
  const starts: number[] = []
  for (let startMs = Math.floor(timeMs / everyMs) * everyMs; startMs + sizeMs > timeMs; startMs -= everyMs) {
    starts.unshift(startMs)
  }
  return starts
}

/** Tumbling and hopping windows. */
export class FixedWindows implements KeyWindows {
  readonly #spec: WindowSpec
  readonly #user: string
  readonly #open = new Map<number, OpenWindow>()

  constructor(spec: WindowSpec, user: string) {
    this.#spec = spec
    this.#user = user
  }

  take({ eventTimeMs, ownMarkMs, cents, value }: Timed, watermarkMs: number, put: Put): void {
    const { name, sizeMs, graceMs, emit } = this.#spec
    const overMs = Math.max(ownMarkMs, watermarkMs)
    const starts = startsOf(eventTimeMs, this.#spec).filter((startMs) => startMs + sizeMs + graceMs > overMs)
    if (starts.length === 0) put(`${name}-late`, value)
    for (const startMs of starts) {
      const endMs = startMs + sizeMs
      const window = this.#open.get(startMs) ?? { startMs, endMs, count: 0, cents: 0, revision: -1 }
      this.#open.set(startMs, window)
      window.count += 1
      window.cents += cents
      if (emit === 'on-update' || (emit === 'on-close' && endMs <= watermarkMs)) this.#put(window, false, put)
    }
  }

  fire(watermarkMs: number, put: Put): void {
    if (this.#open.size === 0) return
    const { emit, graceMs } = this.#spec
    for (const window of [...this.#open.values()].sort((a, b) => a.endMs - b.endMs)) {
      const overMs = window.endMs + graceMs
      if (emit === 'on-close' && window.revision < 0 && window.endMs <= watermarkMs)
        this.#put(window, graceMs === 0, put)
      if (emit === 'final' && overMs <= watermarkMs) this.#put(window, true, put)
      if (overMs <= watermarkMs) this.#open.delete(window.startMs)
    }
  }

  #put(window: OpenWindow, isFinal: boolean, put: Put): void {
    const { startMs, endMs, count, cents } = window
    window.revision += 1
    const { revision } = window
    put(this.#spec.name, { user: this.#user, startMs, endMs, revision, isFinal, isRetracted: false, count, cents })
  }
}

/** Records that belong together. */
export interface Gathered {
  readonly startMs: number
  readonly endMs: number
  readonly count: number
  readonly cents: number
}

/** The sessions of records: each follows within less than the gap. */
export function sessionsOf(records: readonly Pick<Timed, 'eventTimeMs' | 'cents'>[], gapMs: number): Gathered[] {
  const sessions: Gathered[] = []
  for (const { eventTimeMs, cents } of [...records].sort((a, b) => a.eventTimeMs - b.eventTimeMs)) {
    const last = sessions.at(-1)
    const endMs = eventTimeMs + gapMs
    if (last === undefined || last.endMs <= eventTimeMs) {
      sessions.push({ startMs: eventTimeMs, endMs, count: 1, cents })
    } else {
      sessions[sessions.length - 1] = { startMs: last.startMs, endMs, count: last.count + 1, cents: last.cents + cents }
    }
  }
  return sessions
}

const boundsOf = ({ startMs, endMs }: Gathered): string => `${startMs}-${endMs}`

/** Sessions are gathered anew from all records at each number. */
export class Sessions implements KeyWindows {
  readonly #spec: WindowSpec
  readonly #user: string
  #records: Timed[] = []
  /** The last revision that was put out, by bounds. */
  readonly #revisions = new Map<string, number>()

  constructor(spec: WindowSpec, user: string) {
    this.#spec = spec
    this.#user = user
  }

  take(record: Timed, watermarkMs: number, put: Put): void {
    const { name, sizeMs, graceMs, emit } = this.#spec
    const { eventTimeMs, ownMarkMs, value } = record
    if (eventTimeMs + sizeMs + graceMs <= Math.max(ownMarkMs, watermarkMs)) {
      put(`${name}-late`, value)
      return
    }
    const before = sessionsOf(this.#records, sizeMs)
    this.#records.push(record)
    const after = sessionsOf(this.#records, sizeMs)
    const mine = after.find(({ startMs, endMs }) => startMs <= eventTimeMs && eventTimeMs < endMs) as Gathered
    for (const session of before) {
      const isInMine = mine.startMs <= session.startMs && session.endMs <= mine.endMs
      if (!isInMine || boundsOf(session) === boundsOf(mine) || !this.#revisions.has(boundsOf(session))) continue
      this.#put(session, true, true, put)
      this.#revisions.delete(boundsOf(session))
    }
    if (emit === 'on-update' || (emit === 'on-close' && mine.endMs <= watermarkMs)) this.#put(mine, false, false, put)
  }

  fire(watermarkMs: number, put: Put): void {
    if (this.#records.length === 0) return
    const { sizeMs, graceMs, emit } = this.#spec
    const sessions = sessionsOf(this.#records, sizeMs)
    for (const session of sessions) {
      const settledMs = session.endMs - 1 + sizeMs + graceMs
      const isOut = this.#revisions.has(boundsOf(session))
      if (emit === 'on-close' && !isOut && session.endMs <= watermarkMs) this.#put(session, false, false, put)
      if (emit === 'final' && settledMs <= watermarkMs) this.#put(session, true, false, put)
      if (settledMs > watermarkMs) continue
      this.#revisions.delete(boundsOf(session))
      const { startMs, endMs } = session
      this.#records = this.#records.filter(({ eventTimeMs }) => eventTimeMs < startMs || eventTimeMs >= endMs)
    }
  }

  #put(session: Gathered, isFinal: boolean, isRetracted: boolean, put: Put): void {
    const revision = (this.#revisions.get(boundsOf(session)) ?? -1) + 1
    this.#revisions.set(boundsOf(session), revision)
    const value: WindowOutput = { user: this.#user, ...session, revision, isFinal, isRetracted }
    put(this.#spec.name, value)
  }
}

/** Windows of so many records, whatever their times are. */
export class CountedWindows implements KeyWindows {
  readonly #spec: WindowSpec
  readonly #user: string
  #records: Timed[] = []

  constructor(spec: WindowSpec, user: string) {
    this.#spec = spec
    this.#user = user
  }

  take(record: Timed, _watermarkMs: number, put: Put): void {
    this.#records.push(record)
    const { name, count } = this.#spec
    if (this.#records.length !== count) return
    // What is ahead of its arrival makes no bounds, unless all are.
    const right = this.#records.filter(({ ownMarkMs }) => ownMarkMs < Number.POSITIVE_INFINITY)
    const times = (right.length > 0 ? right : [record]).map(({ eventTimeMs }) => eventTimeMs)
    const cents = this.#records.reduce((total, one) => total + one.cents, 0)
    const bounds = { startMs: Math.min(...times), endMs: Math.max(...times) + 1 }
    put(name, { user: this.#user, ...bounds, revision: 0, isFinal: true, isRetracted: false, count, cents })
    this.#records = []
  }

  fire(): void {
    // No time closes them.
  }
}

/** What time it is for the windows behind a watch. */
interface Times {
  readonly watermarkMs: number
  readonly ownMarkMs: number
}

/** What the watch keeps of one user, and the windows of what it says, where there are any. */
export class Watch {
  readonly #user: string
  readonly #behind: KeyWindows | undefined
  seen = 0
  readonly buckets = new Map<string, number>()
  /** What idle timers say that were not due yet when they were set last. */
  readonly setInTime = new Set<string>()
  #idleMs: number | undefined
  #echoMs: number | undefined
  #pollMs: number | undefined

  constructor(user: string, behind?: KeyWindows) {
    this.#user = user
    this.#behind = behind
  }

  take({ value, eventTimeMs, ownMarkMs, origin }: TimedRecord<Hit>, watermarkMs: number, put: Put): void {
    this.seen += 1
    const bucket = bucketOf(value.cents)
    this.buckets.set(bucket, (this.buckets.get(bucket) ?? 0) + 1)
    this.#idleMs = value.does === 'clear' ? undefined : eventTimeMs + timedNames.idleMs
    if (this.#behind && value.does.startsWith('poll')) this.#echoMs = eventTimeMs - timedNames.echoMs
    if (this.#idleMs !== undefined && this.#idleMs > watermarkMs) this.setInTime.add(`idle ${this.#idleMs}`)
    else this.setInTime.delete(`idle ${this.#idleMs}`)
    if (value.does === 'poll soon') this.#pollMs = Math.ceil(origin.arrivalTimeMs + timedNames.pollSoonMs)
    if (value.does === 'poll later') this.#pollMs = Math.ceil(origin.arrivalTimeMs + timedNames.pollLaterMs)
    this.#put({ what: value.hit, eventTimeMs, byCents: null }, { watermarkMs, ownMarkMs }, put)
  }

  /**
   * Names the timers that threw, with their times. Before a record, or at another's, it is the time of the timer, or of the last
   * one where that lies in its past; `behind` the record, whose step has set it in the past, the time of that.
   */
  fire(
    { watermarkMs, processingMs }: TimedLine<unknown>,
    put: Put,
    behind?: Pick<Timed, 'ownMarkMs'>,
  ): readonly string[] {
    const failed: string[] = []
    const ownMarkMs = behind?.ownMarkMs ?? Number.NEGATIVE_INFINITY
    let lastMs = behind === undefined ? Number.NEGATIVE_INFINITY : watermarkMs
    for (;;) {
      const next = this.#next()
      if (next !== undefined && next[1] <= watermarkMs) {
        const [what, timeMs] = next
        const fails = what === 'idle' && timerFails(timeMs)
        if (fails) failed.push(`watch.idle/${timeMs}`)
        lastMs = Math.max(lastMs, timeMs)
        this.#behind?.fire(lastMs, put)
        if (what === 'echo') this.#fireEcho(timeMs, { watermarkMs: lastMs, ownMarkMs }, put)
        else this.#fireIdle(timeMs, { watermarkMs: lastMs, ownMarkMs }, fails ? undefined : put)
        continue
      }
      this.#behind?.fire(watermarkMs, put)
      if (this.#pollMs === undefined || this.#pollMs > processingMs) return failed
      lastMs = watermarkMs
      this.#firePoll(this.#pollMs, put)
    }
  }

  /** The first of its timers by event time. */
  #next(): readonly ['echo' | 'idle', number] | undefined {
    const [echoMs, idleMs] = [this.#echoMs, this.#idleMs]
    if (idleMs === undefined) return echoMs === undefined ? undefined : ['echo', echoMs]
    return echoMs !== undefined && echoMs <= idleMs ? ['echo', echoMs] : ['idle', idleMs]
  }

  #fireEcho(timeMs: number, times: Times, put: Put): void {
    this.#echoMs = undefined
    this.#put({ what: `echo ${timeMs}`, eventTimeMs: timeMs, byCents: null }, times, put)
  }

  /** One that fails puts nothing out, and leaves all as it was. */
  #fireIdle(timeMs: number, times: Times, put: Put | undefined): void {
    this.#idleMs = undefined
    if (put === undefined) return
    const byCents = [...this.buckets].map(([bucket, count]) => `${bucket}=${count}`).sort()
    if (this.#behind) this.#echoMs = timeMs - echoBehindMs(this.seen)
    this.#put({ what: `idle ${timeMs}`, eventTimeMs: timeMs, byCents }, times, put)
    this.seen = 0
    this.buckets.clear()
  }

  /** What it says goes past the windows. */
  #firePoll(timeMs: number, put: Put): void {
    this.#pollMs = undefined
    if (this.#behind) this.#echoMs = timeMs - dayMs
    const value: Watched = { user: this.#user, what: `poll ${timeMs}`, seen: this.seen, byCents: null }
    put('watched', value)
  }

  #put({ what, eventTimeMs, byCents }: Said, { watermarkMs, ownMarkMs }: Times, put: Put): void {
    const value: Watched = { user: this.#user, what, seen: this.seen, byCents }
    put('watched', value)
    this.#behind?.take({ eventTimeMs, ownMarkMs, cents: value.seen, value }, watermarkMs, put)
  }
}

/** What the watch says, and of which time. */
interface Said extends Pick<Watched, 'what' | 'byCents'> {
  readonly eventTimeMs: number
}

/** What one key of a stage does. */
export interface KeyOracle<T> {
  /** Fires what is due, or what the step of a record has set in the past; names the timers that threw, with their times. */
  fire(line: TimedLine<T>, put: Put, behind?: TimedRecord<T>): readonly string[]
  take(record: TimedRecord<T>, line: TimedLine<T>, put: Put): void
}

export interface TimedReplay<T, K> {
  readonly keys: ReadonlyMap<string, K>
  /** What must have been delivered, and nothing else: content by identity. */
  readonly outputs: ReadonlyMap<string, string>
  /** The same, with the line that each comes from. */
  readonly places: ReadonlyMap<string, TimedLine<T>>
  /** The dead letters that there must be, by their ids. */
  readonly dead: ReadonlySet<string>
  /** Keys that took records that were sent again. */
  readonly redriven: ReadonlySet<string>
}

export interface ReplayParts<T, K> {
  readonly stage: string
  readonly log: TimedLog<T>
  slotOf(key: string): number
  newKey(key: string): K
  /** Says which records become dead letters. */
  fails(record: TimedRecord<T>, id: string): boolean
}

/** Applies every number of the log once. */
export function replayTimed<T, K extends KeyOracle<T>>(parts: ReplayParts<T, K>): TimedReplay<T, K> {
  const replay = new Replay<T, K>(parts)
  for (const line of parts.log.lines) replay.apply(line)
  return replay
}

class Replay<T, K extends KeyOracle<T>> implements TimedReplay<T, K> {
  readonly keys = new Map<string, K>()
  readonly outputs = new Map<string, string>()
  readonly places = new Map<string, TimedLine<T>>()
  readonly dead = new Set<string>()
  readonly redriven = new Set<string>()
  readonly #parts: ReplayParts<T, K>
  /** In the order in which keys fire. */
  #inOrder: readonly { readonly key: string; readonly hash: string; readonly slot: number }[] = []
  readonly #took = new Set<string>()

  constructor(parts: ReplayParts<T, K>) {
    this.#parts = parts
  }

  apply(line: TimedLine<T>): void {
    const { record, shard } = line
    for (const { key, slot } of this.#inOrder) {
      if (key === record?.key || !shard.slots.has(slot)) continue
      this.#fire(this.#of(key), key, line, this.#putAt(line, key))
    }
    if (record !== undefined) this.#take(record, line)
  }

  /** Of a record that fails, or that its key took before, the key does nothing but fire what is due. */
  #take(record: TimedRecord<T>, line: TimedLine<T>): void {
    const { key, redrive } = record
    const { stage, fails } = this.#parts
    const id = redrive ?? `${stage}/slot-${line.slot}/${line.number}`
    const isTaken = this.#took.has(`${key} ${redrive}`)
    const isDead = !isTaken && fails(record, id)
    if (isDead) this.dead.add(id)
    if (redrive !== undefined) this.redriven.add(key)
    if (redrive !== undefined && !isDead) this.#took.add(`${key} ${redrive}`)
    const put = this.#putAt(line, undefined)
    if (isDead || isTaken) {
      const known = this.keys.get(key)
      if (known) this.#fire(known, key, line, put)
      return
    }
    const oracle = this.#of(key)
    this.#fire(oracle, key, line, put)
    oracle.take(record, line, put)
    this.#fire(oracle, key, line, put, record)
  }

  #of(key: string): K {
    const known = this.keys.get(key)
    if (known) return known
    const oracle = this.#parts.newKey(key)
    this.keys.set(key, oracle)
    const one = { key, hash: positionHashOf(key), slot: this.#parts.slotOf(key) }
    this.#inOrder = [...this.#inOrder, one].sort((a, b) => (a.hash < b.hash ? -1 : 1))
    return oracle
  }

  #fire(oracle: K, key: string, line: TimedLine<T>, put: Put, behind?: TimedRecord<T>): void {
    for (const name of oracle.fire(line, put, behind)) this.dead.add(`${this.#placeOf(line, key)}/${name}`)
  }

  #placeOf({ slot, number }: TimedLine<T>, firing: string | undefined): string {
    return `${this.#parts.stage}/slot-${slot}/${digitsOf(number, firing)}/0`
  }

  /** The outputs of one step are told apart by their order in each sink. */
  #putAt(line: TimedLine<T>, firing: string | undefined): Put {
    const counts = new Map<string, number>()
    // Most keys fire nothing at most numbers.
    let place: string | undefined
    return (sink, value) => {
      place ??= this.#placeOf(line, firing)
      const index = counts.get(sink) ?? 0
      counts.set(sink, index + 1)
      const identity = `${sink}:${place}/${index}`
      this.outputs.set(identity, contentOf(value))
      this.places.set(identity, line)
    }
  }
}

/** The digits of a step's place: its number, then 1 for the record's own key, or 0 and the hash of the key that fires. */
function digitsOf(number: number, firing: string | undefined): string {
  if (firing === undefined) return `${number}1${'0'.repeat(39)}`
  const hash = BigInt(`0x${positionHashOf(firing)}`)
  return `${number}0${hash.toString().padStart(39, '0')}`
}
