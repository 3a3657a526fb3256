/** Every kind of state with a TTL, once by event time and once by processing time: what is kept of a device ends by itself. */
import * as z from 'zod'
import {
  aggregatingState,
  epochMs,
  hours,
  listState,
  mapState,
  minutes,
  reducingState,
  type StatesOf,
  Topology,
  type Ttl,
  valueState,
} from '../../lib/index.ts'

export const Report = z.object({ device: z.string().min(1), atMs: z.int(), celsius: z.number() })
export type Report = z.infer<typeof Report>

/** How long a value is visible after its last write. */
export const visibleFor = hours(2)

const kinds = (ttl: Ttl) => ({
  last: valueState<number>({ ttl }),
  recent: listState<number>({ atMost: 5, ttl }),
  byHour: mapState<number>({ ttl }),
  highest: reducingState<number>(Math.max, { ttl }),
  mean: aggregatingState(
    {
      init: () => ({ count: 0, sum: 0 }),
      add: ({ count, sum }, celsius: number) => ({ count: count + 1, sum: sum + celsius }),
      result: ({ count, sum }) => sum / count,
    },
    { ttl },
  ),
})
type Kinds = ReturnType<typeof kinds>

export const byEventTime = kinds({ by: 'event-time', after: visibleFor })
export const byProcessingTime = kinds({ by: 'processing-time', after: visibleFor })

/** What a report finds of its device: one number for each kind of state, 0 where there is nothing (any more). */
export interface Found {
  readonly last: number
  readonly recent: number
  readonly byHour: number
  readonly highest: number
  readonly mean: number
}
export interface Finding {
  readonly device: string
  readonly atMs: number
  readonly found: Found
}

export const boundedStateApp = new Topology('bounded-state')

export const reports = boundedStateApp.source('reports', Report, {
  eventTime: epochMs(({ atMs }) => atMs),
  outOfOrderness: minutes(5),
})
export const foundByEventTime = boundedStateApp.sink<Finding>('found-by-event-time', { key: ({ device }) => device })
export const foundByProcessingTime = boundedStateApp.sink<Finding>('found-by-processing-time', {
  key: ({ device }) => device,
})

const byDevice = reports.keyBy('by-device', ({ device }) => device)
byDevice
  .process('event-time', { state: byEventTime, step: (report, { state }) => keep(report, state) })
  .to(foundByEventTime)
byDevice
  .process('processing-time', { state: byProcessingTime, step: (report, { state }) => keep(report, state) })
  .to(foundByProcessingTime)

/** Says what was there, and then writes to all of it. */
function keep({ device, atMs, celsius }: Report, state: StatesOf<Kinds>): readonly Finding[] {
  const found: Found = {
    last: state.last.get() === undefined ? 0 : 1,
    recent: state.recent.get().length,
    byHour: state.byHour.entries().length,
    highest: state.highest.get() === undefined ? 0 : 1,
    mean: state.mean.get() === undefined ? 0 : 1,
  }
  state.last.set(celsius)
  state.recent.add(celsius)
  state.byHour.set(new Date(atMs).toISOString().slice(0, 13), celsius)
  state.highest.add(celsius)
  state.mean.add(celsius)
  return [{ device, atMs, found }]
}
