/** The booking windows of the demo on Kafka: the windows and the late set of a plain loop, as on Kinesis. */
import { batchOf, windowKey } from '../../../bin/demos/bookings/batch.ts'
import { roundsOf } from '../../../bin/demos/bookings/rounds.ts'
import { bookingsApp, hotelBookings, lateBookings } from '../../../functions/bookings/topology.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { KafkaApplication, type Mode } from './kafka-application.ts'

const modes: readonly Mode[] = ['on-demand', 'provisioned']
const minuteMs = 60_000
const firstMs = Date.UTC(2026, 2, 2, 12)
const settings = { bookings: 150, hotels: 6, rounds: 1, late: 4, shards: 3 }

test.each(modes.flatMap((mode) => [1, 2, 3, 4].map((seed) => [mode, seed] as const)))(
  'the last result of each window and the late bookings: %s, seed %d',
  async (mode, seed) => {
    const app = new KafkaApplication(bookingsApp, { mode, seed, nowMs: firstMs + 30 * minuteMs })
    const sent = roundsOf(new Random(seed), settings).flatMap(({ inTime, inGrace, tooLate }) => [
      ...inTime,
      ...inGrace,
      ...tooLate,
    ])
    app.produce(
      'booking-requests',
      sent.map(({ booking, shard }) => ({
        partition: shard,
        key: Buffer.from(booking.hotelId),
        value: Buffer.from(JSON.stringify(booking)),
      })),
    )
    await app.start()
    await app.settle()
    // Nothing comes any more: the announcer's idle marks close what is open.
    await app.pass(20 * minuteMs)
    await app.settle()
    await app.stop()
    const { windows, late } = batchOf(sent)
    const last = new Map(
      app.memory
        .received(hotelBookings)
        .toSorted((a, b) => a.revision - b.revision)
        .map(({ hotelId, startMs, count, revenue }) => [
          windowKey(hotelId, startMs),
          { hotelId, startMs, count, revenue },
        ]),
    )
    expect(last).toEqual(windows)
    expect(new Set(app.memory.received(lateBookings).map(({ bookingId }) => bookingId))).toEqual(late)
    expect(late.size).toBeGreaterThan(0)
    expect(app.memory.deadLettered).toEqual([])
  },
)
