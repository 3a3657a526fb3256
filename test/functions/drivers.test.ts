import fc from 'fast-check'
import { type DriverEvent, driverEvents, driverStatus, driversApp } from '../../functions/drivers/topology.ts'
import { streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts, TestDriver } from '../../lib/testing/index.ts'

const noonMs = Date.UTC(2026, 2, 1, 12)
const minuteMs = 60_000
const pickUp = (atMs: number, passengers = 1): DriverEvent => ({ kind: 'picked-up', driver: 'ann', atMs, passengers })
const dropOff = (atMs: number, fareCents: number, passengers = 1): DriverEvent => ({
  kind: 'dropped-off',
  driver: 'ann',
  ...{ atMs, passengers, fareCents },
})
const move = (atMs: number, latitude: number): DriverEvent => ({
  kind: 'moved',
  driver: 'ann',
  ...{ atMs, latitude, longitude: 8.5 },
})

async function statusAfter(...events: readonly DriverEvent[]) {
  const driver = new TestDriver(driversApp)
  await driver.send(driverEvents, events)
  expect(driver.deadLetters).toEqual([])
  return driver.received(driverStatus).at(-1)
}

test('S4: position, load, earnings of this hour and the last update are kept of each driver', async () => {
  expect(
    await statusAfter(move(noonMs, 47.1), pickUp(noonMs + 1), pickUp(noonMs + 2, 2), dropOff(noonMs + 3, 1_850)),
  ).toEqual({
    driver: 'ann',
    position: { atMs: noonMs, latitude: 47.1, longitude: 8.5 },
    load: 2,
    earningsThisHour: { fromMs: noonMs, cents: 1_850 },
    updatedAtMs: noonMs + 3,
  })
})

test('earnings begin anew with the hour, and a fare of an hour that is over is not of this one', async () => {
  const status = await statusAfter(
    dropOff(noonMs + 59 * minuteMs, 1_000),
    dropOff(noonMs + 60 * minuteMs, 200),
    dropOff(noonMs + 58 * minuteMs, 5_000),
    dropOff(noonMs + 61 * minuteMs, 30),
  )
  expect(status?.earningsThisHour).toEqual({ fromMs: noonMs + 60 * minuteMs, cents: 230 })
})

test('a position that comes late moves nobody back', async () => {
  const status = await statusAfter(move(noonMs + 5, 47.2), move(noonMs, 47.1))
  expect(status).toMatchObject({ position: { latitude: 47.2 }, updatedAtMs: noonMs + 5 })
})

const fares = fc.array(
  fc.record({ driver: fc.constantFrom('ann', 'bea', 'cem'), cents: fc.integer({ min: 1, max: 99 }) }),
  {
    minLength: 1,
    maxLength: 20,
  },
)
const prefixes = fc.array(fc.nat(20), { minLength: 1, maxLength: 4 })

test('S4: replay any prefix any number of times, earnings do not change', async () => {
  await fc.assert(
    fc.asyncProperty(fares, prefixes, fc.boolean(), async (list, replays, isFreshFunction) => {
      const events = list.map(({ driver, cents }, i) => ({ ...dropOff(noonMs + i, cents), driver }))
      const ports = memoryPorts()
      let handler = streamHandler(driversApp, { ports })
      const frames: unknown[] = []
      const deliver = async (count: number): Promise<void> => {
        await handler(kinesisEvent(events.slice(0, count)), lambdaContext())
        frames.push(...ports.takeFrames('by-driver'))
        for (const frame of frames) expect(await handler(frame, lambdaContext())).toEqual({ batchItemFailures: [] })
      }
      await deliver(events.length)
      const { signal } = new AbortController()
      const kept = () => ports.state('by-driver')?.readKeys(['ann', 'bea', 'cem'], signal)
      const once = await kept()
      for (const { driver } of list) {
        const cents = list.reduce((sum, fare) => sum + (fare.driver === driver ? fare.cents : 0), 0)
        expect(once?.get(driver)?.states).toMatchObject({ 'driver.earnings': { fromMs: noonMs, cents } })
      }
      for (const count of replays) {
        // A cold start in between: nothing that is remembered in memory may be needed.
        if (isFreshFunction) handler = streamHandler(driversApp, { ports })
        await deliver(Math.min(count, events.length))
        expect(await kept()).toEqual(once)
      }
    }),
    { numRuns: 60 },
  )
})
