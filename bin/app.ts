/** The CDK app of this repository: `npm run synth` needs neither Docker nor credentials. */
import { App } from 'aws-cdk-lib'
import { ConfigurationError } from '../lib/index.ts'
import { FlightsStack } from './flights/flights-stack.ts'

try {
  new FlightsStack(new App(), 'Flights')
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
