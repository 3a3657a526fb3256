/** MiniStacks of test files, the assemblies that are deployed to them, and what is run against them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { environmentFor } from '../../bin/deploy/cdklocal.ts'
import { standInAccount, standInIdentity } from '../../bin/deploy/clients.ts'

/** The folder of the stacks that this release has made, or the one before: `app.ts` says which there are. */
export const assemblyOf = (release: 'present' | 'former') => join(process.env.MILLRACE_TEST_DEPLOY ?? '', release)

/** A program of this repository that runs to its end. */
export interface Ended {
  readonly code: unknown
  readonly output: string
}

/** Runs a program and gives back what it said on both outputs. */
export async function run(
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  folder = '.',
): Promise<Ended> {
  const child: ChildProcess = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  return { code, output }
}

export class MiniStack {
  readonly url: string
  /** What it was started with; undefined where somebody else started it. */
  readonly #environment: Readonly<Record<string, string>> | undefined

  private constructor(url: string, environment?: Readonly<Record<string, string>>) {
    this.url = url
    this.#environment = environment
  }

  /** The one that `.ci/test-deploy` has started for all test files. */
  static shared(): MiniStack {
    return new MiniStack(process.env.MILLRACE_MINISTACK_URL ?? '')
  }

  /** `AUTH: 'true'` enforces IAM. */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<MiniStack> {
    const port = await freePort()
    const own = { ...environment, MINISTACK_PORT: `${port}` }
    await command('start', own)
    return new MiniStack(`http://127.0.0.1:${port}`, own)
  }

  async stop(): Promise<void> {
    if (this.#environment) await command('stop', this.#environment)
  }

  /** Deploys stacks as a user does. */
  async deployLocal(...args: readonly string[]): Promise<void> {
    const ended = await run(process.execPath, ['bin/deploy-local.ts', ...args], { AWS_ENDPOINT_URL: this.url })
    requireSuccess(`deploy:local ${args.join(' ')}`, ended)
  }

  async bootstrap(): Promise<void> {
    await this.#cdklocal(['bootstrap', `aws://${standInAccount}/${standInIdentity.region}`])
  }

  /** Deploys one of the stacks that this release has made, by its id there. */
  async deploy(id: string): Promise<void> {
    const app = `--app=${assemblyOf('present')}`
    await this.#cdklocal(['deploy', id, '--require-approval=never', '--method=direct', app])
  }

  /** Where it finds no app of its own. */
  async #cdklocal(args: readonly string[]): Promise<void> {
    const ended = await run(resolve('node_modules/.bin/cdklocal'), args, environmentFor(this.url), tmpdir())
    requireSuccess(`cdklocal ${args.join(' ')}`, ended)
  }
}

function requireSuccess(what: string, { code, output }: Ended): void {
  if (code !== 0) throw new Error(`${what} ended with ${code}:\n${output}`)
}

async function command(name: 'start' | 'stop', environment: Readonly<Record<string, string>>): Promise<void> {
  // Detached from our pipes: what it starts keeps them open for as long as it lives.
  const child = spawn('.ci/ministack', [name], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`.ci/ministack ${name} ended with ${code}`)
}

/** A port of the loopback where nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((go) => server.close(go))
  return port
}
