/** What the bookings come to in a plain loop over all of them. It shares no code with the topology. */
import type { SentBooking } from './rounds.ts'

export interface HotelWindow {
  readonly hotelId: string
  readonly startMs: number
  readonly count: number
  readonly revenue: number
}

export interface BatchResult {
  /** By hotel and start. */
  readonly windows: ReadonlyMap<string, HotelWindow>
  /** Ids of the bookings that came after the grace. */
  readonly late: ReadonlySet<string>
}

const minuteMs = 60_000
const windowMs = 5 * minuteMs
const graceMs = 2 * minuteMs
const disorderMs = minuteMs

export const windowKey = (hotelId: string, startMs: number): string => `${hotelId} ${startMs}`

/** Of the bookings in the order in which they were sent. */
export function batchOf(sent: readonly SentBooking[]): BatchResult {
  const windows = new Map<string, HotelWindow>()
  const late = new Set<string>()
  const newestMs = new Map<number, number>()
  for (const { booking, shard } of sent) {
    const { bookingId, hotelId, status, price, bookedAt } = booking
    const markMs = (newestMs.get(shard) ?? Number.NEGATIVE_INFINITY) - disorderMs
    newestMs.set(shard, Math.max(bookedAt, newestMs.get(shard) ?? bookedAt))
    if (status !== 'confirmed') continue
    const startMs = bookedAt - (bookedAt % windowMs)
    if (startMs + windowMs + graceMs <= markMs) {
      late.add(bookingId)
      continue
    }
    const key = windowKey(hotelId, startMs)
    const { count, revenue } = windows.get(key) ?? { count: 0, revenue: 0 }
    windows.set(key, { hotelId, startMs, count: count + 1, revenue: revenue + price })
  }
  return { windows, late }
}
