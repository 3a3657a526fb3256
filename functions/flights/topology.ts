/**
 * Validates flight reports, takes the scheduled wall time as event time and joins both airports. Of each origin it keeps what left
 * there last, counts and the worst delay, and works out the delays of every hour.
 */
import {
  count,
  hours,
  isoTime,
  listState,
  max,
  mean,
  otherwise,
  quantile,
  reducingState,
  staticTable,
  Topology,
  tumbling,
} from '../../lib/index.ts'
// As ES modules import JSON; in a CommonJS project it is `from './airports.json'` alone.
import airportRows from './airports.json' with { type: 'json' }
import {
  type Airport,
  type CleanFlight,
  type Departure,
  FlightReport,
  type HourlyDelays,
  type RejectedFlight,
  type RejectionReason,
} from './schema.ts'

/** Delays outside these bounds are errors of the report, in minutes. */
const lowestDelay = -60
const highestDelay = 1_440

export const flightsApp = new Topology('flights-app')

export const flights = flightsApp.source('flights', FlightReport, {
  // The reports have no zone, so the wall time is read as UTC: hours of different airports are not one instant.
  eventTime: isoTime((report: FlightReport) => report.scheduled, { withoutZone: 'utc' }),
  // A flight is reported when it has left, and some leave early: a fifth of the reports trail the newest time by more than an hour.
  outOfOrderness: hours(1),
})
export const flightsClean = flightsApp.sink<CleanFlight>('flights-clean', { key: ({ flight }) => flight })
export const flightsRejected = flightsApp.sink<RejectedFlight>('flights-rejected', { key: ({ flight }) => flight })
/** Revisions of an hour replace one another, so all of an airport's hours stay in order. */
export const hourlyDelays = flightsApp.sink<HourlyDelays>('hourly-delays', { key: ({ airport }) => airport })
/** Departures whose hour was over, its grace too, when they were reported. */
export const lateFlights = flightsApp.sink<Departure>('late-flights', { key: ({ flight }) => flight })

const airports = staticTable('airports', () => new Map(airportRows.map(airportOf).map((row) => [row.code, row])))

const { clean, rejected } = flights
  .enrich({ from: airports, key: (report) => report.origin, join: (report, origin) => ({ report, origin }) })
  .enrich({
    from: airports,
    key: ({ report }) => report.destination,
    join: (joined, destination) => ({ ...joined, destination }),
  })
  .map(({ report, origin, destination }, { eventTimeMs }): CleanFlight | RejectedFlight => {
    const { flight, delayMinutes, distanceMiles } = report
    if (delayMinutes < lowestDelay) {
      return reject(report, 'delay-too-low', `the delay of ${delayMinutes} minutes is below ${lowestDelay}`)
    }
    if (delayMinutes > highestDelay) {
      return reject(report, 'delay-too-high', `the delay of ${delayMinutes} minutes is above ${highestDelay}`)
    }
    if (!origin) return reject(report, 'unknown-origin', `no airport has the code ${report.origin}`)
    if (!destination) return reject(report, 'unknown-destination', `no airport has the code ${report.destination}`)
    return { flight, eventTime: new Date(eventTimeMs).toISOString(), delayMinutes, distanceMiles, origin, destination }
  })
  .branch({ rejected: isRejected, clean: otherwise })

clean.to(flightsClean)
rejected.to(flightsRejected)

/** A flight counts as delayed from this many minutes on, as the US Department of Transportation counts. */
const delayedMinutes = 15

const worse = (one: Departure, other: Departure): Departure => (other.delayMinutes > one.delayMinutes ? other : one)

/** What is kept of each airport: by these names readers of the table know it too. */
export const airportState = {
  /** In the order in which they were reported. */
  recent: listState<Departure>({ atMost: 5 }),
  flights: reducingState<number>((before, more) => before + more),
  delayed: reducingState<number>((before, more) => before + more),
  /** Of equal delays the one that was reported first. */
  worst: reducingState<Departure>(worse),
}

/** What goes to the stage behind the keyBy is small: all of it is written to its stream and read again. */
const byOrigin = clean
  .map(({ flight, eventTime, delayMinutes, origin, destination }): Departure => {
    return { flight, scheduled: eventTime, delayMinutes, origin: origin.code, destination: destination.code }
  })
  .keyBy('by-origin', ({ origin }) => origin, { slots: 16 })

byOrigin.process('airport', {
  state: airportState,
  step(departure, { state }) {
    state.recent.add(departure)
    state.flights.add(1)
    if (departure.delayMinutes >= delayedMinutes) state.delayed.add(1)
    state.worst.add(departure)
  },
})

const perHour = byOrigin.window(tumbling(hours(1), { grace: hours(1) })).aggregate(
  'delays',
  {
    flights: count(),
    meanMinutes: mean(({ delayMinutes }: Departure) => delayMinutes),
    maxMinutes: max(({ delayMinutes }: Departure) => delayMinutes),
    p90Minutes: quantile(0.9, ({ delayMinutes }: Departure) => delayMinutes, { relativeError: 0.002 }),
  },
  { emit: 'on-close' },
)

perHour.results
  .map(({ key, window, revision, value }): HourlyDelays => {
    const { p90Minutes, ...exact } = value
    // Delays are whole minutes, so within two thousandths the nearest one is exact up to 250.
    const rounded = { p90Minutes: Math.round(p90Minutes) }
    return { airport: key, hour: new Date(window.startMs).toISOString(), revision, ...exact, ...rounded }
  })
  .to(hourlyDelays)
perHour.late.to(lateFlights)

function airportOf([code = '', name = '', city = '', state = '']: readonly string[]): Airport {
  return { code, name, city, state }
}

function reject(report: FlightReport, reason: RejectionReason, message: string): RejectedFlight {
  return { flight: report.flight, reason, message, report }
}

function isRejected(result: CleanFlight | RejectedFlight): result is RejectedFlight {
  return 'reason' in result
}
