import type { AirportRow } from '../../../bin/flights/airports-json.ts'
import { batchScan } from '../../../bin/flights/batch-scan.ts'
import type { FlightRow } from '../../../bin/flights/data-set.ts'
import { inputRecords } from '../../../bin/flights/input.ts'

const airport = (iata: string, city: string): AirportRow => ({
  iata,
  name: `${city} Intl`,
  city,
  state: 'XX',
  country: 'USA',
})
const airports = [airport('LAS', 'Las Vegas'), airport('PHL', 'Philadelphia')]

const flight = (row: number, changes: Partial<FlightRow> = {}): FlightRow => ({
  row,
  scheduled: '2001-01-01T10:00:00',
  delayMinutes: 5,
  distanceMiles: 100,
  origin: 'LAS',
  destination: 'PHL',
  ...changes,
})

test('delays outside -60 to 1,440 minutes and unknown airports are rejected; the bounds themselves are clean', () => {
  const flights = [
    flight(0, { delayMinutes: -60 }),
    flight(1, { delayMinutes: -61 }),
    flight(2, { delayMinutes: 1_440 }),
    flight(3, { delayMinutes: 1_441 }),
    flight(4, { origin: 'QQQ' }),
    flight(5, { destination: 'QQQ' }),
  ]
  const outcomes = batchScan(inputRecords(flights, 0), flights, airports)
  expect([...outcomes.of('clean').keys()].sort()).toEqual(['row-0', 'row-2'])
  expect(outcomes.countsByReason('rejected')).toEqual(
    new Map([
      ['delay-too-high', 1],
      ['delay-too-low', 1],
      ['unknown-destination', 1],
      ['unknown-origin', 1],
    ]),
  )
  expect(outcomes.of('clean').get('row-0')?.content).toBe(
    '2001-01-01T10:00:00.000Z|-60|100|LAS|Las Vegas Intl|Las Vegas|XX|PHL|Philadelphia Intl|Philadelphia|XX',
  )
})

test('planted records are dead letters by code, unknown airports rejected', () => {
  const flights = Array.from({ length: 50 }, (_, row) => flight(row))
  const outcomes = batchScan(inputRecords(flights, 16), flights, airports)
  expect(outcomes.total).toBe(66)
  expect(outcomes.of('clean').size).toBe(50)
  expect(outcomes.of('rejected').size).toBe(4)
  expect(outcomes.countsByReason('dead letter')).toEqual(
    new Map([
      ['invalid', 4],
      ['not-json', 4],
      ['not-utf8', 4],
    ]),
  )
})

test('an input that is not the file is refused', () => {
  const input = inputRecords([flight(0, { delayMinutes: 6 })], 0)
  expect(() => batchScan(input, [flight(0)], airports)).toThrow('the report row-0 differs from row 0 of the file')
  expect(() => batchScan(input, [flight(0, { delayMinutes: 6 }), flight(1)], airports)).toThrow('1 of 2 rows')
})
