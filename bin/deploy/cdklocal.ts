/** Runs `cdklocal`, the CDK's command line pointed at an endpoint, with an identity that no real account knows. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, join, resolve } from 'node:path'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { standInIdentity } from './clients.ts'

/** The folder of this repository: the CDK app and its tools are found from wherever the command is run. */
const project = resolve(import.meta.dirname, '../..')

/**
 * Resolves when the command has ended well; rejects with a ConfigurationError where it did not. Its output goes to the terminal. It
 * runs in the project unless said: elsewhere it finds no app, and so has none to synthesise.
 */
export async function cdklocal(endpoint: string, args: readonly string[], folder = project): Promise<void> {
  const child = spawn(join(project, 'node_modules/.bin/cdklocal'), args, {
    cwd: folder,
    env: environmentFor(endpoint),
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code, signal] = await once(child, 'close')
  if (code === 0) return
  throw new ConfigurationError(`cdklocal ${args[0]} ended with ${signal ?? code}: what it printed above says why.`)
}

/** The environment in which it runs: the endpoint, the identity, and nothing of a real account. */
export function environmentFor(endpoint: string): NodeJS.ProcessEnv {
  const { PATH = '', ...inherited } = process.env
  // A profile or a session of a real account must not come before the identity below.
  const kept = Object.entries(inherited).filter(([name]) => !name.startsWith('AWS_'))
  const { region, accessKeyId, secretAccessKey } = standInIdentity
  return {
    ...Object.fromEntries(kept),
    PATH: [join(project, 'node_modules/.bin'), PATH].join(delimiter),
    AWS_ENDPOINT_URL: endpoint,
    // Without this one cdklocal asks for a host name per bucket.
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
  }
}
