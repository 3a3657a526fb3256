/**
 * `npm run deploy:local [STACKS...]`: bootstraps and deploys stacks of this repository to what listens on port 4566, by `cdklocal`.
 * Exit code 0 where they are deployed, 1 otherwise. No real account is ever asked.
 */
import { tmpdir } from 'node:os'
import { DescribeStacksCommand } from '@aws-sdk/client-cloudformation'
import { ConfigurationError } from '../lib/core/errors.ts'
import { cdklocal } from './deploy/cdklocal.ts'
import { type StandInClients, standInAccount, standInClients, standInIdentity } from './deploy/clients.ts'
import { readDeployedStack } from './deploy/deployed-stack.ts'
import { deployedLines } from './deploy/deployed-text.ts'
import { whatListens } from './deploy/what-listens.ts'

const helpText = `Deploys stacks of this repository to LocalStack or MiniStack on this machine.

  npm run deploy:local [STACKS...] [-- FLAGS]

STACKS  names of stacks of bin/app.ts (default: Flights Bookings)
FLAGS   go to \`cdk deploy\` as they are, such as --app cdk.out or --hotswap; give values as --flag=value

AWS_ENDPOINT_URL says where it listens (default: http://127.0.0.1:4566).`

async function deploy(args: readonly string[]): Promise<void> {
  const flags = args.filter((arg) => arg.startsWith('-'))
  const named = args.filter((arg) => !arg.startsWith('-'))
  const stacks = named.length === 0 ? ['Flights', 'Bookings'] : named
  const endpoint = process.env.AWS_ENDPOINT_URL ?? 'http://127.0.0.1:4566'
  console.log(`Deploying ${stacks.join(', ')} to ${await whatListens(endpoint)} on ${endpoint}.`)
  const clients = standInClients(endpoint)
  try {
    if (!(await isBootstrapped(clients))) {
      await cdklocal(endpoint, ['bootstrap', `aws://${standInAccount}/${standInIdentity.region}`], tmpdir())
    }
    await cdklocal(endpoint, ['deploy', ...stacks, '--require-approval=never', ...flags])
    for (const name of stacks) {
      for (const line of deployedLines(await readDeployedStack(clients, name), endpoint)) console.log(line)
    }
  } finally {
    clients.destroy()
  }
}

async function isBootstrapped({ cloudFormation }: StandInClients): Promise<boolean> {
  try {
    const { Stacks = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName: 'CDKToolkit' }))
    return Stacks.some(({ StackStatus = '' }) => StackStatus.endsWith('_COMPLETE'))
  } catch (error) {
    // That there is no such stack is a validation error.
    if ((error as { readonly name?: string }).name === 'ValidationError') return false
    throw error
  }
}

const args = process.argv.slice(2)
if (args.includes('--help')) console.log(helpText)
else {
  try {
    await deploy(args)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    console.error(`deploy:local: ${error.message}`)
    process.exitCode = 1
  }
}
