/** A project whose packages are not hoisted, as pnpm lays them out: a package is found by those only that depend on it. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { App, Stack } from 'aws-cdk-lib'
import { Runtime } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { bundlingFor, locateCode, locateTopicFunction, topicFunctionBundling } from '../../lib/cdk/bundle.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'

const root = resolve(__dirname, '../..')
const project = mkdtempSync(join(tmpdir(), 'millrace-unhoisted-'))
afterAll(() => rmSync(project, { recursive: true }))

const cluster = { brokers: ['127.0.0.1:1'], auth: { kind: 'none' }, tls: false } as const
const bindings: StageBindings = {
  formatVersion: 1,
  topology: 'pass-on',
  sources: [{ name: 'in', kind: 'kafka', topic: 'in', mode: 'provisioned' }],
  sinks: [{ name: 'out', kind: 'kafka', topic: 'out', cluster }],
  deadLetters: { kind: 'kafka', topic: 'dead', cluster },
}

/** Puts a link to a package where Node looks for it. */
function link(target: string, folder: string, name: string): void {
  const path = join(folder, 'node_modules', name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path)
}

/** A copy of a package in a store, which sees its own dependencies there and nothing else. */
function stored(name: string, files: readonly string[], links: Readonly<Record<string, string>>): string {
  const store = join(project, 'node_modules/.pnpm', name.replace('/', '+'))
  const copy = join(store, 'node_modules', name)
  const original = name === 'millrace' ? root : join(root, 'node_modules', name)
  for (const file of files) cpSync(join(original, file), join(copy, file), { recursive: true })
  for (const [dependency, target] of Object.entries(links)) link(target, store, dependency)
  return copy
}

const dependenciesOf = (manifest: string): readonly string[] =>
  Object.keys(JSON.parse(readFileSync(manifest, 'utf8')).dependencies)
const linksTo = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, join(root, 'node_modules', name)]))

beforeAll(() => {
  const client = '@platformatic/kafka'
  const seen = linksTo(dependenciesOf(join(root, 'node_modules', client, 'package.json')))
  const copy = stored(client, ['package.json', 'dist', 'node_modules'], seen)
  const own = { ...linksTo(dependenciesOf(join(root, 'package.json'))), [client]: copy }
  const millrace = stored('millrace', ['package.json', 'lib'], own)
  // In place of the compiled files, which a package has, this one has them as they are written.
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const exported = { '.': './lib/index.ts', './package.json': './package.json' }
  writeFileSync(join(millrace, 'package.json'), JSON.stringify({ ...manifest, exports: exported }))
  link(millrace, project, 'millrace')
  for (const name of ['esbuild', 'aws-cdk-lib', '.bin']) link(join(root, 'node_modules', name), project, name)
  writeFileSync(join(project, 'package-lock.json'), '{}')
  writeFileSync(join(project, 'package.json'), '{"name":"app","type":"module","devDependencies":{"esbuild":"*"}}')
  const handler = readFileSync(join(root, 'test/kafka/fixtures/pass-on.ts'), 'utf8')
  writeFileSync(join(project, 'handler.ts'), handler.replace(/'[./]*lib\/index.ts'/, "'millrace'"))
})

/** The one file that the CDK makes of an entry. */
function bundled(name: string, code: ReturnType<typeof locateCode>, bundling: ReturnType<typeof bundlingFor>): string {
  const app = new App({ outdir: join(project, 'cdk.out', name) })
  new NodejsFunction(new Stack(app, 'Bundled'), 'Function', { ...code, runtime: Runtime.NODEJS_24_X, bundling })
  const { directory } = app.synth()
  const [asset = ''] = readdirSync(directory).filter((file) => file.startsWith('asset.'))
  return join(directory, asset, 'index.mjs')
}

/** What the handler of a bundle says, run where no package is near. */
function runs(file: string): string {
  const alone = join(mkdtempSync(join(tmpdir(), 'millrace-alone-')), 'index.mjs')
  cpSync(file, alone)
  const script = `const { handler } = await import(${JSON.stringify(pathToFileURL(alone).href)}); console.log(typeof handler)`
  try {
    return execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: dirname(alone),
      env: { MILLRACE_BINDINGS: JSON.stringify(bindings), AWS_REGION: 'us-east-1' },
      encoding: 'utf8',
    }).trim()
  } finally {
    rmSync(dirname(alone), { recursive: true })
  }
}

test('a stage on Kafka is bundled, with what the client alone depends on', () => {
  const code = locateCode(join(project, 'handler.ts'))
  const file = bundled('stage', code, bundlingFor(bindings, code.entry))
  expect(runs(file)).toBe('function')
  expect(readFileSync(file, 'utf8').split(/from ?"[^"]*platformatic/).length - 1).toBe(0)
}, 120_000)

test('so is the function that makes topics', () => {
  const code = locateTopicFunction(join(project, 'handler.ts'))
  expect(code.projectRoot).toBe(project)
  expect(runs(bundled('topics', code, topicFunctionBundling(code.entry)))).toBe('function')
}, 120_000)
