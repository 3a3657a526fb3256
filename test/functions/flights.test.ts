import type { FlightReport } from '../../functions/flights/schema.ts'
import { flights, flightsApp, flightsClean, flightsRejected } from '../../functions/flights/topology.ts'
import { plan, streamHandler } from '../../lib/index.ts'
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

test('the topology is one stage that reads one table', () => {
  const { stages } = plan(flightsApp)
  expect(stages.map(({ name, sinks, tables }) => ({ name, sinks, tables: tables.map((table) => table.name) }))).toEqual(
    [{ name: 'flights', sinks: ['flights-clean', 'flights-rejected'], tables: ['airports'] }],
  )
})
