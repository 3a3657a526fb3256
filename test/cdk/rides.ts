/** An application with keyed stages, for the tests of constructs. */
import type { Stack } from 'aws-cdk-lib'
import { z } from 'zod'
import {
  bind,
  KinesisSink,
  KinesisSource,
  StreamApplication,
  type StreamApplicationProps,
} from '../../lib/cdk/index.ts'
import { Topology } from '../../lib/index.ts'
import { entry, newStream } from './world.ts'

/** Source "rides" feeds "by-driver", which feeds "by-city"; "visits" keeps nothing. */
export function ridesIn(
  stack: Stack,
  stages: StreamApplicationProps['stages'] = {},
  change: Partial<StreamApplicationProps> = {},
): StreamApplication {
  const app = new Topology('rides-app')
  const rides = app.source('rides', z.object({ driver: z.string(), city: z.string() }))
  const visits = app.source('visits', z.object({ page: z.string() }))
  const cities = app.sink<number>('cities')
  const pages = app.sink<string>('pages')
  rides
    .keyBy('by-driver', (ride) => ride.driver, { slots: 128 })
    .aggregate(
      'last-ride',
      { init: () => '', add: (_, ride) => ride.city, result: (city) => city },
      { emit: 'on-update' },
    )
    .keyBy('by-city', (city) => city)
    .aggregate(
      'rides-per-city',
      { init: () => 0, add: (count) => count + 1, result: (count) => count },
      { emit: 'per-batch' },
    )
    .to(cities)
  visits.map(({ page }) => page).to(pages)
  return new StreamApplication(stack, 'Rides', {
    topology: app,
    entry,
    stages,
    bind: [
      bind(rides, new KinesisSource(newStream(stack, 'In'))),
      bind(visits, new KinesisSource(newStream(stack, 'Visits'))),
      bind(cities, new KinesisSink(newStream(stack, 'Cities'))),
      bind(pages, new KinesisSink(newStream(stack, 'Pages'))),
    ],
    ...change,
  })
}
