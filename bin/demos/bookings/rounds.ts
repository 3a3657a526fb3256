/**
 * Half hours of bookings drawn from a seed, with late ones among them:
 *
 *     minute   0                15      20      25  26  27
 *     in time  b b b b b b b b b b b b b b b b b b b b b b   none later than a minute, which the source allows for
 *     mark                                          |        then: the last booking, less that minute
 *     in grace                          c c c                the window [20, 25) is closed, and takes them until 27
 *     too late                   l l l                       the window [15, 20) took them until 22
 */
import type { Booking } from '../../../functions/bookings/topology.ts'
import type { Random } from '../../../lib/testing/simulator/random.ts'

/** A booking and the shard that it is sent to, counted from 0. */
export interface SentBooking {
  readonly booking: Booking
  readonly shard: number
}

export interface Round {
  readonly inTime: readonly SentBooking[]
  /** They come when the window is closed, and correct it. */
  readonly inGrace: readonly SentBooking[]
  readonly tooLate: readonly SentBooking[]
  /** The start of the window that the bookings in grace are of. */
  readonly correctedMs: number
}

export interface RoundSettings {
  readonly bookings: number
  readonly hotels: number
  readonly rounds: number
  readonly late: number
  readonly shards: number
}

const firstMs = Date.UTC(2026, 2, 2, 12)
const minuteMs = 60_000
const roundMs = 30 * minuteMs
/** The newest booking of a round, after its start. */
const newestMs = 27 * minuteMs

export function roundsOf(random: Random, settings: RoundSettings): readonly Round[] {
  return Array.from({ length: settings.rounds }, (_, index) => roundOf(random, settings, index))
}

function roundOf(random: Random, { bookings, hotels, rounds, late, shards }: RoundSettings, round: number): Round {
  const startMs = firstMs + round * roundMs
  let next = 0
  const bookingOf = (bookedAt: number, hotelId: string, status: Booking['status'] = 'confirmed'): SentBooking => {
    const bookingId = `b-${round + 1}-${++next}`
    // Whole and half euros add up without a rest in any order, also in a plain loop.
    return {
      booking: { bookingId, hotelId, status, price: random.integer(60, 900) / 2, bookedAt },
      shard: random.integer(0, shards - 1),
    }
  }
  const anyHotel = () => `hotel-${random.integer(1, hotels)}`
  const anyStatus = () => random.pick(['confirmed', 'confirmed', 'confirmed', 'requested', 'cancelled'] as const)
  const drawn = Array.from({ length: Math.ceil(bookings / rounds) }, () => {
    const sent = bookingOf(startMs + random.integer(0, newestMs - 1), anyHotel(), anyStatus())
    return { sent, atMs: sent.booking.bookedAt + random.integer(0, minuteMs - 1) }
  })
  const inTime = drawn.toSorted((a, b) => a.atMs - b.atMs).map(({ sent }) => sent)
  // Each shard ends with the newest time, so the mark is the same for all of them.
  for (let shard = 0; shard < shards; shard += 1) {
    inTime.push({ ...bookingOf(startMs + newestMs, anyHotel()), shard })
  }
  const correctedMs = startMs + 20 * minuteMs
  const isCorrected = ({ booking: { bookedAt, status } }: SentBooking) =>
    status === 'confirmed' && bookedAt >= correctedMs && bookedAt < correctedMs + 5 * minuteMs
  const candidates = [...new Set(inTime.filter(isCorrected).map(({ booking }) => booking.hotelId))]
  const within = (fromMs: number) => fromMs + random.integer(0, 5 * minuteMs - 1)
  return {
    inTime,
    // One for each of some hotels that have a result to correct.
    inGrace: candidates.slice(0, late).map((hotelId) => bookingOf(within(correctedMs), hotelId)),
    tooLate: Array.from({ length: late }, () => bookingOf(within(startMs + 15 * minuteMs), anyHotel())),
    correctedMs,
  }
}
