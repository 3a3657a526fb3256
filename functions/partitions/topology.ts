/** Leaves out rides that never moved and gives the others their speed: the same map and filter for every shard. */
import * as z from 'zod'
import { outputIdentity, Topology } from '../../lib/index.ts'

export const Ride = z.object({
  ride: z.string().min(1),
  driver: z.string().min(1),
  meters: z.int().nonnegative(),
  seconds: z.int().positive(),
})
export type Ride = z.infer<typeof Ride>

export interface MeasuredRide {
  /** Follows from the input record alone, so that whoever stores rides by it stores each one once. */
  readonly identity: string
  readonly ride: string
  readonly driver: string
  readonly kilometersPerHour: number
  /** Where the ride was read: shard and sequence number. */
  readonly shard: string
  readonly position: string
}

const kilometersPerHour = ({ meters, seconds }: Ride): number => Math.round((meters * 36) / seconds) / 10

export const partitionsApp = new Topology('partitions')

export const rides = partitionsApp.source('rides', Ride)
export const measuredRides = partitionsApp.sink<MeasuredRide>('rides-measured', { key: ({ driver }) => driver })

rides
  .filter(({ meters }) => meters > 0)
  .map((ride, record) => ({
    identity: outputIdentity(record, 0),
    ride: ride.ride,
    driver: ride.driver,
    kilometersPerHour: kilometersPerHour(ride),
    shard: record.partition,
    position: record.position,
  }))
  .to(measuredRides)
