/** docs/kafka.md: every piece of code compiles, its stack can be synthesised, and its test passes. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { markedFiles } from '../install/marked-files.ts'

const root = resolve(__dirname, '../..')
const page = readFileSync(join(root, 'docs/kafka.md'), 'utf8')
const packages: Readonly<Record<string, string>> = {
  millrace: join(root, 'lib/index.ts'),
  'millrace/cdk': join(root, 'lib/cdk/index.ts'),
  'millrace/middy': join(root, 'lib/middy.ts'),
  'millrace/testing': join(root, 'lib/testing/index.ts'),
}

let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-docs-'))
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  writeFileSync(join(directory, 'package-lock.json'), '{}')
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(root, join(directory, 'node_modules/millrace'))
  for (const name of readdirSync(join(root, 'node_modules')))
    symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name))
})

afterAll(() => rmSync(directory, { recursive: true }))

test('all code on the page is checked', () => {
  expect(markedFiles(page).size).toBe(page.match(/^```ts$/gm)?.length)
  expect(markedFiles(page).size).toBe(4)
})

test('it compiles', () => {
  for (const [path, text] of markedFiles(page)) write(path, text)
  const paths = Object.fromEntries(Object.entries(packages).map(([name, file]) => [name, [file]]))
  const types = ['node', 'jest']
  const compilerOptions = { noEmit: true, paths, types, typeRoots: [join(root, 'node_modules/@types')] }
  // As a fresh CDK app resolves its own files.
  const resolution = { module: 'esnext', moduleResolution: 'bundler' }
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: { ...compilerOptions, ...resolution },
    include: ['functions', 'lib', 'test'],
    exclude: [],
  }
  write('tsconfig.json', JSON.stringify(config))
  expect(() => run(join(root, 'node_modules/.bin/tsc'), ['-p', directory])).not.toThrow()
}, 240_000)

test('its stack is a template, and its test passes', () => {
  for (const [path, text] of markedFiles(page)) write(path, linked(text))
  write(
    'bin/app.ts',
    `import { App } from 'aws-cdk-lib'
    import { RidesStack } from '../lib/rides-stack.ts'
    const app = new App({ outdir: 'out', context: { 'aws:cdk:bundling-stacks': [] } })
    new RidesStack(app, 'Rides', {
      env: { account: '123456789012', region: 'eu-west-1' },
      clusterArn: 'arn:aws:kafka:eu-west-1:123456789012:cluster/rides/1',
      vpcId: 'vpc-1',
      subnets: ['subnet-1', 'subnet-2'],
    })
    app.synth()`,
  )
  run(process.execPath, ['bin/app.ts'])
  expect(readdirSync(join(directory, 'out'))).toContain('Rides.template.json')
  const framework = `import test from 'node:test'\nimport { expect } from 'expect'\n`
  write('test/rides.test.ts', framework + linked(markedFiles(page).get('test/rides.test.ts') ?? ''))
  run(process.execPath, ['test/rides.test.ts'])
}, 240_000)

function write(path: string, text: string): void {
  const file = join(directory, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** As Node resolves it without a bundler. */
function linked(text: string): string {
  return text
    .replaceAll(/from '(millrace[^']*)'/g, (_, name: string) => `from '${pathToFileURL(packages[name] ?? '').href}'`)
    .replaceAll(/from '(\.[^']*)'/g, (_, path: string) => `from '${path}.ts'`)
}

/** Throws what the command printed where it fails. */
function run(command: string, args: readonly string[]): void {
  try {
    execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe', cwd: directory })
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    throw new Error(`${stdout}\n${stderr}`)
  }
}
