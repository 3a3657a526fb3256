/**
 * Event time extractors. The unit is always said, and a value that is plausible only in another unit is refused:
 * seconds read as milliseconds would land in January 1970 in silence.
 */
import { ConfigurationError, TerminalError } from '../core/errors.ts'

/** Where the event time of a value is, as {@link epochMs}, {@link epochSeconds} and {@link isoTime} say it. */
export interface EventTime<T> {
  readonly unit: 'epochMs' | 'epochSeconds' | 'isoTime'
  /**
   * Gives whole ms since 1970 UTC; throws a {@link TerminalError} where there is none. Where it gives anything else, such as NaN or
   * a time that no date can have, the record is a dead letter (`event-time-unreadable`).
   */
  extract(value: T): number
}

/** The times that an extractor believes. */
export interface PlausibleRange {
  /** ISO date from which on times are believed. @default '1980-01-01' */
  readonly from?: string
  /** ISO date before which times are believed. @default '2200-01-01' */
  readonly before?: string
}

const show = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** For what is no time at all; a time that is one and lies far off is implausible. */
const unreadable = (value: unknown, problem: string): TerminalError =>
  new TerminalError(`the event time ${show(value)} ${problem}`, { code: 'event-time-unreadable' })

/** As far from 1970 as a date can be, in ms. */
const farthestMs = 8_640_000_000_000_000

/**
 * What an extractor gave. Throws a {@link TerminalError} `event-time-unreadable` for all but whole ms that a date can have: a mark or a window
 * that anything else got into would hold up its shard for ever.
 */
export function checkedEventTime(time: unknown): number {
  if (Number.isInteger(time) && Math.abs(time as number) <= farthestMs) return time as number
  throw unreadable(time, 'is no time: extract() is to give whole milliseconds since 1970 UTC, as far as dates go')
}

function checkRead(extractor: EventTime<unknown>['unit'], read: unknown): void {
  if (typeof read === 'function') return
  throw new ConfigurationError(
    `${extractor} was given ${show(read)}: give a function that takes the time from a value, such as ${extractor}((booking) => booking.bookedAt).`,
  )
}

function boundary(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  // Date.parse takes February 30 for March 2.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text))
    throw new ConfigurationError(`"${text}" is not a date: write it as yyyy-mm-dd.`)
  return ms
}

/** Builds the check that every extractor ends with: a finite time inside the believed range. */
function believed(range: PlausibleRange): (ms: number, value: unknown) => number {
  const from = range.from ?? '1980-01-01'
  const before = range.before ?? '2200-01-01'
  const fromMs = boundary(from)
  const beforeMs = boundary(before)
  if (fromMs >= beforeMs) throw new ConfigurationError(`no time is both from ${from} on and before ${before}.`)
  return (ms, value) => {
    if (ms >= fromMs && ms < beforeMs) return ms
    const hint = ms < fromMs ? ' (a larger unit, or seconds read as ms?)' : ' (a smaller unit, or ms read as seconds?)'
    throw new TerminalError(`the event time ${show(value)} is not between ${from} and ${before}${hint}`, {
      code: 'event-time-implausible',
    })
  }
}

function numeric<T>(
  unit: 'epochMs' | 'epochSeconds',
  unitMs: number,
  read: (value: T) => number | undefined | null,
  range: PlausibleRange,
): EventTime<T> {
  checkRead(unit, read)
  const believe = believed(range)
  return {
    unit,
    extract(value) {
      const time = read(value)
      if (time === undefined || time === null)
        throw new TerminalError('the record has no event time', { code: 'event-time-missing' })
      if (!Number.isFinite(time)) throw unreadable(time, 'is not a finite number')
      const ms = believe(time * unitMs, time)
      // Cut, unless a whole number of ms is only a hair off: 1671562498.449 s times 1,000 is not quite 1671562498449.
      const nearest = Math.round(ms)
      return Math.abs(ms - nearest) <= Math.abs(ms) * Number.EPSILON ? nearest : Math.floor(ms)
    },
  }
}

/**
 * Event time in milliseconds since 1970 UTC; fractions are cut off.
 *
 * @example
 * eventTime: epochMs((booking) => booking.bookedAt)
 */
export function epochMs<T>(read: (value: T) => number | undefined | null, range: PlausibleRange = {}): EventTime<T> {
  return numeric('epochMs', 1, read, range)
}

/**
 * Event time in seconds since 1970 UTC, with or without a fraction; kept to the millisecond.
 *
 * @example
 * eventTime: epochSeconds((reading) => reading.at)
 */
export function epochSeconds<T>(
  read: (value: T) => number | undefined | null,
  range: PlausibleRange = {},
): EventTime<T> {
  return numeric('epochSeconds', 1_000, read, range)
}

export interface IsoTimeOptions extends PlausibleRange {
  /**
   * What a time without a zone means: `refuse` makes the record a dead letter, `utc` reads the wall time as UTC. The
   * machine's own zone is never used. @default 'refuse'
   */
  readonly withoutZone?: 'refuse' | 'utc'
}

const isoPattern =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?$/

function offsetMs(zone: string): number {
  if (zone === 'Z' || zone === 'z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = zone.length > 3 ? Number(zone.slice(-2)) : 0
  if (hours > 23 || minutes > 59) return Number.NaN
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** The instant that ISO text names, or NaN where it names none (February 30, hour 25). */
function isoInstant(match: RegExpExecArray, zone: string): number {
  const [year, month, day, hour, minute] = match.slice(1, 6).map(Number) as [number, number, number, number, number]
  const second = Number(match[6] ?? 0)
  const fraction = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'))
  if (hour > 23 || minute > 59 || second > 59) return Number.NaN
  // Date.UTC would take the year 85 for 1985.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return exists ? date.setUTCHours(hour, minute, second, fraction) - offsetMs(zone) : Number.NaN
}

/**
 * Event time as ISO 8601 text with a zone, such as `2022-12-20T18:54:58.449Z` or `...+05:30`.
 *
 * @example
 * eventTime: isoTime((order) => order.createdAt)
 * eventTime: isoTime((flight) => flight.scheduled, { withoutZone: 'utc' })   // wall time, read as UTC
 */
export function isoTime<T>(read: (value: T) => string | undefined | null, options: IsoTimeOptions = {}): EventTime<T> {
  checkRead('isoTime', read)
  const believe = believed(options)
  return {
    unit: 'isoTime',
    extract(value) {
      const time = read(value)
      if (time === undefined || time === null)
        throw new TerminalError('the record has no event time', { code: 'event-time-missing' })
      const match = typeof time === 'string' ? isoPattern.exec(time) : null
      if (!match) throw unreadable(time, 'is not ISO 8601')
      const zone = match[8]
      if (!zone && options.withoutZone !== 'utc') {
        throw new TerminalError(
          `the event time ${show(time)} has no zone: send one, or declare isoTime(..., { withoutZone: 'utc' })`,
          { code: 'event-time-without-zone' },
        )
      }
      const ms = isoInstant(match, zone ?? 'Z')
      if (Number.isNaN(ms)) throw unreadable(time, 'names no instant: it has an impossible date, hour or zone')
      return believe(ms, time)
    },
  }
}
