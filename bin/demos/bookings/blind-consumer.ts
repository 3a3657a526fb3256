/** Reads both outputs. It keeps the last result of each hotel and window and never looks at what a result says of itself. */
import type { Booking, HotelBookings } from '../../../functions/bookings/topology.ts'
import { hotelBookings, lateBookings } from '../../../functions/bookings/topology.ts'
import { windowKey } from './batch.ts'

export class BlindConsumer {
  /** What a table would hold whose rows are written over by hotel and window. */
  readonly rows = new Map<string, HotelBookings>()
  /** Ids of late bookings. */
  readonly late = new Set<string>()
  /** Every result once, for the report. */
  readonly results = new Map<string, HotelBookings>()

  readonly take = (output: string, records: readonly { readonly data: Uint8Array }[]): void => {
    for (const { data } of records) {
      const value: unknown = JSON.parse(Buffer.from(data).toString())
      if (output === lateBookings.name) this.late.add((value as Booking).bookingId)
      if (output === hotelBookings.name) this.#upsert(value as HotelBookings)
    }
  }

  #upsert(row: HotelBookings): void {
    const key = windowKey(row.hotelId, row.startMs)
    this.rows.set(key, row)
    this.results.set(`${key} ${row.revision}`, row)
  }

  /** How many windows of a start have a result. */
  closed(startMs: number): number {
    return [...this.rows.values()].filter((row) => row.startMs === startMs).length
  }

  /** How many results there were of a revision from a given one on, of windows of a start or of all. */
  resultsFrom(revision: number, startMs?: number): number {
    return [...this.results.values()].filter(
      (row) => row.revision >= revision && (startMs === undefined || row.startMs === startMs),
    ).length
  }
}
