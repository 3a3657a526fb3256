import { minutes, seconds } from '../../lib/core/duration.ts'
import { TerminalError } from '../../lib/core/errors.ts'
import { type RecordInfo, SourceRecord } from '../../lib/core/record.ts'
import { type Arm, linkBranch, otherwise } from '../../lib/operators/branch.ts'
import { enrich } from '../../lib/operators/enrich/enrich.ts'
import { lookup, notLoaded, refreshedTable, staticTable, type TableView } from '../../lib/operators/enrich/table.ts'
import { filter } from '../../lib/operators/filter.ts'
import { flatMap } from '../../lib/operators/flat-map.ts'
import { map } from '../../lib/operators/map.ts'
import type { Operator } from '../../lib/operators/operator.ts'

const record = new SourceRecord({ source: 's', partition: 'p', position: '1', arrivalTimeMs: 0, payload: null })

/** Runs values through an operator, and shows what it handed on. */
function run<I, O>(operator: Operator<I, O>, values: readonly I[], view?: Partial<TableView<unknown>>): O[] {
  const seen: O[] = []
  const table = { get: () => undefined, freshness: () => ({ loadedAtMs: 1, stalenessMs: 2 }), ...view }
  const emit = operator.link(
    (value, at: RecordInfo) => {
      expect(at).toBe(record)
      seen.push(value)
    },
    { step: operator.kind, table: () => table },
  )
  for (const value of values) emit(value, record)
  return seen
}

test('map gives one value for each, undefined and null included', () => {
  expect(
    run(
      map((n: number) => [undefined, null, n][n]),
      [0, 1, 2],
    ),
  ).toEqual([undefined, null, 2])
})

test('filter lets pass what its predicate holds for', () => {
  expect(
    run(
      filter((n: number) => n % 2 === 0),
      [1, 2, 3, 4],
    ),
  ).toEqual([2, 4])
})

test('flatMap gives any number, in order, of any iterable', () => {
  function* upTo(n: number) {
    for (let i = 0; i < n; i++) yield i
  }
  expect(run(flatMap(upTo), [0, 2, 3])).toEqual([0, 1, 0, 1, 2])
  expect(
    run(
      flatMap((n: number) => new Set([n, n, 7])),
      [1],
    ),
  ).toEqual([1, 7])
})

test('a value goes to the first arm that takes it, and to that one only', () => {
  const taken: string[] = []
  const arm = (name: string, takes: Arm<number>['takes']): Parameters<typeof linkBranch<number>>[0][number] => ({
    name,
    takes,
    next: (n: number) => void taken.push(`${name}${n}`),
  })
  const emit = linkBranch<number>([arm('small', (n) => n < 10), arm('tiny', (n) => n < 5), arm('rest', otherwise)], {
    step: 'branch',
  })
  for (const n of [1, 9, 10]) emit(n, record)
  expect(taken).toEqual(['small1', 'small9', 'rest10'])
})

test('enrich joins the row of the key, none for no key, and nothing for a row that is still to be loaded', () => {
  const table = staticTable<string>('t', () => new Map())
  const step = enrich<string, string, unknown>({
    from: table,
    key: (v) => (v === 'none' ? undefined : v),
    join: (value, row, { loadedAtMs, stalenessMs }) => ({ value, row, loadedAtMs, stalenessMs }),
  })
  const rows = new Map<string, string | typeof notLoaded>([
    ['a', 'A'],
    ['later', notLoaded],
  ])
  expect(run(step, ['a', 'b', 'later', 'none'], { get: (key) => rows.get(key) })).toEqual([
    { value: 'a', row: 'A', loadedAtMs: 1, stalenessMs: 2 },
    { value: 'b', row: undefined, loadedAtMs: 1, stalenessMs: 2 },
    { value: 'none', row: undefined, loadedAtMs: 0, stalenessMs: 0 },
  ])
})

// Each would end as `{}` in a sink. Where the types do not stop it (plain JavaScript, `as`), the step itself does.
const promised = <T>(value: T): T => Promise.resolve(value) as T
// biome-ignore lint/suspicious/noThenProperty: it is what must be refused
const thenable = <T>(value: T): T => ({ then: () => value }) as T
const table = staticTable<number>('t', () => new Map())
test.each<[string, Operator<number, number>]>([
  ['map', map((n) => promised(n))],
  ['a map to a thenable', map((n) => thenable(n))],
  ['filter', filter((n) => promised(n > 0))],
  ['flatMap', flatMap((n) => promised([n]))],
  ['flatMap of promises', flatMap((n) => [promised(n)])],
  ['enrich', enrich({ from: table, key: String, join: (n) => promised(n) })],
  [
    'branch',
    {
      kind: 'branch',
      link: (next, context) => linkBranch([{ name: 'a', takes: (n) => promised(n > 0), next }], context),
    },
  ],
])('%s refuses a promise and hands nothing on', (_what, operator) => {
  const seen: number[] = []
  const emit = operator.link((n) => void seen.push(n), {
    step: operator.kind,
    table: () => ({ get: () => 1, freshness: () => ({ loadedAtMs: 0, stalenessMs: 0 }) }),
  })
  expect(() => emit(1, record)).toThrow(TerminalError)
  expect(() => emit(1, record)).toThrow(/returned a promise, but steps are synchronous.*enrich/)
  expect(seen).toEqual([])
})

test('the rejection of a refused promise does not end the process', async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', listen)
  expect(() =>
    run(
      map((_: number) => Promise.reject(null) as unknown),
      [1],
    ),
  ).toThrow('returned a promise')
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(unhandled).toEqual([])
})

test('tables carry their settings in ms', () => {
  const load = async () => new Map<string, number>()
  expect(refreshedTable('r', { load, every: minutes(5) })).toMatchObject({
    everyMs: 300_000,
    maxStalenessMs: Number.POSITIVE_INFINITY,
    acknowledged: false,
  })
  expect(lookup('l', { load, ttl: seconds(1), answers: 'may-change' })).toMatchObject({
    ttlMs: 1_000,
    maxEntries: 10_000,
    acknowledged: true,
  })
})

test('a table refuses a bare number, and what is no length of time', () => {
  const load = async () => new Map<string, number>()
  const every = minutes(5)
  expect(() => refreshedTable('r', { load, every: 5 as never })).toThrow('table "r": every is 5: ')
  expect(() => refreshedTable('r', { load, every, maxStaleness: { ms: Number.NaN } })).toThrow(
    'table "r": maxStaleness is NaN ms: ',
  )
  expect(() => lookup('l', { load, ttl: 60_000 as never })).toThrow('table "l": ttl is 60000: ')
  expect(() => lookup('l', { load } as never)).toThrow('table "l": ttl is undefined: ')
})

test('a table cannot be staler than its refresh makes it', () => {
  const load = async () => new Map<string, number>()
  expect(() => refreshedTable('rates', { load, every: minutes(5), maxStaleness: minutes(1) })).toThrow(
    'table "rates" is refreshed every 300000 ms but may be no older than 60000 ms',
  )
})
