import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { markedFiles } from './marked-files.ts'

const root = join(__dirname, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'millrace-install-'))
const timeoutMs = 300_000

/** What a fresh app depends on, in the versions of this repository, so that the result does not change by itself. */
const installed = (name: string): string =>
  JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version
const tsxVersion = '4.23.0'

/** Runs a command as a user would: nothing of this repository or of jest is in its environment. */
function run(folder: string, command: string, ...args: string[]): string {
  const { NODE_OPTIONS, NODE_ENV, JEST_WORKER_ID, npm_config_local_prefix, ...environment } = process.env
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  try {
    const options = { cwd: folder, env: { ...environment, PATH, CI: 'true' }, encoding: 'utf8', stdio: 'pipe' } as const
    return execFileSync(command, args, options)
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout ?? ''}\n${stderr ?? ''}`, { cause: error })
  }
}

function install(folder: string): void {
  run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--no-progress')
}

function write(folder: string, path: string, text: string): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** The README shows the first topology; while it is being written, its part stands alone. */
function firstTopology(): ReadonlyMap<string, string> {
  const pages = ['README.md'].map((page) => join(root, page)).filter(existsSync)
  return markedFiles(pages.map((page) => readFileSync(page, 'utf8')).join('\n'))
}

let tarball: string

beforeAll(() => {
  const [packed] = JSON.parse(run(root, 'npm', 'pack', '--json', '--pack-destination', scratch))
  tarball = join(scratch, packed.filename)
}, timeoutMs)

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('a fresh CDK app (CommonJS, jest)', () => {
  const app = join(scratch, 'orders')

  beforeAll(() => {
    // GIVEN what `cdk init` writes today
    mkdirSync(app)
    run(app, join(root, 'node_modules/.bin/cdk'), 'init', 'app', '--language', 'typescript', '--generate-only')
    // AND the packages and files that the README names
    const manifest = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8'))
    for (const group of [manifest.dependencies, manifest.devDependencies]) {
      for (const name of Object.keys(group)) group[name] = name === 'tsx' ? tsxVersion : installed(name)
    }
    Object.assign(manifest.dependencies, { millrace: `file:${tarball}`, zod: installed('zod') })
    manifest.devDependencies.esbuild = installed('esbuild')
    write(app, 'package.json', JSON.stringify(manifest))
    for (const [path, text] of firstTopology()) write(app, path, text)
    install(app)
  }, timeoutMs)

  it('has every file of the first topology', () => {
    expect([...firstTopology().keys()]).toEqual([
      'functions/orders/topology.ts',
      'functions/orders/handler.ts',
      'test/orders.test.ts',
      'bin/orders.ts',
      'functions/rides/topology.ts',
      'test/rides.test.ts',
    ])
  })

  it(
    'type-checks without casts',
    () => {
      expect(run(app, 'npx', 'tsc', '--noEmit')).toBe('')
    },
    timeoutMs,
  )

  it(
    'runs the test that invokes the real handler',
    () => {
      const report = JSON.parse(run(app, 'npx', 'jest', '--json', '--silent'))
      expect(report).toMatchObject({ success: true, numPassedTests: 2 })
    },
    timeoutMs,
  )

  it(
    'plans its topology and runs it on this machine, with the command that the package brings',
    () => {
      const topology = 'functions/orders/topology.ts'
      expect(run(app, 'npx', 'millrace', 'plan', topology)).toContain(
        'orders: stateless; writes to large-orders, small-orders',
      )
      const order = { id: 'a', amount: 1_500, currency: 'EUR', placedAt: '2026-11-29T12:00:00Z' }
      write(app, 'events.ndjson', `${JSON.stringify(order)}\n{"id":\n`)
      const shown = run(app, 'npx', 'millrace', 'dev', topology, '--input', 'events.ndjson', '--once')
      expect(shown).toContain(`large-orders: ${JSON.stringify(order)}`)
      expect(shown).toContain('In the streams: large-orders 1, small-orders 0, dead letters 1.')
      expect(run(app, 'npx', 'millrace', 'dead-letters', 'list')).toContain('not-json (decode)')
    },
    timeoutMs,
  )

  it(
    'synthesises, with neither Docker nor credentials',
    () => {
      run(app, 'npx', 'cdk', 'synth', '--quiet')
      const template = JSON.parse(readFileSync(join(app, 'cdk.out/Orders.template.json'), 'utf8'))
      const types = Object.values<{ Type: string }>(template.Resources).map((resource) => resource.Type)
      expect(types).toEqual(expect.arrayContaining(['AWS::Lambda::Function', 'AWS::Lambda::EventSourceMapping']))
    },
    timeoutMs,
  )
})

describe('an ES module project', () => {
  const app = join(scratch, 'words')

  beforeAll(() => {
    mkdirSync(app)
    const versions = ['@types/node', 'typescript', 'aws-cdk-lib', 'constructs', 'esbuild'].map((name) => [
      name,
      installed(name),
    ])
    const manifest = {
      name: 'words',
      type: 'module',
      dependencies: { millrace: `file:${tarball}` },
      devDependencies: Object.fromEntries(versions),
    }
    write(app, 'package.json', JSON.stringify(manifest))
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      strict: true,
      noEmit: true,
      types: ['node'],
      skipLibCheck: true,
    }
    write(app, 'tsconfig.json', JSON.stringify({ compilerOptions }))
    copyFileSync(join(__dirname, 'fixtures/esm-app.ts'), join(app, 'app.ts'))
    install(app)
  }, timeoutMs)

  it(
    'type-checks and runs its handler',
    () => {
      expect(run(app, 'npx', 'tsc')).toBe('')
      expect(run(app, 'node', 'app.ts')).toBe('the handler ran\n')
    },
    timeoutMs,
  )

  it(
    'runs a topology on this machine',
    () => {
      write(
        app,
        'functions/lines/topology.ts',
        `import { text, Topology } from 'millrace'
export const lines = new Topology('lines-app')
lines.source('lines', text()).to(lines.sink<string>('copies'))
`,
      )
      write(
        app,
        'functions/lines/handler.ts',
        `import { streamHandler } from 'millrace'
import { lines } from './topology.ts'
export const handler = streamHandler(lines)
`,
      )
      write(app, 'lines.ndjson', '"to be"\n')
      const shown = run(
        app,
        'npx',
        'millrace',
        'dev',
        'functions/lines/topology.ts',
        '--input',
        'lines.ndjson',
        '--once',
      )
      expect(shown).toContain('In the streams: copies 1, dead letters 0.')
    },
    timeoutMs,
  )
})
