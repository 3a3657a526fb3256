import type { FlightReport } from '../../functions/flights/schema.ts'
import {
  flights,
  flightsApp,
  flightsClean,
  flightsRejected,
  hourlyDelays,
  lateFlights,
} from '../../functions/flights/topology.ts'
import { hours, plan, streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts, TestDriver } from '../../lib/testing/index.ts'

const report: FlightReport = {
  flight: 'row-0',
  scheduled: '2001-01-01T00:01:00',
  delayMinutes: 33,
  distanceMiles: 2_176,
  origin: 'LAS',
  destination: 'PHL',
}

test('a flight gets its event time from the wall time and both its airports', async () => {
  const driver = new TestDriver(flightsApp)
  await driver.send(flights, [report])
  expect(driver.received(flightsClean)).toEqual([
    {
      flight: 'row-0',
      eventTime: '2001-01-01T00:01:00.000Z',
      delayMinutes: 33,
      distanceMiles: 2_176,
      origin: { code: 'LAS', name: 'McCarran International', city: 'Las Vegas', state: 'NV' },
      destination: { code: 'PHL', name: 'Philadelphia Intl', city: 'Philadelphia', state: 'PA' },
    },
  ])
  expect(driver.received(flightsRejected)).toEqual([])
  expect(driver.deadLetters).toEqual([])
})

test.each([
  [{ delayMinutes: -61 }, 'delay-too-low', 'the delay of -61 minutes is below -60'],
  [{ delayMinutes: 1_441 }, 'delay-too-high', 'the delay of 1441 minutes is above 1440'],
  [{ origin: 'QQQ' }, 'unknown-origin', 'no airport has the code QQQ'],
  [{ destination: '__proto__' }, 'unknown-destination', 'no airport has the code __proto__'],
])('%j is rejected with its reason and its report', async (changes, reason, message) => {
  const driver = new TestDriver(flightsApp)
  const wrong = { ...report, ...changes }
  await driver.send(flights, [wrong, report])
  expect(driver.received(flightsRejected)).toEqual([{ flight: 'row-0', reason, message, report: wrong }])
  expect(driver.received(flightsClean)).toHaveLength(1)
})

test.each([-60, 1_440])('a delay of %d minutes is within the bounds', async (delayMinutes) => {
  const driver = new TestDriver(flightsApp)
  await driver.send(flights, [{ ...report, delayMinutes }])
  expect(driver.received(flightsClean)).toHaveLength(1)
})

const text = JSON.stringify(report)

test.each([
  ['cut JSON', text.slice(0, -20), 'not-json'],
  ['a wrong type', text.replace('33', '"33"'), 'invalid'],
  ['a missing field', text.replace('"origin"', '"from"'), 'invalid'],
  ['a fraction of a minute', text.replace('33', '33.5'), 'invalid'],
  ['invalid UTF-8', Buffer.from(text.replace('PHL', 'PH\xff'), 'latin1'), 'not-utf8'],
  ['no date', text.replace('2001-01-01T00:01:00', 'yesterday'), 'event-time-unreadable'],
  ['a date that does not exist', text.replace('2001-01-01', '2001-02-30'), 'event-time-unreadable'],
  ['nothing', '', 'empty'],
])('%s is a dead letter, and its neighbours go on', async (_, payload, code) => {
  const ports = memoryPorts()
  const handler = streamHandler(flightsApp, { ports })
  const answer = await handler(kinesisEvent([report, payload, { ...report, flight: 'row-1' }]), lambdaContext())
  expect(answer).toEqual({ batchItemFailures: [] })
  expect(ports.deadLettered.map(({ reason }) => reason.code)).toEqual([code])
  expect(Buffer.from(ports.deadLettered[0]?.payload ?? '', 'base64')).toEqual(Buffer.from(payload))
  expect(ports.received(flightsClean).map(({ flight }) => flight)).toEqual(['row-0', 'row-1'])
})

test('reports and airports are one stage each, and the first reads one table', () => {
  const { stages } = plan(flightsApp)
  expect(stages.map(({ name, sinks, tables }) => ({ name, sinks, tables: tables.map((table) => table.name) }))).toEqual(
    [
      { name: 'flights', sinks: ['flights-clean', 'flights-rejected'], tables: ['airports'] },
      { name: 'by-origin', sinks: ['hourly-delays', 'late-flights'], tables: [] },
    ],
  )
})

const departures = (...list: readonly (readonly [scheduled: string, delayMinutes: number])[]): FlightReport[] =>
  list.map(([time, delayMinutes], at) => ({
    ...report,
    ...{ flight: `row-${at}`, scheduled: `2001-01-01T${time}:00`, delayMinutes },
  }))

test('an airport keeps its last five departures, its counts and its worst delay', async () => {
  const driver = new TestDriver(flightsApp)
  const delays = [5, 90, 14, 15, 90, 0]
  await driver.send(flights, departures(...delays.map((delay) => ['10:00', delay] as const)))
  const departure = (at: number) => ({
    ...{ flight: `row-${at}`, scheduled: '2001-01-01T10:00:00.000Z', delayMinutes: delays[at] },
    ...{ origin: 'LAS', destination: 'PHL' },
  })
  expect(await driver.stateOf('by-origin', 'LAS')).toMatchObject({
    'airport.recent': [1, 2, 3, 4, 5].map(departure),
    'airport.flights': 6,
    'airport.delayed': 3,
    'airport.worst': departure(1),
  })
})

test('an hour closes an hour behind the latest schedule, is revised for one more, and what comes then is late', async () => {
  const driver = new TestDriver(flightsApp)
  await driver.send(flights, departures(['10:10', 10], ['10:50', 30], ['11:59', 0]))
  await driver.advanceEventTime(hours(0))
  expect(driver.received(hourlyDelays)).toEqual([])
  // WHEN the latest schedule is an hour behind the end
  await driver.send(flights, departures(['12:00', 0]))
  await driver.advanceEventTime(hours(0))
  const first = { airport: 'LAS', hour: '2001-01-01T10:00:00.000Z', revision: 0 }
  expect(driver.received(hourlyDelays)).toEqual([
    { ...first, flights: 2, meanMinutes: 20, maxMinutes: 30, p90Minutes: 30 },
  ])
  // WHEN one more comes within the grace, and one behind it
  await driver.send(flights, departures(['10:20', 200], ['13:00', 0], ['10:30', 150]))
  const ofTheHour = driver.received(hourlyDelays).filter(({ hour }) => hour === first.hour)
  expect(ofTheHour).toEqual([
    expect.objectContaining({ ...first, flights: 2 }),
    { ...first, revision: 1, flights: 3, meanMinutes: 80, maxMinutes: 200, p90Minutes: 200 },
  ])
  expect(driver.received(lateFlights).map(({ delayMinutes }) => delayMinutes)).toEqual([150])
})
