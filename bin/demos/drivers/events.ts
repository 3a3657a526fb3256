/** Events of drivers over a few hours, drawn from a seed, and what a plain loop over them comes to. */
import type { DriverEvent } from '../../../functions/drivers/topology.ts'
import type { Random } from '../../../lib/testing/simulator/random.ts'

const hourMs = 3_600_000
const startMs = Date.UTC(2026, 2, 1, 8)
/** How long all events take, whatever their number. */
const lengthMs = 4 * hourMs
/** The furthest that an event comes late. */
const mostLateMs = 5 * 60_000

export function driverEventsOf(random: Random, count: number, drivers: number): readonly DriverEvent[] {
  const load = new Map<string, number>()
  return Array.from({ length: count }, (_, i): DriverEvent => {
    const driver = `driver-${random.integer(1, drivers)}`
    const onTimeMs = startMs + Math.floor((i / count) * lengthMs)
    const atMs = random.chance(0.1) ? onTimeMs - random.integer(0, mostLateMs) : onTimeMs
    const passengers = load.get(driver) ?? 0
    const about = { driver, atMs }
    if (random.chance(0.4)) {
      const [latitude, longitude] = [47 + random.integer(0, 1_000) / 1_000, 8 + random.integer(0, 1_000) / 1_000]
      return { ...about, kind: 'moved', latitude, longitude }
    }
    if (passengers > 0 && random.chance(0.6)) {
      load.set(driver, 0)
      return { ...about, kind: 'dropped-off', passengers, fareCents: random.integer(500, 6_000) }
    }
    load.set(driver, passengers + 1)
    return { ...about, kind: 'picked-up', passengers: 1 }
  })
}

/** What is known of a driver, as text: what the topology must come to, whatever is delivered how often. */
export interface DriverBooks {
  readonly position: { readonly atMs: number; readonly latitude: number; readonly longitude: number } | undefined
  readonly load: number
  readonly fromMs: number | undefined
  readonly cents: number
  readonly updatedAtMs: number
}

/** A plain loop that shares no code with the topology. */
export function booksOf(events: readonly DriverEvent[], driver: string): DriverBooks {
  const own = events.filter((event) => event.driver === driver)
  const hourOf = (event: DriverEvent): number => event.atMs - (event.atMs % hourMs)
  const fares = own.filter((event) => event.kind === 'dropped-off')
  const fromMs = fares.length === 0 ? undefined : Math.max(...fares.map(hourOf))
  // A fare of an earlier hour that comes when the later one has begun belongs to neither sum.
  const cents = fares.reduce((sum, fare) => sum + (hourOf(fare) === fromMs ? fare.fareCents : 0), 0)
  let position: DriverBooks['position']
  let load = 0
  for (const event of own) {
    if (event.kind === 'picked-up') load += event.passengers
    if (event.kind === 'dropped-off') load -= event.passengers
    if (event.kind !== 'moved' || event.atMs < (position?.atMs ?? 0)) continue
    position = { atMs: event.atMs, latitude: event.latitude, longitude: event.longitude }
  }
  return { position, load, fromMs, cents, updatedAtMs: Math.max(...own.map(({ atMs }) => atMs)) }
}
