/** docs/time.md: every piece of code compiles, and the one with numbers runs. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { markedFiles } from '../install/marked-files.ts'

const root = resolve(__dirname, '../..')
const page = readFileSync(join(root, 'docs/time.md'), 'utf8')
const packages = {
  millrace: join(root, 'lib/index.ts'),
  'millrace/testing': join(root, 'lib/testing/index.ts'),
  zod: join(root, 'node_modules/zod/index.js'),
}

let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-docs-'))
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
})

afterAll(() => rmSync(directory, { recursive: true }))

test('all code on the page is checked', () => {
  const shown = page.match(/^```ts$/gm)?.length
  expect(markedFiles(page).size).toBe(shown)
  expect(shown).toBeGreaterThan(3)
})

test('it compiles', () => {
  for (const [path, text] of markedFiles(page)) write(path, text)
  const paths = Object.fromEntries(
    Object.entries(packages).map(([name, file]) => [name, [file.replace(/\.js$/, '.d.ts')]]),
  )
  const compilerOptions = { noEmit: true, paths, typeRoots: [join(root, 'node_modules/@types')] }
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'], exclude: [] }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config))
  expect(() => run(join(root, 'node_modules/.bin/tsc'), ['-p', directory])).not.toThrow()
}, 240_000)

test('what it says of the numbers holds', () => {
  for (const [path, text] of markedFiles(page)) {
    const linked = text.replace(/from '(millrace[^']*|zod)'/g, (_, name: keyof typeof packages) => {
      return `from '${pathToFileURL(packages[name]).href}'`
    })
    write(path, linked)
  }
  run(process.execPath, [join(directory, 'try-it.ts')])
  run(process.execPath, [join(directory, 'abandoned.ts')])
}, 240_000)

function write(path: string, text: string): void {
  const file = join(directory, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
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
