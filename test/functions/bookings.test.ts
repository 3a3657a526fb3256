import {
  type Booking,
  bookingRequests,
  bookingsApp,
  hotelBookings,
  lateBookings,
} from '../../functions/bookings/topology.ts'
import { minutes, streamHandler } from '../../lib/index.ts'
import { keyText } from '../../lib/state/key-encoding.ts'
import { kinesisEvent, lambdaContext, memoryPorts, TestDriver } from '../../lib/testing/index.ts'

const noonMs = Date.UTC(2026, 2, 2, 12)
let bookings = 0
const booking = (minute: number, price: number, more: Partial<Booking> = {}): Booking => ({
  ...{ bookingId: `b-${++bookings}`, hotelId: 'h-1', status: 'confirmed', price },
  ...{ bookedAt: noonMs + minute * 60_000, ...more },
})
const arrivingAt = (minute: number) => ({ nowMs: noonMs + minute * 60_000 })
const windowAt = (minute: number) => ({ startMs: noonMs + minute * 60_000, endMs: noonMs + (minute + 5) * 60_000 })

test('S5: a result at close, a corrected revision for a late booking in grace, the late output after it', async () => {
  const driver = new TestDriver(bookingsApp, arrivingAt(30))
  await driver.send(bookingRequests, [booking(0, 100), booking(4.9, 49.5), booking(5.9, 80)])
  // The mark is a minute behind the newest booking.
  expect(driver.received(hotelBookings)).toEqual([])
  await driver.send(bookingRequests, [booking(6, 20)])
  await driver.send(bookingRequests, [booking(6.5, 10)])
  const first = { hotelId: 'h-1', ...windowAt(0), revision: 0, count: 2, revenue: 149.5 }
  expect(driver.received(hotelBookings)).toEqual([first])

  await driver.send(bookingRequests, [booking(1, 30)])
  const second = { ...first, revision: 1, count: 3, revenue: 179.5 }
  expect(driver.received(hotelBookings)).toEqual([first, second])

  const tooLate = booking(1, 1_000)
  await driver.send(bookingRequests, [booking(8, 5), tooLate])
  expect(driver.received(hotelBookings)).toEqual([first, second])
  expect(driver.received(lateBookings)).toEqual([tooLate])

  await driver.advanceEventTime(minutes(3))
  const third = { hotelId: 'h-1', ...windowAt(5), revision: 0, count: 4, revenue: 115 }
  expect(driver.received(hotelBookings)).toEqual([first, second, third])
  expect(driver.deadLetters).toEqual([])
})

test('only confirmed bookings count, each hotel for itself', async () => {
  const driver = new TestDriver(bookingsApp, arrivingAt(30))
  await driver.send(bookingRequests, [
    ...[booking(0, 100), booking(1, 50, { status: 'cancelled' }), booking(1, 50, { status: 'requested' })],
    ...[booking(2, 70, { hotelId: 'h-2' }), booking(3, 10)],
  ])
  await driver.advanceEventTime(minutes(10))
  const rows = driver.received(hotelBookings).map(({ hotelId, count, revenue }) => [hotelId, count, revenue])
  expect(rows.toSorted()).toEqual([
    ['h-1', 2, 110],
    ['h-2', 1, 70],
  ])
})

test('a booking of a clock that is hours ahead makes no other one late, and goes to the late output', async () => {
  const driver = new TestDriver(bookingsApp, arrivingAt(0))
  const rogue = booking(24 * 60, 1)
  await driver.send(bookingRequests, [booking(0, 1), rogue, booking(1, 1), booking(2, 1)])
  await driver.advanceEventTime(minutes(10))
  expect(driver.received(hotelBookings)).toMatchObject([{ count: 3 }])
  expect(driver.received(lateBookings)).toEqual([rogue])
})

test('a booking without a time, and one with seconds for milliseconds, are dead letters', async () => {
  const driver = new TestDriver(bookingsApp, arrivingAt(0))
  const { bookedAt, ...timeless } = booking(0, 1)
  await driver.sendRaw(bookingRequests, [
    ...[JSON.stringify(timeless), JSON.stringify({ ...timeless, bookedAt: null })],
    JSON.stringify({ ...timeless, bookedAt: Math.floor(bookedAt / 1_000) }),
  ])
  const reasons = driver.deadLetters.map(({ reason: { phase, code } }) => [phase, code])
  expect(reasons).toEqual([
    ['validate', 'invalid'],
    ['validate', 'invalid'],
    ['event-time', 'event-time-implausible'],
  ])
})

/** What is kept of the hotel once the handler was given the events in batches of those sizes, each frame twice. */
async function keptAfter(events: readonly Booking[], sizes: readonly number[]) {
  const ports = memoryPorts()
  const handler = streamHandler(bookingsApp, { ports })
  let firstIndex = 0
  for (const size of sizes) {
    const batch = events.slice(firstIndex, firstIndex + size)
    await handler(kinesisEvent(batch, { source: bookingRequests, firstIndex, arrivalTimeMs: noonMs }), lambdaContext())
    firstIndex += size
    for (const frames of ports.takeFrames('by-hotel')) {
      for (let times = 0; times < 2; times += 1) {
        expect(await handler(frames, lambdaContext())).toEqual({ batchItemFailures: [] })
      }
    }
  }
  const key = keyText('h-1')
  return (await ports.state('by-hotel')?.readKeys([key], new AbortController().signal))?.get(key)?.states
}

test('the handler keeps the same of a window however its bookings are cut into batches, and delivered twice', async () => {
  const events = Array.from({ length: 12 }, (_, i) => booking(i / 4, 10))
  const whole = await keptAfter(events, [12])
  expect(JSON.stringify(whole)).toContain(String(noonMs))
  expect(await keptAfter(events, [1, 4, 7])).toEqual(whole)
  expect(await keptAfter(events, Array(12).fill(1))).toEqual(whole)
})
