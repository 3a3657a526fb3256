/**
 * What users write compiles in the project that `cdk init` makes, which also writes declarations: the type of whatever they
 * export must have a name that the package exports. Checked are the example applications, the code in the documentation, and
 * what each exported function gives.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import * as cdk from '../../lib/cdk/index.ts'
import * as millrace from '../../lib/index.ts'
import * as testing from '../../lib/testing/index.ts'
import { KeyedStream, Stream, WindowedStream } from '../../lib/topology/stream.ts'
import { markedFiles } from './marked-files.ts'

const root = resolve(__dirname, '../..')
const app = join(mkdtempSync(join(tmpdir(), 'millrace-types-')), 'app')
const timeoutMs = 240_000

/** The sketch that the design began with, and an example that is compared with a file which is compiled. */
const notHere: readonly string[] = ['docs/design.md', 'docs/stream-application.md']
const pages = ['README.md', ...globSync('docs/*.md', { cwd: root }).sort()].filter((page) => !notHere.includes(page))
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8')

beforeAll(() => {
  mkdirSync(app)
  run(app, 'cdk', 'init', 'app', '--language', 'typescript', '--generate-only')
  installPackage(join(app, 'node_modules/millrace'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== 'millrace') symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name))
  }
}, timeoutMs)

afterAll(() => rmSync(dirname(app), { recursive: true, force: true }))

it.each(pages)('%s shows no code that is not checked', (page) => {
  expect(markedFiles(textOf(page)).size).toBe(textOf(page).match(/^```ts$/gm)?.length ?? 0)
})

it('the settings are those that write declarations', () => {
  const { compilerOptions } = JSON.parse(readFileSync(join(app, 'tsconfig.json'), 'utf8'))
  expect(compilerOptions).toMatchObject({ declaration: true, module: 'NodeNext', target: 'ES2022' })
})

it(
  'the example applications compile, and so does what the documentation shows',
  () => {
    cpSync(join(root, 'functions'), join(app, 'functions'), { recursive: true })
    for (const path of globSync('functions/**/*.ts', { cwd: app })) {
      const text = readFileSync(join(app, path), 'utf8')
      const imported = text.replaceAll(/from '[./]+\/lib\/(\w+)\.ts'/g, (_, name: string) => {
        return name === 'index' ? "from 'millrace'" : `from 'millrace/${name}'`
      })
      // How JSON is imported is the one thing that the two kinds of module do not write alike.
      write(path, imported.replace(" with { type: 'json' }", ''))
    }
    for (const page of pages) writePage(page)
    // This page reads the state of an example application.
    cpSync(join(app, 'functions/table-first/topology.ts'), join(app, 'pages/state-table/topology.ts'))
    expect(problems('functions', 'pages')).toBe('')
  },
  timeoutMs,
)

it(
  'whatever a function of the package gives may be exported',
  () => {
    const entries = { millrace, 'millrace/cdk': cdk, 'millrace/testing': testing }
    const calls = Object.entries(entries).flatMap(([entry, exported], at) => [
      `import * as entry${at} from '${entry}'`,
      ...functionsOf(exported).map((path, i) => `export const of${at}x${i} = resultOf(entry${at}.${path})`),
    ])
    // Of streams the package exports the types alone.
    calls.push(
      'declare const Stream: entry0.Stream<string>',
      'declare const KeyedStream: entry0.KeyedStream<string>',
      'declare const WindowedStream: entry0.WindowedStream<string, string, entry0.TimeWindows>',
      ...functionsOf({ Stream, KeyedStream, WindowedStream }).map((path, i) => {
        return `export const stream${i} = resultOf(${path.replace('.prototype', '')})`
      }),
    )
    expect(calls).toContainEqual(expect.stringContaining('KeyedStream.process'))
    expect(calls.length).toBeGreaterThan(100)
    write('results/results.ts', `declare const resultOf: <R>(given: (...args: any[]) => R) => R\n${calls.join('\n')}\n`)
    expect(problems('results')).toBe('')
  },
  timeoutMs,
)

it(
  'a type that the package keeps to itself would be found',
  () => {
    const path = 'millrace/dist/cjs/index.d.ts'
    const declarations = readFileSync(join(app, 'node_modules', path), 'utf8')
    write(
      'hidden/topology.ts',
      `import { valueState } from 'millrace'\nexport const state = { n: valueState<number>() }\n`,
    )
    try {
      write(`node_modules/${path}`, declarations.replace('type ValueState,', ''))
      expect(problems('hidden')).toMatch(/TS2883.*'ValueState'/)
    } finally {
      write(`node_modules/${path}`, declarations)
    }
    expect(problems('hidden')).toBe('')
  },
  timeoutMs,
)

/** The declarations of the package, where and as `npm run build` writes them. */
function installPackage(folder: string): void {
  const cjs = join(folder, 'dist/cjs')
  run(root, 'tsc', '-p', 'tsconfig.build.json', '--noCheck', '--emitDeclarationOnly', '--outDir', cjs)
  for (const path of globSync('**/*.d.ts', { cwd: cjs })) {
    const text = readFileSync(join(cjs, path), 'utf8')
    const built = text.replaceAll(/((?:from|import\() ?['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2')
    writeFileSync(join(cjs, path), built.replace("'@middy/core'", "'./middy-core.js'"))
  }
  cpSync(join(root, 'node_modules/@middy/core/index.d.ts'), join(cjs, 'middy-core.d.ts'))
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  cpSync(cjs, join(folder, 'dist/esm'), { recursive: true })
  writeFileSync(join(cjs, 'package.json'), '{"type":"commonjs"}')
}

/** Each page has a folder of its own. Pages whose files import one another with extensions are ES modules. */
function writePage(page: string): void {
  const files = markedFiles(textOf(page))
  const folder = `pages/${basename(page, '.md')}`
  const isModule = [...files.values()].some((text) => /from '\.[^']*\.ts'/.test(text))
  for (const [path, text] of files) write(`${folder}/${path}`, text)
  if (files.size > 0) write(`${folder}/package.json`, JSON.stringify({ type: isModule ? 'module' : 'commonjs' }))
}

/** The exported functions and the methods of the exported classes, as they are written behind the name of the module. */
function functionsOf(exported: object): string[] {
  return Object.entries(exported).flatMap(([name, value]) => {
    if (typeof value !== 'function') return []
    if (!String(value).startsWith('class')) return [name]
    const members = Object.entries(Object.getOwnPropertyDescriptors(value.prototype))
    const methods = members.filter(([member, { value }]) => member !== 'constructor' && typeof value === 'function')
    return methods.map(([member]) => `${name}.prototype.${member}`)
  })
}

/** What the compiler says of some folders under the settings of the project. */
function problems(...include: readonly string[]): string {
  const compilerOptions = { allowImportingTsExtensions: true, resolveJsonModule: true }
  write('tsconfig.checked.json', JSON.stringify({ extends: './tsconfig.json', compilerOptions, include }))
  try {
    run(app, 'tsc', '-p', 'tsconfig.checked.json')
    return ''
  } catch (error) {
    return (error as { readonly stdout: string }).stdout
  }
}

function write(path: string, text: string): void {
  const file = join(app, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

function run(folder: string, command: string, ...args: readonly string[]): void {
  const env = { ...process.env, CI: 'true' }
  execFileSync(join(root, 'node_modules/.bin', command), args, { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' })
}
