import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { compareAirports } from '../../../bin/flights/airport-report.ts'
import type { AirportRow } from '../../../bin/flights/airports-json.ts'
import { type AirportTotals, batchAirports } from '../../../bin/flights/batch-airports.ts'
import { batchScan } from '../../../bin/flights/batch-scan.ts'
import { parseCsv } from '../../../bin/flights/csv.ts'
import type { FlightRow } from '../../../bin/flights/data-set.ts'
import { inputRecords } from '../../../bin/flights/input.ts'
import { OutputReader } from '../../../bin/flights/read-outputs.ts'
import { compare } from '../../../bin/flights/report.ts'
import {
  flights,
  flightsApp,
  flightsClean,
  flightsRejected,
  hourlyDelays,
  lateFlights,
} from '../../../functions/flights/topology.ts'
import { days } from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

const airports = parseCsv(
  readFileSync('node_modules/vega-datasets/data/airports.csv', 'utf8'),
) as unknown as readonly AirportRow[]

const airportCode = fc.oneof(
  fc.constantFrom(...airports.map(({ iata }) => iata)),
  fc.constantFrom('QQQ', 'toString', '?'),
)
const minute = fc.date({ min: new Date('2001-01-01'), max: new Date('2001-12-31'), noInvalidDate: true })
const row = fc.record({
  scheduled: minute.map((date) => `${date.toISOString().slice(0, 16)}:00`),
  delayMinutes: fc.oneof(fc.integer({ min: -90, max: 1_500 }), fc.constantFrom(-61, -60, 1_440, 1_441)),
  distanceMiles: fc.nat(5_000),
  origin: airportCode,
  destination: airportCode,
})

const bytesOf = (values: readonly unknown[]) => values.map((value) => ({ data: Buffer.from(JSON.stringify(value)) }))

async function airportOf(driver: TestDriver, code: string): Promise<AirportTotals> {
  const stored = await driver.stateOf('by-origin', code)
  const named = Object.entries(stored).map(([name, value]) => [name.replace('airport.', ''), value])
  const { recent, flights: count, delayed = 0, worst } = Object.fromEntries(named)
  return { recent, flights: count, delayed, worst }
}

test('the topology and the batch scan agree on any flights and planted records, outcome by outcome', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 60 }), fc.nat(30), async (rows, planted) => {
      const file: readonly FlightRow[] = rows.map((columns, index) => ({ row: index, ...columns }))
      const input = inputRecords(file, planted)
      const driver = new TestDriver(flightsApp)
      await driver.sendRaw(
        flights,
        input.map(({ data }) => data),
      )
      const reader = new OutputReader()
      reader.take('flights-clean', bytesOf(driver.received(flightsClean)))
      reader.take('flights-rejected', bytesOf(driver.received(flightsRejected)))
      reader.take('dead letters', bytesOf(driver.deadLetters))
      const comparison = compare(reader.outcomes, batchScan(input, file, airports))
      expect(comparison.differences).toEqual([])
      expect(reader.outcomes.total).toBe(rows.length + planted)
      // WHEN every window has closed
      await driver.advanceEventTime(days(800))
      reader.take('hourly-delays', bytesOf(driver.received(hourlyDelays)))
      reader.take('late-flights', bytesOf(driver.received(lateFlights)))
      const batch = batchAirports([input.map(({ data }) => data)], airports)
      const states = new Map<string, AirportTotals>()
      for (const code of batch.airports.keys()) states.set(code, await airportOf(driver, code))
      expect(compareAirports(reader.hours, states, batch).differences).toEqual([])
    }),
    { numRuns: 50 },
  )
})
