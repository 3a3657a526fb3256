/**
 * The bookings application as the release of now runs it: the same topology, of the same names, whose source also sends what the
 * release before cannot read. It is what a frame of a newer format has: a bigint.
 */
import { Booking, type HotelBookings } from '../../functions/bookings/topology.ts'
import { count, epochMs, hours, minutes, streamHandler, sum, Topology, tumbling } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'

/** A booking of this id goes on with a bigint. */
export const needsNewerFrame = 'needs-newer-frame'

export const appOfNow = new Topology('bookings')

const requests = appOfNow.source('booking-requests', Booking, {
  eventTime: epochMs((booking) => booking.bookedAt),
  outOfOrderness: minutes(1),
  skewLimit: hours(1),
})
const hotelBookings = appOfNow.sink<HotelBookings>('hotel-bookings', { key: ({ hotelId }) => hotelId })
const lateBookings = appOfNow.sink<Booking>('late-bookings', { key: ({ hotelId }) => hotelId })

const perHotel = requests
  .filter(({ status }) => status === 'confirmed')
  .map((booking): Booking & { readonly exactly?: bigint } => {
    return booking.bookingId === needsNewerFrame ? { ...booking, exactly: BigInt(booking.bookedAt) } : booking
  })
  .keyBy('by-hotel', ({ hotelId }) => hotelId)
  .window(tumbling(minutes(5), { grace: minutes(2) }))
  .aggregate('bookings-per-hotel', { count: count(), revenue: sum(({ price }) => price) }, { emit: 'on-close' })

perHotel.results
  .map(({ key, window, revision, value }) => ({ hotelId: key, ...window, revision, ...value }))
  .to(hotelBookings)
perHotel.late.map(({ exactly: _, ...booking }) => booking).to(lateBookings)

export const handler = middy().handler(streamHandler(appOfNow))
