import { batchAirports } from '../../../bin/flights/batch-airports.ts'

const airport = (iata: string) => ({ iata, name: iata, city: iata, state: 'NA', country: 'USA' })
const airports = ['LAS', 'PHL'].map(airport)

const reportOf = (flight: string, scheduled: string, delayMinutes = 0, origin = 'LAS') => ({
  ...{ flight, scheduled: `2001-01-01T${scheduled}:00`, delayMinutes, distanceMiles: 100 },
  ...{ origin, destination: 'PHL' },
})
const report = (...fields: Parameters<typeof reportOf>) => Buffer.from(JSON.stringify(reportOf(...fields)))

test('an hour has count, mean, maximum and ninth decile of its flights, whatever their order', () => {
  const delays = [40, -5, 12, 3, 0, 7, 9, 1, 2, 90]
  const log = [delays.map((delay, at) => report(`f-${at}`, `10:0${at}`, delay))]
  expect([...batchAirports(log, airports).hours]).toEqual([
    ['LAS 2001-01-01T10:00:00.000Z', { flights: 10, meanMinutes: 15.9, maxMinutes: 90, p90Minutes: 40 }],
  ])
})

test('a flight is late from two hours after the end of its hour on, by the latest schedule that its own shard had held', () => {
  const shard = [
    report('first', '10:30'),
    report('moves', '12:59'),
    report('in-time', '10:59'),
    report('moves-on', '13:00'),
    report('late', '10:59'),
    report('next-hour', '11:00'),
  ]
  const other = [report('other-shard', '10:00', 0, 'PHL')]
  const { late, hours } = batchAirports([shard, other], airports)
  expect([...late]).toEqual([['late', 'LAS 2001-01-01T10:00:00.000Z']])
  expect(hours.get('LAS 2001-01-01T10:00:00.000Z')?.flights).toBe(2)
  expect(hours.get('PHL 2001-01-01T10:00:00.000Z')?.flights).toBe(1)
})

test('a rejected report moves the time of its shard, one that cannot be read does not', () => {
  const rejected = report('rejected', '13:00', 2_000)
  const unreadable = Buffer.from(report('cut', '13:00').subarray(0, -5))
  const late = (first: Buffer) => batchAirports([[first, report('f', '10:00')]], airports).late.size
  expect([late(rejected), late(unreadable)]).toEqual([1, 0])
})

test('an airport has its last five departures, its counts, and the first of its worst delays; late flights count', () => {
  const log = [
    [report('worst', '10:00', 60), report('equal', '15:00', 60)],
    [],
    [...Array.from({ length: 4 }, (_, at) => report(`f-${at}`, '10:10', at + 12)), report('p', '10:00', 1, 'PHL')],
  ].flat()
  const states = batchAirports([log], airports).airports
  const state = states.get('LAS')
  expect(state?.recent.map(({ flight }) => flight)).toEqual(['equal', 'f-0', 'f-1', 'f-2', 'f-3'])
  expect(state).toMatchObject({ flights: 6, delayed: 3, worst: { flight: 'worst', delayMinutes: 60 } })
  expect(states.get('PHL')?.delayed).toBe(0)
})

test('records that are in the log twice are counted', () => {
  const twice = report('twice', '10:00')
  expect(batchAirports([[twice, report('once', '10:00'), twice]], airports).repeated).toBe(1)
})
