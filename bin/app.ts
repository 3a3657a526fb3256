/** The CDK app of this repository: `npm run synth` needs neither Docker nor credentials. */
import { App } from 'aws-cdk-lib'
import { ConfigurationError } from '../lib/index.ts'
import { addStacks } from './stacks.ts'

try {
  addStacks(new App())
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
