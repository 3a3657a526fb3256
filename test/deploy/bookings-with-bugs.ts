/**
 * The bookings application as a bad deployment has it: the same topology, of the same names, with two steps that throw. One is in the
 * stage of the source, one in the keyed stage.
 */
import { Booking, type HotelBookings } from '../../functions/bookings/topology.ts'
import { count, epochMs, hours, minutes, streamHandler, sum, Topology, tumbling } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'

/** Bookings that the bad deployment fails on. */
export const failsBeforeTheKey = 'fails-before-the-key'
export const failsInTheWindow = 'fails-in-the-window'

export const buggyApp = new Topology('bookings')

const requests = buggyApp.source('booking-requests', Booking, {
  eventTime: epochMs((booking) => booking.bookedAt),
  outOfOrderness: minutes(1),
  skewLimit: hours(1),
})
const hotelBookings = buggyApp.sink<HotelBookings>('hotel-bookings', { key: ({ hotelId }) => hotelId })
const lateBookings = buggyApp.sink<Booking>('late-bookings', { key: ({ hotelId }) => hotelId })

const perHotel = requests
  .filter(({ bookingId, status }) => {
    if (bookingId === failsBeforeTheKey) throw new TypeError('a bug of this deployment')
    return status === 'confirmed'
  })
  .keyBy('by-hotel', ({ hotelId }) => hotelId)
  .window(tumbling(minutes(5), { grace: minutes(2) }))
  .aggregate('bookings-per-hotel', { count: count(), revenue: sum(priceOf) }, { emit: 'on-close' })

perHotel.results
  .map(({ key, window, revision, value }) => ({ hotelId: key, ...window, revision, ...value }))
  .to(hotelBookings)
perHotel.late.to(lateBookings)

function priceOf({ bookingId, price }: Booking): number {
  if (bookingId === failsInTheWindow) throw new TypeError('another bug of this deployment')
  return price
}

export const handler = middy().handler(streamHandler(buggyApp))
