/** The stacks of this repository's CDK app, which `bin/app.ts` deploys and tests look at. */
import type { App } from 'aws-cdk-lib'
import {
  BookingsStack,
  BoundedStateStack,
  ClassicsStack,
  DriversStack,
  EnrichmentStack,
  MapStateStack,
  PartitionsStack,
  PaymentsStack,
  TableFirstStack,
} from './demos/demo-stacks.ts'
import { DriversOnKafkaStack } from './demos/kafka-stacks.ts'
import { FlightsStack } from './flights/flights-stack.ts'

/** Adds them all. Throws a ConfigurationError for one that cannot run. */
export function addStacks(app: App): void {
  new FlightsStack(app, 'Flights')
  new PartitionsStack(app, 'Partitions')
  new PaymentsStack(app, 'Payments')
  new EnrichmentStack(app, 'Enrichment')
  new DriversStack(app, 'Drivers')
  new DriversOnKafkaStack(app, 'DriversOnKafka')
  new BookingsStack(app, 'Bookings')
  new BoundedStateStack(app, 'BoundedState')
  new MapStateStack(app, 'MapState')
  new TableFirstStack(app, 'TableFirst')
  new ClassicsStack(app, 'Classics')
}
