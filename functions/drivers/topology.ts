/** What a dispatcher knows of each driver: position, load, earnings of this hour, and when the last news came. */
import * as z from 'zod'
import { days, epochMs, hours, reducingState, Topology, valueState } from '../../lib/index.ts'

const about = { driver: z.string().min(1), atMs: z.int() }
export const DriverEvent = z.discriminatedUnion('kind', [
  z.object({ ...about, kind: z.literal('moved'), latitude: z.number(), longitude: z.number() }),
  z.object({ ...about, kind: z.literal('picked-up'), passengers: z.int().positive() }),
  z.object({ ...about, kind: z.literal('dropped-off'), passengers: z.int().positive(), fareCents: z.int().positive() }),
])
export type DriverEvent = z.infer<typeof DriverEvent>

/** A type, not an interface: a state holds plain data, and an interface could be added to. */
type Position = { readonly atMs: number; readonly latitude: number; readonly longitude: number }
type HourlyEarnings = { readonly fromMs: number; readonly cents: number }

export interface DriverStatus {
  readonly driver: string
  readonly position: Position | null
  readonly load: number
  readonly earningsThisHour: HourlyEarnings | null
  readonly updatedAtMs: number
}

const hourOf = (atMs: number): number => Math.floor(atMs / hours(1).ms) * hours(1).ms
/** A driver without news for a month has left. */
const ttl = { by: 'event-time', after: days(30) } as const

/** What is kept of each driver: by this name readers of the table know it too. */
export const driverState = {
  position: valueState<Position>({ ttl }),
  load: reducingState<number>((before, change) => before + change, { ttl }),
  earnings: valueState<HourlyEarnings>({ ttl }),
  updatedAtMs: reducingState<number>(Math.max, { ttl }),
}

export const driversApp = new Topology('drivers')

export const driverEvents = driversApp.source('driver-events', DriverEvent, {
  eventTime: epochMs((event) => event.atMs),
})
export const driverStatus = driversApp.sink<DriverStatus>('driver-status', { key: ({ driver }) => driver })

driverEvents
  .keyBy('by-driver', ({ driver }) => driver)
  .process('driver', {
    state: driverState,
    step(event, { key, state }) {
      const { atMs } = event
      if (event.kind === 'moved') {
        const { latitude, longitude } = event
        // Positions may come late: the newest counts, not the last one to come.
        if (atMs >= (state.position.get()?.atMs ?? 0)) state.position.set({ atMs, latitude, longitude })
      } else {
        state.load.add(event.kind === 'picked-up' ? event.passengers : -event.passengers)
      }
      if (event.kind === 'dropped-off') {
        const current = state.earnings.get()
        const fromMs = hourOf(atMs)
        // A fare of an hour that is over belongs to that hour's books, not to this one.
        if (current === undefined || fromMs > current.fromMs) state.earnings.set({ fromMs, cents: event.fareCents })
        else if (fromMs === current.fromMs) state.earnings.set({ fromMs, cents: current.cents + event.fareCents })
      }
      state.updatedAtMs.add(atMs)
      return [
        {
          driver: key,
          position: state.position.get() ?? null,
          load: state.load.get() ?? 0,
          earningsThisHour: state.earnings.get() ?? null,
          updatedAtMs: state.updatedAtMs.get() ?? atMs,
        },
      ]
    },
  })
  .to(driverStatus)
