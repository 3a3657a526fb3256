/** The numbered invariants of docs/guarantees.md, and the tests that hold the code to them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(__dirname, '..')
const page = readFileSync(join(root, 'docs/guarantees.md'), 'utf8')
const numbered = [...page.matchAll(/^(\d+)\. \*\*(.+?)\*\*/gm)].map(
  ([, number, name]) => [Number(number), name] as const,
)

/** The numbers that a test cites: `docs/guarantees.md 1, 2 and 6`. */
function citedIn(source: string): number[] {
  const lists = [...source.matchAll(/docs\/guarantees\.md ((?:\d+(?:, | and )?)+)/g)]
  return lists.flatMap(([, list = '']) => [...list.matchAll(/\d+/g)].map(([number]) => Number(number)))
}

const cited = new Map<number, string[]>()
for (const file of readdirSync(__dirname, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.test.ts') || file === 'guarantees.test.ts') continue
  for (const number of citedIn(readFileSync(join(__dirname, file), 'utf8'))) {
    cited.set(number, [...(cited.get(number) ?? []), file])
  }
}

test.each(numbered)('invariant %i is cited by a test: %s', (number) => {
  expect(cited.get(number) ?? []).not.toEqual([])
})

test('the page numbers its invariants without a gap, and no test cites another', () => {
  const numbers = numbered.map(([number]) => number)
  expect(numbers).toEqual(numbers.map((_, i) => i + 1))
  expect(numbers.length).toBeGreaterThan(10)
  for (const [number, files] of cited)
    expect({ files, isThere: numbers.includes(number) }).toEqual({ files, isThere: true })
})

test('files that the page names are there', () => {
  const named = [...page.matchAll(/`((?:[a-z-]+\/)*[a-z-]+\.ts)`/g)].map(([, file]) => file as string)
  expect(named.length).toBeGreaterThan(5)
  const all = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
  for (const file of named) expect([file, all.some((found) => found.endsWith(file))]).toEqual([file, true])
})
