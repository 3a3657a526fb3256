import { ConfigurationError, TerminalError } from '../../../lib/core/errors.ts'
import { type Aggregator, custom } from '../../../lib/operators/aggregators/aggregator.ts'
import { approximateDistinct } from '../../../lib/operators/aggregators/approximate-distinct.ts'
import { collect } from '../../../lib/operators/aggregators/collect.ts'
import { distinct } from '../../../lib/operators/aggregators/distinct.ts'
import { max, min } from '../../../lib/operators/aggregators/extremes.ts'
import { first } from '../../../lib/operators/aggregators/first-last.ts'
import { GrowingSet } from '../../../lib/operators/aggregators/growing-set.ts'
import { named } from '../../../lib/operators/aggregators/named.ts'
import { quantile } from '../../../lib/operators/aggregators/quantile.ts'
import { mean, sum } from '../../../lib/operators/aggregators/sum.ts'
import { topN } from '../../../lib/operators/aggregators/top-n.ts'
import type { StateValue } from '../../../lib/state/state-store.ts'
import { stored } from './gather.ts'

const at = { eventTimeMs: 0 }
const self = <T>(value: T): T => value

function of<T, O, A>(aggregator: Aggregator<T, O, A>, values: readonly T[]): O {
  return aggregator.result(values.reduce((all, value) => aggregator.add(all, value, at), aggregator.init()))
}

test('a sum of fractions is rounded once', () => {
  expect(of(sum(self<number>), Array(10).fill(0.1))).toBe(1)
  expect(of(sum(self<number>), [1e100, 1, -1e100])).toBe(1)
  expect(of(sum(self<number>), [1e308, 1e308, -1e308])).toBe(1e308)
  expect(of(sum(self<number>), [5e-324, -0])).toBe(5e-324)
  expect(of(sum(self<number>), [2 ** 53, 1, 1])).toBe(2 ** 53 + 2)
})

test('equal sums are stored alike, whatever they were made of', () => {
  const aggregator = sum(self<number>)
  const encoded = (values: number[]) =>
    aggregator.encode(values.reduce((all, n) => aggregator.add(all, n, at), aggregator.init()))
  expect(encoded([0.5, 0.5])).toBe(1)
  expect(encoded([0.1, 0.2])).toEqual(encoded([0.2, 0.1]))
  expect(encoded([1e100, 0.75, -1e100])).toEqual(encoded([0.5, 0.25]))
})

test('a selector leaves a record out by undefined; where it left all out, there is no result', () => {
  const some = (n: number) => (n > 2 ? n : undefined)
  const cases: [Aggregator<number, unknown>, unknown, unknown][] = [
    [sum(some), 7, null],
    [mean(some), 3.5, null],
    [min(some), 3, null],
    [max(some), 4, null],
    [first(some), 3, null],
    [quantile(1, some), 4, null],
    [distinct(some), 2, 0],
    [approximateDistinct(some), 2, 0],
    [topN(1, some), [4], []],
    [collect({ atMost: 9, keep: some }), [3, 4], []],
  ]
  for (const [aggregator, result, none] of cases) {
    expect(of(aggregator, [1, 2, 3, 4])).toEqual(result)
    expect(of(aggregator, [1, 2])).toEqual(none)
    expect(aggregator.result(stored(aggregator, aggregator.init()))).toEqual(none)
  }
})

test.each<[string, Aggregator<unknown, unknown>, unknown]>([
  ['sum', sum(self as never), 'x'],
  ['sum', sum(self as never), Number.NaN],
  ['sum', sum(self as never), null],
  ['mean', mean(self as never), Number.POSITIVE_INFINITY],
  ['min', min(self as never), Number.NaN],
  ['max', max(self as never), {}],
  ['quantile', quantile(0.5, self as never), 'x'],
  ['distinct', distinct(self as never), Number.NaN],
  ['topN', topN(2, self as never), null],
])('%s refuses a value that is none of its own', (name, aggregator, value) => {
  expect(() => of(aggregator, [value])).toThrow(TerminalError)
  expect(() => of(aggregator, [value])).toThrow(`the selector of ${name} gave`)
})

test('numbers and bigints are not added to each other', () => {
  const aggregator = sum(self as (n: number | bigint) => number)
  const told = 'numbers and bigints cannot be mixed, and it gave'
  expect(() => of(aggregator, [1, 7n])).toThrow(
    `the selector of sum gave a bigint: ${told} numbers before: give numbers, or undefined to leave the record out`,
  )
  expect(() => of(aggregator, [1n, 7])).toThrow(
    `the selector of sum gave 7: ${told} bigints before: give bigints, or undefined to leave the record out`,
  )
  const [number, bigint] = [1, 1n].map((value) => aggregator.add(aggregator.init(), value, at))
  for (const [a, b] of [
    [number, bigint],
    [bigint, number],
  ] as const) {
    const merge = () => aggregator.merge(a as never, b as never)
    expect(merge).toThrow(TerminalError)
    expect(merge).toThrow('gave numbers for some records of a window and bigints for others, which cannot be mixed')
  }
})

test('what is kept is what the table returns: anything else is refused at once', () => {
  expect(() => of(first<unknown>(), [new Date(0)])).toThrow('is a Date')
  expect(() => of(collect<unknown>({ atMost: 1 }), [{ x: undefined }])).toThrow('is undefined')
  expect(() =>
    of(
      topN<unknown>(1, () => 1),
      [new Map()],
    ),
  ).toThrow('is a Map')
  const dated = custom({ init: () => ({}), add: () => ({ at: new Date(0) }), merge: (a) => a, result: self })
  expect(() => of(dated, [1])).toThrow('`add` of a custom aggregator gave.at is a Date')
})

test('a custom accumulator that a value leaves as it is stays the same, and what `init` gave is looked through like any other', () => {
  const largest = custom<number, { readonly of: readonly number[] }, number>({
    init: () => nothing,
    add: (before, n) => (n > (before.of[0] ?? 0) ? { of: [n] } : before),
    merge: (a, b) => ((a.of[0] ?? 0) >= (b.of[0] ?? 0) ? a : b),
    result: ({ of: [most = 0] }) => most,
  })
  const nothing = { of: [] as number[] }
  const begun = largest.add(largest.init(), -1, at)
  expect([begun === nothing, begun, Object.isFrozen(begun), Object.isFrozen(begun.of)]).toEqual([
    false,
    nothing,
    true,
    true,
  ])
  const five = largest.add(begun, 5, at)
  expect([largest.add(five, 3, at), largest.merge(five, begun), largest.merge(begun, five)]).toEqual([five, five, five])
  expect(largest.add(five, 3, at)).toBe(five)
  expect(largest.merge(begun, five)).toBe(five)
  expect(largest.add(largest.decode(stored(largest, five)), 4, at)).toEqual({ of: [5] })

  const dated = custom({ init: () => ({ at: new Date(0) }), add: self, merge: self, result: self })
  expect(() => of(dated, [1])).toThrow('`add` of a custom aggregator gave.at is a Date')
})

test('bytes in a custom accumulator are copied each time: they cannot be frozen', () => {
  const last = custom<number, Uint8Array, number>({
    init: () => new Uint8Array(1),
    add(bytes, n) {
      bytes[0] = n
      return bytes
    },
    merge: self,
    result: ([n = 0]) => n,
  })
  const one = last.add(last.init(), 1, at)
  const loaded = last.decode(stored(last, one))
  for (const before of [one, loaded]) {
    const two = last.add(before, 2, at)
    last.add(two, 3, at)
    const four = last.add(two, 4, at)
    expect([four === two, last.result(four)]).toEqual([false, 4])
  }
})

test('no step can change a custom accumulator', () => {
  const changing = custom<number, { n: number }, number>({
    init: () => ({ n: 0 }),
    add: (all, n) => {
      all.n += n
      return all
    },
    merge: (a, b) => ({ n: a.n + b.n }),
    result: ({ n }) => n,
  })
  expect(() => of(changing, [1, 2])).toThrow(TypeError)
})

test('of what a release stored that kept more values, collect and topN read as many as they keep', () => {
  const keeping = (most: number) => [collect<number>({ atMost: most }), topN(most, self<number>)] as const
  const [collected, highest] = keeping(3)
  const before = [1, 3, 2]
  const values = before.reduce((all, value) => collected.add(all, value, { eventTimeMs: value }), collected.init())
  const [nowCollected, nowHighest] = keeping(2)
  const written = collected.encode?.(values) as StateValue
  expect(nowCollected.result(nowCollected.decode?.(written) as typeof values)).toEqual([2, 3])
  const ranked = before.reduce((all, value) => highest.add(all, value, at), highest.init())
  const rankedWritten = highest.encode?.(ranked) as StateValue
  expect(nowHighest.result(nowHighest.decode?.(rankedWritten) as typeof ranked)).toEqual([3, 2])
})

test('of values of one time, collect and topN keep those that content puts first, whichever came first', () => {
  for (const values of [
    ['a', 'b', 'c'],
    ['c', 'b', 'a'],
    ['b', 'c', 'a'],
  ]) {
    expect(of(collect<string>({ atMost: 2 }), values)).toEqual(['b', 'c'])
    expect(
      of(
        topN(2, (_value: string) => 1),
        values,
      ),
    ).toEqual(['a', 'b'])
  }
})

test('a promise is refused', () => {
  expect(() => of(sum((async () => 1) as never) as Aggregator<number, unknown>, [1])).toThrow('returned a promise')
  const later = custom<number, unknown, unknown>({
    init: () => 0,
    add: async () => 1,
    merge: (a) => a,
    result: (a) => a,
  })
  expect(() => of(later, [1])).toThrow('returned a promise')
})

test.each<[() => unknown, string]>([
  [() => topN(0, self<number>), 'topN: 0 is no bound'],
  [() => topN(1, (() => 1) as never, { order: 'best' as never }), `say 'largest' or 'smallest'`],
  [() => collect({} as never), 'collect: atMost is undefined is no bound'],
  [() => quantile(90, self as never), 'quantile(90): give a share from 0 to 1'],
  [() => quantile(0.5, self as never, { relativeError: 0 }), 'the relative error 0'],
  [() => approximateDistinct(self as never, { precision: 20 }), 'the precision 20'],
  [() => named('window "w"', {}), 'window "w" has no aggregator'],
  [() => named('window "w"', { n: (() => 1) as never }), '"n" of window "w" is no aggregator'],
  [() => named('window "w"', { '': sum(self as never) }), 'names an aggregator ""'],
])('refuses what cannot be one', (make, message) => {
  expect(make).toThrow(ConfigurationError)
  expect(make).toThrow(message)
})

test.each<[readonly number[], number]>([
  [[1e308, 1e308], 1e308],
  [[-1e308, -1.5e308, -1.7e308], -1.4e308],
  [[Number.MAX_VALUE, Number.MAX_VALUE, Number.MAX_VALUE], Number.MAX_VALUE],
  [[Number.MAX_VALUE, Number.MAX_VALUE, 0.1], 6_004_799_503_160_661 * 2 ** 971],
])('the mean of %j is %d, though no number holds their sum', (values, expected) => {
  const parts = mean(self<number>)
  expect(of(parts, values)).toBe(expected)
  const merged = values.map((value) => parts.add(parts.init(), value, at)).reduce((a, b) => parts.merge(a, b))
  expect(parts.result(parts.decode(parts.encode(merged)))).toBe(expected)
})

test('an aggregator that was added since starts anew, and one that went is forgotten', () => {
  const before = named<number, Record<string, Aggregator<number, unknown>>>('w', { sum: sum(self<number>) })
  const after = named('w', { max: max(self<number>), sum: sum(self<number>) })
  const kept = before.encode(before.add(before.init(), 7, at))
  const goesOn = after.add(after.decode(kept), 2, at)
  expect(after.result(goesOn)).toEqual({ max: 2, sum: 9 })
})

describe('a growing set', () => {
  test('that is not the largest any more goes on alone', () => {
    const one = GrowingSet.empty().with('a')
    const two = one.with('b')
    const other = one.with('c')
    const again = one.with('b')
    expect([one, two, other, again].map((set) => set.sorted())).toEqual([['a'], ['a', 'b'], ['a', 'c'], ['a', 'b']])
    expect(other.with('b').sorted()).toEqual(['a', 'b', 'c'])
    expect(two.has('c')).toBe(false)
  })
})

describe('approximate distinct', () => {
  test.each([10, 1_000, 10_000, 200_000])('is off by little at %d values', (size) => {
    const aggregator = approximateDistinct(self<number>)
    let sketch = aggregator.init()
    for (let i = 0; i < size; i += 1) sketch = aggregator.add(sketch, i, at)
    // Four standard deviations; few values are told exactly.
    expect(Math.abs(aggregator.result(sketch) - size)).toBeLessThanOrEqual(size * 0.065)
    const bytes = stored(aggregator, sketch)
    expect(aggregator.result(bytes)).toBe(aggregator.result(sketch))
    if (size > 1_000) expect((bytes as Uint8Array).byteLength).toBe(4_096)
  })
})

test('a quantile over far more magnitudes than it keeps ranges for still tells the larger ones', () => {
  const aggregator = quantile(0.75, self<number>)
  let sketch = aggregator.init()
  for (let power = -120; power < 120; power += 1) sketch = aggregator.add(sketch, 10 ** power, at)
  const upper = aggregator.result(sketch) as number
  expect(Math.abs(upper / 1e59 - 1)).toBeGreaterThan(1)
  const near = quantile(0.95, self<number>)
  const wanted = 10 ** 107
  expect(Math.abs((near.result(sketch) as number) / wanted - 1)).toBeLessThan(0.0101)
  expect(near.encode(sketch)).toMatchObject([1e-120, 1e119, 0, [], expect.any(Array)])
})
