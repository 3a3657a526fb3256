/**
 * Session windows of one key.
 *
 * 1. Whether a record is late depends on its own time and marks alone, never on the sessions that there are.
 * 2. Sessions are the connected parts of the records that were in time. A session is kept until no record that is in time can
 *    belong to it, so no order of arrival makes a difference.
 * 3. The bounds of a session tell it apart. Where it was put out and its bounds change, by a record or by another session, its
 *    last revision takes it back before anything else is put out.
 * 4. While a key has sessions it has a timer, at the time when something is due or before.
 */
import type { RecordInfo } from '../../../core/record.ts'
import type { StateValue } from '../../../state/state-store.ts'
import type { SessionWindows } from '../../../time/windows/session.ts'
import {
  emitResult,
  type LinkedParts,
  type WindowDeclaration,
  type WindowKind,
  type WindowLink,
  WindowState,
} from './window-parts.ts'

/** The records of one session so far. */
interface Session {
  readonly startMs: number
  /** The largest event time in it. */
  readonly lastMs: number
  readonly accumulator: unknown
  /** The last revision that was put out; -1 where there is none. */
  readonly revision: number
  /** Whether it has changed since that, and nothing was put out for it: a deployment that says 'final' came in between. */
  readonly isStale?: true
}

/** In the order of their starts. */
type Sessions = readonly Session[]

export function sessionWindows<T>(windows: SessionWindows, declaration: WindowDeclaration<T>): WindowKind<T, Sessions> {
  const { aggregator } = declaration
  return {
    encode: (sessions) =>
      sessions.map(({ startMs, lastMs, accumulator, revision, isStale }) => [
        startMs,
        lastMs,
        aggregator.encode(accumulator),
        revision,
        ...(isStale ? [1] : []),
      ]),
    decode: (stored) =>
      (stored as readonly (readonly [number, number, StateValue, number, 1?])[]).map((session) => {
        const [startMs, lastMs, stored, revision, stale] = session
        const accumulator = aggregator.decode(stored)
        return { startMs, lastMs, accumulator, revision, ...(stale && { isStale: true }) }
      }),
    link: (parts) => new SessionLink(windows, declaration, parts),
  }
}

const none: Sessions = []

const putOutOf = ({ startMs, lastMs, accumulator, revision }: Session): Session => {
  return { startMs, lastMs, accumulator, revision: revision + 1 }
}

class SessionLink<T> implements WindowLink<T> {
  readonly #windows: SessionWindows
  readonly #declaration: WindowDeclaration<T>
  readonly #parts: LinkedParts<T>
  readonly #state: WindowState<Sessions>

  constructor(windows: SessionWindows, declaration: WindowDeclaration<T>, parts: LinkedParts<T>) {
    this.#windows = windows
    this.#declaration = declaration
    this.#parts = parts
    this.#state = new WindowState(declaration.name, parts.context)
  }

  readonly record = (value: T, record: RecordInfo): void => {
    const { ownMarkMs, watermarkMs } = this.#parts.context.times()
    const timeMs = record.eventTimeMs
    const endMs = this.#windows.endOf(timeMs)
    if (endMs + this.#windows.graceMs <= Math.max(ownMarkMs, watermarkMs)) {
      this.#parts.late(value, record)
      return
    }
    const sessions = this.#state.get() ?? none
    const isTouched = (session: Session): boolean =>
      session.startMs < endMs && timeMs < this.#windows.endOf(session.lastMs)
    const touched = sessions.filter(isTouched)
    const extended = this.#putOut(this.#extended(touched, value, record), watermarkMs)
    const after = touched.length === 0 ? [...sessions] : sessions.filter((session) => !isTouched(session))
    const place = after.findIndex(({ startMs }) => startMs > extended.startMs)
    after.splice(place < 0 ? after.length : place, 0, extended)
    this.#state.set(after)
    this.#state.wakeBy(this.#dueAt(extended))
  }

  fire(timeMs: number, isQuiet: boolean): void {
    const sessions = this.#state.get()
    if (sessions === undefined) return
    const kept: Session[] = []
    const due = sessions.filter((session) => this.#isToPutOut(session) && this.#dueAt(session) <= timeMs)
    for (const session of due) {
      if (!isQuiet) this.#emit(session, session.revision + 1, this.#windows.settledAt(session.lastMs) <= timeMs)
    }
    for (const session of sessions) {
      if (this.#windows.settledAt(session.lastMs) <= timeMs) continue
      kept.push(due.includes(session) ? putOutOf(session) : session)
    }
    if (kept.length === 0) {
      this.#state.clear()
      return
    }
    this.#state.set(kept)
    this.#state.wakeBy(this.#nextDue(kept))
  }

  /** The one session that the record makes of those it touches; what was put out of them is taken back. */
  #extended(touched: Sessions, value: T, record: RecordInfo): Session {
    const { aggregator } = this.#declaration
    const timeMs = record.eventTimeMs
    let startMs = timeMs
    let lastMs = timeMs
    let accumulator: unknown
    for (const [i, session] of touched.entries()) {
      startMs = Math.min(startMs, session.startMs)
      lastMs = Math.max(lastMs, session.lastMs)
      accumulator = i === 0 ? session.accumulator : aggregator.merge(accumulator, session.accumulator)
    }
    let revision = -1
    for (const session of touched) {
      if (session.startMs === startMs && this.#windows.endOf(session.lastMs) === this.#windows.endOf(lastMs)) {
        revision = session.revision
      } else if (session.revision >= 0) {
        this.#emit(session, session.revision + 1, true, true)
      }
    }
    const before = touched.length === 0 ? aggregator.init() : accumulator
    return { startMs, lastMs, accumulator: aggregator.add(before, value, record), revision }
  }

  /** Puts a session out that a record has changed, where it is time for that. */
  #putOut(session: Session, watermarkMs: number): Session {
    const { emit } = this.#declaration
    const isClosed = this.#windows.endOf(session.lastMs) <= watermarkMs
    if (emit === 'final') return session.revision < 0 ? session : { ...session, isStale: true }
    // What a deployment with 'on-update' has put out of an open session goes on being revised.
    if (emit === 'on-close' && !isClosed && session.revision < 0) return session
    const after = putOutOf(session)
    this.#emit(after, after.revision, false)
    return after
  }

  #emit(session: Session, revision: number, isFinal: boolean, isRetracted = false): void {
    const { startMs, lastMs, accumulator } = session
    const window = { startMs, endMs: this.#windows.endOf(lastMs) }
    const value = this.#declaration.aggregator.result(accumulator)
    emitResult(this.#parts, { window, revision, isFinal, isRetracted, value })
  }

  /** With 'on-update' only what a deployment with another emission has gathered. */
  #isToPutOut({ revision, isStale }: Session): boolean {
    return this.#declaration.emit === 'final' || revision < 0 || isStale === true
  }

  /** When the session is to be put out, or else to be forgotten. */
  #dueAt(session: Session): number {
    const isToClose = this.#declaration.emit !== 'final' && this.#isToPutOut(session)
    return isToClose ? this.#windows.endOf(session.lastMs) : this.#windows.settledAt(session.lastMs)
  }

  /** The next one to put out; where all were, the time by which all are to be forgotten. */
  #nextDue(sessions: Sessions): number {
    const waiting = sessions.filter((session) => this.#isToPutOut(session)).map((session) => this.#dueAt(session))
    if (waiting.length > 0) return Math.min(...waiting)
    return Math.max(...sessions.map((session) => this.#dueAt(session)))
  }
}
