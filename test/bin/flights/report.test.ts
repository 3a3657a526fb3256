import { type Outcome, Outcomes } from '../../../bin/flights/outcomes.ts'
import { compare, comparisonTable, differenceLines, figures, printable } from '../../../bin/flights/report.ts'

const clean = (identity: string, content = 'same'): Outcome => ({ kind: 'clean', identity, reason: '', content })
const rejected = (identity: string, reason: string): Outcome => ({ kind: 'rejected', identity, reason, content: '' })
const dead = (payload: string, reason: string): Outcome => ({
  kind: 'dead letter',
  identity: Buffer.from(payload).toString('base64'),
  reason,
  content: '',
})

function outcomes(...list: readonly Outcome[]): Outcomes {
  const made = new Outcomes()
  for (const outcome of list) made.add(outcome)
  return made
}

test('the same outcomes are equal, whatever came more than once', () => {
  const found = outcomes(clean('a'), clean('a'), rejected('b', 'late'), dead('{', 'not-json'))
  const comparison = compare(found, outcomes(clean('a'), rejected('b', 'late'), dead('{', 'not-json')))
  expect(comparison.isEqual).toBe(true)
  expect(found.repeats).toBe(1)
})

test.each([
  ['a missing one', outcomes(), outcomes(clean('a')), 'clean a is missing from the output streams'],
  ['one too many', outcomes(clean('a')), outcomes(), 'clean a is in the output streams and should not be'],
  [
    'another content',
    outcomes(clean('a', 'x')),
    outcomes(clean('a', 'y')),
    'clean a has another content or reason:  x',
  ],
  [
    'another reason',
    outcomes(rejected('a', 'p')),
    outcomes(rejected('a', 'q')),
    'rejected a (q) has another content or reason: p ',
  ],
  [
    'a contradiction',
    outcomes(clean('a'), clean('a', 'other')),
    outcomes(clean('a')),
    'clean a came twice with different content',
  ],
  [
    'a dead letter',
    outcomes(),
    outcomes(dead('{\xff', 'not-utf8')),
    'dead letter {\\xc3\\xbf (not-utf8) is missing from the output streams',
  ],
])('%s is a difference', (_, found, expected, line) => {
  const comparison = compare(found, expected)
  expect(comparison.isEqual).toBe(false)
  expect(comparison.differences).toEqual([line])
})

test('equal counts with swapped identities are different', () => {
  const comparison = compare(outcomes(clean('a')), outcomes(clean('b')))
  expect(comparison.rows.every(({ found, expected }) => found === expected)).toBe(true)
  expect(comparison.isEqual).toBe(false)
})

test('the table shows kinds, reasons and verdicts with thousands separators', () => {
  const many = outcomes(...Array.from({ length: 1_234 }, (_, index) => clean(String(index))), rejected('x', 'late'))
  const lines = comparisonTable(compare(many, outcomes(rejected('x', 'late'))))
  expect(lines).toEqual([
    '                output streams  batch scan',
    '  records                1,235           1  DIFFERENT',
    '  clean                  1,234           0  DIFFERENT',
    '  rejected                   1           1  equal',
    '    late                     1           1  equal',
    '  dead letters               0           0  equal',
  ])
})

test('long lists of differences are cut', () => {
  const many = outcomes(...Array.from({ length: 25 }, (_, index) => clean(String(index))))
  const lines = differenceLines(compare(many, outcomes()))
  expect(lines).toHaveLength(11)
  expect(lines.at(-1)).toBe('  and 15 more')
})

test('figures carry what the batch scan says as their goal', () => {
  const comparison = compare(outcomes(clean('a')), outcomes(clean('a'), rejected('b', 'late')))
  const list = figures([comparison], 3, { records: 100, ms: 2_000 })
  expect(list).toContainEqual({ name: 'rejected: late', value: 0, unit: 'records', goal: 1 })
  expect(list).toContainEqual({ name: 'differences', value: 1, unit: 'records', goal: 0 })
  expect(list).toContainEqual({ name: 'throughput of this run', value: 50, unit: 'records/s' })
  expect(list).toContainEqual({ name: 'repeats absorbed', value: 3, unit: 'records' })
})

test('payloads are printed without control characters', () => {
  expect(printable(Buffer.from([0x7b, 0x1b, 0x5b, 0xff]))).toBe('{\\x1b[\\xff')
  expect(printable(Buffer.alloc(500, 'a'))).toHaveLength(201)
})
