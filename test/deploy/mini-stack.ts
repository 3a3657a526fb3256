/** A MiniStack for a test file, on a port of its own, and what is run against it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A program of this repository that runs to its end. */
export interface Ended {
  readonly code: unknown
  readonly output: string
}

/** Runs a program and gives back what it said on both outputs. */
export async function run(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const child: ChildProcess = spawn(program, args, {
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
  readonly #environment: Readonly<Record<string, string>>

  private constructor(port: number, environment: Readonly<Record<string, string>>) {
    this.url = `http://127.0.0.1:${port}`
    this.#environment = { ...environment, MINISTACK_PORT: `${port}` }
  }

  /** `AUTH: 'true'` enforces IAM. */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<MiniStack> {
    const stack = new MiniStack(await freePort(), environment)
    await stack.#command('start')
    return stack
  }

  stop(): Promise<void> {
    return this.#command('stop')
  }

  async #command(command: string): Promise<void> {
    // Detached from our pipes: what it starts keeps them open for as long as it lives.
    const child = spawn('.ci/ministack', [command], {
      env: { ...process.env, ...this.#environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`.ci/ministack ${command} ended with ${code}`)
  }

  /** Deploys stacks of this repository, as a user does. */
  async deploy(...args: readonly string[]): Promise<void> {
    const { code, output } = await run(process.execPath, ['bin/deploy-local.ts', ...args], {
      AWS_ENDPOINT_URL: this.url,
    })
    if (code !== 0) throw new Error(`deploy:local ${args.join(' ')} ended with ${code}:\n${output}`)
  }
}

/** A port of the loopback where nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((go) => server.close(go))
  return port
}
