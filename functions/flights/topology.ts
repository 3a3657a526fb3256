/** Validates flight reports, takes the scheduled wall time as event time and joins both airports. */
import { isoTime, otherwise, staticTable, Topology } from '../../lib/index.ts'
import airportRows from './airports.json' with { type: 'json' }
import { type Airport, type CleanFlight, FlightReport, type RejectedFlight, type RejectionReason } from './schema.ts'

/** Delays outside these bounds are errors of the report, in minutes. */
const lowestDelay = -60
const highestDelay = 1_440

export const flightsApp = new Topology('flights-app')

export const flights = flightsApp.source('flights', FlightReport, {
  // The reports have no zone, so the wall time is read as UTC: hours of different airports are not one instant.
  eventTime: isoTime((report: FlightReport) => report.scheduled, { withoutZone: 'utc' }),
})
export const flightsClean = flightsApp.sink<CleanFlight>('flights-clean', { key: ({ flight }) => flight })
export const flightsRejected = flightsApp.sink<RejectedFlight>('flights-rejected', { key: ({ flight }) => flight })

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

function airportOf([code = '', name = '', city = '', state = '']: readonly string[]): Airport {
  return { code, name, city, state }
}

function reject(report: FlightReport, reason: RejectionReason, message: string): RejectedFlight {
  return { flight: report.flight, reason, message, report }
}

function isRejected(result: CleanFlight | RejectedFlight): result is RejectedFlight {
  return 'reason' in result
}
