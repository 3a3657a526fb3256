/** Confirmed bookings per hotel and five minutes: how many, and what they are worth. */
import * as z from 'zod'
import { count, epochMs, hours, minutes, sum, Topology, tumbling } from '../../lib/index.ts'

export const Booking = z.object({
  bookingId: z.string().min(1),
  hotelId: z.string().min(1),
  status: z.enum(['requested', 'confirmed', 'cancelled']),
  price: z.number().nonnegative(),
  bookedAt: z.int(),
})
export type Booking = z.infer<typeof Booking>

/** What a hotel took in a window. Whoever keeps the last one of each hotel and window is right. */
export interface HotelBookings {
  readonly hotelId: string
  readonly startMs: number
  readonly endMs: number
  readonly revision: number
  readonly count: number
  readonly revenue: number
}

export const bookingsApp = new Topology('bookings')

export const bookingRequests = bookingsApp.source('booking-requests', Booking, {
  eventTime: epochMs((booking) => booking.bookedAt),
  outOfOrderness: minutes(1),
  skewLimit: hours(1),
})
export const hotelBookings = bookingsApp.sink<HotelBookings>('hotel-bookings', { key: ({ hotelId }) => hotelId })
export const lateBookings = bookingsApp.sink<Booking>('late-bookings', { key: ({ hotelId }) => hotelId })

const perHotel = bookingRequests
  .filter(({ status }) => status === 'confirmed')
  .keyBy('by-hotel', ({ hotelId }) => hotelId)
  .window(tumbling(minutes(5), { grace: minutes(2) }))
  .aggregate('bookings-per-hotel', { count: count(), revenue: sum(({ price }) => price) }, { emit: 'on-close' })

perHotel.results
  .map(({ key, window, revision, value }) => ({ hotelId: key, ...window, revision, ...value }))
  .to(hotelBookings)
perHotel.late.to(lateBookings)
