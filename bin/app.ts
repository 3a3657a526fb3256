/** The CDK app of this repository: `npm run synth` needs neither Docker nor credentials. */
import { App } from 'aws-cdk-lib'
import { ConfigurationError } from '../lib/index.ts'
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
import { FlightsStack } from './flights/flights-stack.ts'

try {
  const app = new App()
  new FlightsStack(app, 'Flights')
  new PartitionsStack(app, 'Partitions')
  new PaymentsStack(app, 'Payments')
  new EnrichmentStack(app, 'Enrichment')
  new DriversStack(app, 'Drivers')
  new BookingsStack(app, 'Bookings')
  new BoundedStateStack(app, 'BoundedState')
  new MapStateStack(app, 'MapState')
  new TableFirstStack(app, 'TableFirst')
  new ClassicsStack(app, 'Classics')
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
