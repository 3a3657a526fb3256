/** docs/operators.md: the whole page is one application, and what it says of it holds. That it compiles is in test/install. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as millrace from '../../lib/index.ts'
import { markedFiles } from '../install/marked-files.ts'

const root = resolve(__dirname, '../..')
const page = readFileSync(join(root, 'docs/operators.md'), 'utf8')
const packages: Readonly<Record<string, string>> = {
  millrace: join(root, 'lib/index.ts'),
  'millrace/testing': join(root, 'lib/testing/index.ts'),
  zod: join(root, 'node_modules/zod/index.js'),
}
const directory = mkdtempSync(join(tmpdir(), 'millrace-docs-'))

afterAll(() => rmSync(directory, { recursive: true }))

test('what it says of the results holds', () => {
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  for (const [path, text] of markedFiles(page)) {
    const linked = text.replaceAll(/from '(millrace[^']*|zod)'/g, (_, name: string) => {
      return `from '${pathToFileURL(packages[name] ?? '').href}'`
    })
    writeFileSync(join(directory, path), linked)
  }
  const run = () => execFileSync(process.execPath, ['try-it.ts'], { cwd: directory, encoding: 'utf8', stdio: 'pipe' })
  expect(run).not.toThrow()
}, 240_000)

/** What topologies are not made of: what stands alone, and what is for readers and handlers. */
const elsewhere = /^(upsertOnce|processInOrder|readState|stateView|outputIdentity|plan|streamHandler|.*Error)$/

test('every function that a topology may call is on the page', () => {
  const functions = Object.entries(millrace).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
  expect(functions).toContain('tumbling')
  expect(functions.filter((name) => !elsewhere.test(name) && !page.includes(name))).toEqual([])
})
