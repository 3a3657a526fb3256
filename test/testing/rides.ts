/** A topology with two keyed stages, one behind the other, for tests of whatever runs stages. */
import { z } from 'zod'
import { RetryableError } from '../../lib/core/errors.ts'
import { mapState, valueState } from '../../lib/state/states.ts'
import { Topology } from '../../lib/topology/topology.ts'

const ride = z.object({ driver: z.string(), city: z.string(), km: z.number() })
export type Ride = z.infer<typeof ride>

/**
 * "rides" feeds "by-driver", which keeps each driver's last city and kilometres by city, and feeds "by-city", which counts.
 * `fault` is thrown by the step of rides to the city "Trouble" while it is set, so many times at most.
 */
export function rides() {
  const app = new Topology('rides-app')
  const source = app.source('rides', ride)
  const drivers = app.sink<{ driver: string; city: string; km: number }>('drivers')
  const cities = app.sink<number>('cities')
  const world: { fault: Error | undefined; times: number } = { fault: undefined, times: Number.POSITIVE_INFINITY }
  const perDriver = source
    .filter(({ km }) => km > 0)
    .keyBy('by-driver', ({ driver }) => driver)
    .process('driver-state', {
      state: { last: valueState<string>(), kmByCity: mapState<number>() },
      prefetch: ({ city }) => ({ kmByCity: [city] }),
      step({ driver, city, km }, { state }) {
        if (city === 'Trouble' && world.fault && world.times-- > 0) throw world.fault
        const total = (state.kmByCity.get(city) ?? 0) + km
        state.kmByCity.set(city, total)
        state.last.set(city)
        return [{ driver, city, km: total }]
      },
    })
  perDriver.to(drivers)
  perDriver
    .keyBy('by-city', ({ city }) => city)
    .aggregate(
      'rides-per-city',
      { init: () => 0, add: (count) => count + 1, result: (count) => count },
      { emit: 'on-update' },
    )
    .to(cities)
  return { app, source, drivers, cities, world, later: () => new RetryableError('the city is closed') }
}
