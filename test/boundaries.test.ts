/** The import table is enforced: what it forbids is found, values and types alike, whatever the tool says of compilers. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

// Each test starts the tool.
jest.setTimeout(120_000)

const root = join(__dirname, '..')
let project: string

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'millrace-boundaries-'))
})
afterEach(() => rmSync(project, { recursive: true }))

/** Runs the tool on a project of these files, and gives its exit code and output. */
function cruise(files: Readonly<Record<string, string>>): { code: number | null; output: string } {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), text)
  }
  const tool = join(root, 'node_modules/.bin/depcruise')
  const run = spawnSync(tool, ['--config', join(root, '.dependency-cruiser.cjs'), 'lib'], { cwd: project })
  return { code: run.status, output: String(run.stdout) }
}

const time = { 'lib/time/marks.ts': 'export const mark = 1\nexport type Mark = number\n' }

test.each([
  ['a value', "import { mark } from '../time/marks.ts'\nexport const twice = mark * 2\n"],
  ['a type', "import type { Mark } from '../time/marks.ts'\nexport type Marks = Mark[]\n"],
])('lib/core may not import %s of lib/time', (_, text) => {
  const { code, output } = cruise({ ...time, 'lib/core/early.ts': text })
  expect(code).not.toBe(0)
  expect(output).toContain('lib/core imports only itself: lib/core/early.ts → lib/time/marks.ts')
})

test('two files of one folder may not import each other', () => {
  const { code, output } = cruise({
    'lib/core/a.ts': "import { b } from './b.ts'\nexport const a = b\n",
    'lib/core/b.ts': "import type { C } from './a.ts'\nexport const b = 1\nexport type D = C\n",
  })
  expect(code).not.toBe(0)
  expect(output).toContain('no cycles')
})

test('lib/operators may import lib/time', () => {
  const { code, output } = cruise({ ...time, 'lib/operators/window.ts': "export { mark } from '../time/marks.ts'\n" })
  expect(output).toContain('no dependency violations found')
  expect(code).toBe(0)
})
