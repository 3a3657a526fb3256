/** The CDK app of this repository: `npm run synth` needs neither Docker nor credentials. */
import { App } from 'aws-cdk-lib'
import { ConfigurationError } from '../lib/index.ts'
import { EnrichmentStack, PartitionsStack, PaymentsStack } from './demos/demo-stacks.ts'
import { FlightsStack } from './flights/flights-stack.ts'

try {
  const app = new App()
  new FlightsStack(app, 'Flights')
  new PartitionsStack(app, 'Partitions')
  new PaymentsStack(app, 'Payments')
  new EnrichmentStack(app, 'Enrichment')
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
