/** Days as people in one place have them, of 23, 24 or 25 hours. */
import { ConfigurationError } from '../../core/errors.ts'
import { type GraceOptions, graceOf, type Slice, type SlicedWindows, type WindowBounds } from './window.ts'
import { ZoneDays } from './zone-days.ts'

/**
 * The calendar days of an IANA time zone: a time `t` is in `[start of its day, start of the next one)`. A day begins at its
 * first midnight or, where a clock that is put forward leaves midnight out, with the first moment behind the gap.
 *
 *     Europe/Berlin      29 March 2026           30 March 2026
 *     local             |00:00  01:00 03:00 ... |00:00
 *     UTC               |23:00  00:00 01:00 ... |22:00        23 hours
 *
 * Days of a zone change where its rules are changed by law: what is open then keeps its bounds.
 *
 * Throws a {@link ConfigurationError} for a zone that is none, or where the grace is left out.
 *
 * @example
 * keyed.window(calendarDays('America/New_York', { grace: hours(1) }))
 */
export function calendarDays(zone: string, options: GraceOptions): SlicedWindows {
  const days = zoneDays(zone)
  const graceMs = graceOf('calendarDays', options)
  /** What was asked for last: records come mostly of one day. */
  let known: WindowBounds = { startMs: 0, endMs: 0 }
  const dayOf = (timeMs: number): WindowBounds => {
    if (timeMs < known.startMs || timeMs >= known.endMs) known = days.dayOf(timeMs)
    return known
  }
  const endOf = (startMs: number): number => dayOf(startMs).endMs
  return {
    kind: 'calendar-days',
    graceMs,
    label: `calendarDays(${zone})`,
    sharesSlices: false,
    sliceOf: (timeMs) => dayOf(timeMs).startMs,
    firstEndOf: endOf,
    lastEndOf: endOf,
    endBeyond: endOf,
    // What is open goes by its slices: they may be of rules that are the zone's no more.
    neededUntil: ({ fromEndMs }) => fromEndMs,
    startOf: (endMs, slices) => (slices.find(({ fromEndMs }) => fromEndMs === endMs) as Slice).startMs,
    endsOf: (slices, fromMs, throughMs) => endsOf(slices).filter((endMs) => endMs >= fromMs && endMs <= throughMs),
    nextEnd: (slices, afterMs) => endsOf(slices).find((endMs) => endMs > afterMs),
  }
}

/** The ends of the days that are open, ascending. */
const endsOf = (slices: readonly Slice[]): readonly number[] =>
  slices.map(({ fromEndMs }) => fromEndMs).sort((a, b) => a - b)

function zoneDays(zone: string): ZoneDays {
  try {
    return new ZoneDays(zone)
  } catch (refused) {
    if (!(refused instanceof RangeError) && !(refused instanceof TypeError)) throw refused
    throw new ConfigurationError(
      `calendarDays: ${JSON.stringify(zone)} is no time zone: give a name of the IANA database, such as 'Europe/Berlin'.`,
    )
  }
}
