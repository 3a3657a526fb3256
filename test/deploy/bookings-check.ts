/** Bookings that are sent to a deployed application, and what must have come out of it by now. */

import { batchOf, type HotelWindow, windowKey } from '../../bin/demos/bookings/batch.ts'
import { type Round, roundsOf, type SentBooking } from '../../bin/demos/bookings/rounds.ts'
import type { StandInClients } from '../../bin/deploy/clients.ts'
import { streamNameOf } from '../../bin/deploy/deployed-stack.ts'
import type { Booking, HotelBookings } from '../../functions/bookings/topology.ts'
import { Random } from '../../lib/testing/simulator/random.ts'
import { DeployedStream } from './deployed-streams.ts'
import type { DrivenApplication } from './driven-application.ts'

const minuteMs = 60_000

export class BookingsCheck {
  readonly requests: DeployedStream
  readonly rounds: readonly Round[]
  readonly #hotels: DeployedStream
  readonly #late: DeployedStream

  private constructor(requests: DeployedStream, hotels: DeployedStream, late: DeployedStream) {
    this.requests = requests
    this.#hotels = hotels
    this.#late = late
    const settings = { bookings: 240, hotels: 8, rounds: 2, late: 4, shards: requests.shards }
    this.rounds = roundsOf(new Random('deployed'), settings)
  }

  static async open(clients: StandInClients, application: DrivenApplication): Promise<BookingsCheck> {
    const source = application.stage('booking-requests').source
    const { bindings } = application.stage('by-hotel')
    return new BookingsCheck(
      await DeployedStream.open(clients, streamNameOf(source)),
      await DeployedStream.ofSink(clients, bindings, 'hotel-bookings'),
      await DeployedStream.ofSink(clients, bindings, 'late-bookings'),
    )
  }

  /** A booking that is only asked for, in each shard: it counts nowhere, and its time closes the windows of what came before. */
  closing(afterRound: number): readonly SentBooking[] {
    const startMs = (this.rounds[afterRound]?.correctedMs ?? 0) + 12 * minuteMs
    return Array.from({ length: this.requests.shards }, (_, shard) => {
      return { booking: booking(`closing-${afterRound}-${shard}`, 'hotel-1', startMs, 'requested'), shard }
    })
  }

  /** Compares all that has come out by now with a plain loop over what is in the stream of requests. */
  async expectEqualToBatch(): Promise<void> {
    const expected = batchOf(await this.requests.bookings())
    const late = await this.#late.values<Booking>()
    expect(new Set(late.map(({ bookingId }) => bookingId))).toEqual(expected.late)
    expect(await this.lastRevisions()).toEqual(expected.windows)
  }

  /** The last revision of each hotel and window. */
  async lastRevisions(): Promise<ReadonlyMap<string, HotelWindow>> {
    const last = new Map<string, HotelBookings>()
    for (const result of await this.#hotels.values<HotelBookings>()) {
      const key = windowKey(result.hotelId, result.startMs)
      if (result.revision >= (last.get(key)?.revision ?? 0)) last.set(key, result)
    }
    const windows = [...last].map(([key, { hotelId, startMs, count, revenue }]): [string, HotelWindow] => {
      return [key, { hotelId, startMs, count, revenue }]
    })
    return new Map(windows)
  }
}

export function booking(
  bookingId: string,
  hotelId: string,
  bookedAt: number,
  status: Booking['status'] = 'confirmed',
): Booking {
  return { bookingId, hotelId, status, price: 100, bookedAt }
}
