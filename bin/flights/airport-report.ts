/** Compares hours, late flights and states of airports with the batch computation, for people and as figures. */
import type { HourlyDelays } from '../../functions/flights/schema.ts'
import { grouped, table } from '../../lib/local/display/run-display.ts'
import { counted } from '../cli/words.ts'
import { type AirportTotals, type BatchTotals, type Departure, type HourTotals, hourKey } from './batch-airports.ts'
import type { HourOutputs } from './hour-outputs.ts'
import type { Comparison } from './report.ts'

/** Compares hour by hour, flight by flight and airport by airport, not only the counts. */
export function compareAirports(
  outputs: Pick<HourOutputs, 'hours' | 'late' | 'contradictions'>,
  states: ReadonlyMap<string, AirportTotals | undefined>,
  expected: BatchTotals,
): Comparison {
  const { hours, late } = outputs
  const [foundHours, expectedHours] = [[...hours.values()], [...expected.hours.values()]]
  const [foundStates, expectedStates] = [[...states.values()], [...expected.airports.values()]]
  const row = (label: string, depth: 0 | 1, found: number, other: number) => ({ label, depth, found, expected: other })
  const rows = [
    row('hours of airports', 0, hours.size, expected.hours.size),
    row('flights in them', 1, sumOf(foundHours, flightsOf), sumOf(expectedHours, flightsOf)),
    row('late flights', 0, late.size, expected.late.size),
    row('states of airports', 0, states.size, expected.airports.size),
    row('flights counted', 1, sumOf(foundStates, flightsOf), sumOf(expectedStates, flightsOf)),
    row('flights delayed', 1, sumOf(foundStates, delayedOf), sumOf(expectedStates, delayedOf)),
  ]
  const differences = [
    ...outputs.contradictions,
    ...differing('hour', hours, expected.hours, sameHour),
    ...differing('late flight', late, expected.late, ({ origin, scheduled }, hour) => {
      return hourKey(origin, `${scheduled.slice(0, 13)}:00:00.000Z`) === hour
    }),
    ...differing('state of airport', states, expected.airports, sameState),
  ]
  return { rows, differences, isEqual: differences.length === 0 }
}

const flightsOf = (totals: { readonly flights: number } | undefined): number => totals?.flights ?? 0
const delayedOf = (totals: AirportTotals | undefined): number => totals?.delayed ?? 0
const sumOf = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((sum, one) => sum + of(one), 0)

const sameState = (found: AirportTotals | undefined, expected: AirportTotals): boolean =>
  found !== undefined && stateText(found) === stateText(expected)

const stateText = ({ recent, flights, delayed, worst }: AirportTotals): string =>
  [flights, delayed, departureText(worst), ...recent.map(departureText)].join('|')

const departureText = ({ flight, scheduled, delayMinutes, origin, destination }: Departure): string =>
  [flight, scheduled, delayMinutes, origin, destination].join(' ')

/**
 * Counts, means and maxima are equal to the last bit. The ninth decile is within two thousandths before it is rounded, so up to 250
 * minutes it is the same whole minute.
 */
function sameHour(found: HourTotals, expected: HourTotals): boolean {
  return (
    found.flights === expected.flights &&
    found.meanMinutes === expected.meanMinutes &&
    found.maxMinutes === expected.maxMinutes &&
    Math.abs(found.p90Minutes - expected.p90Minutes) <= Math.floor(Math.abs(expected.p90Minutes) / 500 + 0.5)
  )
}

function differing<F, E>(
  what: string,
  found: ReadonlyMap<string, F>,
  expected: ReadonlyMap<string, E>,
  isSame: (found: F, expected: E) => boolean,
): string[] {
  const differences: string[] = []
  for (const [key, other] of expected) {
    const one = found.get(key)
    if (one === undefined) differences.push(`${what} ${key} is missing: ${JSON.stringify(other)}`)
    else if (!isSame(one, other)) {
      differences.push(`${what} ${key} is ${JSON.stringify(one)} and should be ${JSON.stringify(other)}`)
    }
  }
  for (const key of found.keys()) if (!expected.has(key)) differences.push(`${what} ${key} should not be`)
  return differences
}

const minutes = (value: number): string => value.toFixed(1)

const mostShown = 8
const shownAtEachEnd = 3

/** The revisions of one hour, the last of which is what counts; of many the first and the last ones. */
export function revisionLines(revisions: readonly HourlyDelays[]): readonly string[] {
  const rows = revisions.map(({ revision, flights, meanMinutes, maxMinutes, p90Minutes }) => [
    `  ${revision === 0 ? 'at close' : `revision ${revision}`}`,
    ...[grouped(flights), minutes(meanMinutes), grouped(maxMinutes), grouped(p90Minutes)],
  ])
  const shown =
    rows.length <= mostShown ? rows : [...rows.slice(0, shownAtEachEnd), ['  …'], ...rows.slice(-shownAtEachEnd)]
  return table([['', 'flights', 'mean', 'max', 'p90'], ...shown], [false, true, true, true, true])
}

/** What the hours of all airports have come to, for the display while they run. */
export function hoursNote({ hours, revised, late, newest }: HourOutputs): string {
  const last = newest && `; last: ${newest.airport} ${newest.hour.slice(0, 13)}h, ${hourText(newest)}`
  const counts = `${grouped(hours.size)} closed, ${counted(revised, 'revision')}, ${counted(late.size, 'flight')} too late`
  return `hours: ${counts}${last ?? ''}`
}

const hourText = ({ flights, meanMinutes, maxMinutes, p90Minutes }: HourTotals): string =>
  `${flights === 1 ? '1 flight' : `${grouped(flights)} flights`}, mean ${minutes(meanMinutes)} min, max ${maxMinutes}, p90 ${p90Minutes}`
