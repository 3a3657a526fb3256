/** In any order, in any parts, through the table or not: what the naive computation over the whole bag gives. */
import fc from 'fast-check'
import { type Aggregator, custom } from '../../../lib/operators/aggregators/aggregator.ts'
import { approximateDistinct } from '../../../lib/operators/aggregators/approximate-distinct.ts'
import { collect } from '../../../lib/operators/aggregators/collect.ts'
import { count } from '../../../lib/operators/aggregators/count.ts'
import { distinct } from '../../../lib/operators/aggregators/distinct.ts'
import { max, min } from '../../../lib/operators/aggregators/extremes.ts'
import { first, last } from '../../../lib/operators/aggregators/first-last.ts'
import { named } from '../../../lib/operators/aggregators/named.ts'
import { quantile } from '../../../lib/operators/aggregators/quantile.ts'
import { mean, sum } from '../../../lib/operators/aggregators/sum.ts'
import { topN } from '../../../lib/operators/aggregators/top-n.ts'
import { gathered, gatherings, type Timed } from './gather.ts'

/** Fractions, whole numbers, very large and very small ones. */
const numbers = fc.oneof(
  fc.integer({ min: -100, max: 100 }),
  fc.constantFrom(0.1, 0.2, -0.3, 1e16, -1e16, 1, Number.MAX_SAFE_INTEGER, 0, -0, 1e100, -1e100, 1e-100),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e125, max: 1e125 }),
)
const moderate = fc.oneof(
  fc.integer({ min: -1000, max: 1000 }),
  fc.double({ noNaN: true, min: -1e6, max: 1e6 }).map((n) => Math.fround(n) + 0.5 * Math.sign(n)),
)
const self = <T>(value: T): T => value

function holds<T, O>(
  aggregator: Aggregator<T, O>,
  values: fc.Arbitrary<T>,
  naive: (values: readonly Timed<T>[]) => unknown,
): void {
  fc.assert(
    fc.property(gatherings(values), (how) => {
      expect(gathered(aggregator, how)).toEqual(naive(how.values))
    }),
    { numRuns: 300 },
  )
}

/** The exact value as a fraction of 2^1200. */
function exact(value: number): bigint {
  let whole = value
  let shift = 1_200n
  while (!Number.isInteger(whole)) {
    whole *= 2
    shift -= 1n
  }
  return BigInt(whole) << shift
}

/** Whether no other number is nearer to the exact sum. */
function isNearest(result: number, sumOfAll: bigint): boolean {
  const distance = (value: number): bigint => {
    const d = exact(value) - sumOfAll
    return d < 0n ? -d : d
  }
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, result)
  const at = bits.getBigInt64(0)
  const neighbours = [at - 1n, at + 1n].map((one) => {
    bits.setBigInt64(0, one)
    return bits.getFloat64(0)
  })
  return neighbours.every((other) => !Number.isFinite(other) || distance(result) <= distance(other))
}

const valuesOf = <T>(timed: readonly Timed<T>[]): T[] => timed.map(({ value }) => value)
const text = (value: unknown) => JSON.stringify(value)
/** By time, then by content. */
const inOrder = <T>(timed: readonly Timed<T>[]): T[] =>
  valuesOf([...timed].sort((a, b) => a.timeMs - b.timeMs || (text(a.value) < text(b.value) ? -1 : 1)))

test('count', () => {
  holds(count(), numbers, (all) => all.length)
  holds(
    count((n: number) => n > 0),
    numbers,
    (all) => valuesOf(all).filter((n) => n > 0).length,
  )
})

test('sum is the nearest number to the exact sum, in every order', () => {
  fc.assert(
    fc.property(gatherings(numbers), (how) => {
      const result = gathered(sum(self<number>), how) as number | null
      if (how.values.length === 0) return expect(result).toBeNull()
      const all = valuesOf(how.values).reduce((total, n) => total + exact(n), 0n)
      expect(isNearest(result as number, all)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('sum of bigints', () => {
  const naive = (all: readonly Timed<bigint>[]) => (all.length === 0 ? null : valuesOf(all).reduce((a, b) => a + b, 0n))
  holds(sum(self<bigint>), fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }), naive)
})

test('mean is the sum by the count', () => {
  fc.assert(
    fc.property(gatherings(numbers), (how) => {
      const total = gathered(sum(self<number>), how) as number | null
      expect(gathered(mean(self<number>), how)).toBe(total === null ? null : total / how.values.length)
    }),
  )
})

test('min and max, of numbers, bigints and texts', () => {
  const mixed = fc.oneof(
    fc.integer(),
    fc.string({ unit: 'binary' }).filter((t) => t.isWellFormed()),
    fc.bigInt(-9n, 9n),
  )
  const least = <T>(all: readonly Timed<T>[], before: (a: T, b: T) => boolean) =>
    valuesOf(all).reduce<T | null>((a, b) => (a !== null && !before(b, a) ? a : b), null)
  const fractions = fc.oneof(fc.integer(), fc.constantFrom(0.5, -0.5, 0.1, 1e100, -1e-100))
  holds(min(self<number>), fractions, (all) => least(all, (a, b) => a < b))
  holds(max(self<string>), fc.string(), (all) => least(all, (a, b) => a > b))
  const rank = (v: number | bigint | string) => (typeof v === 'string' ? 1 : 0)
  const order = (a: number | bigint | string, b: number | bigint | string): boolean => {
    if (rank(a) !== rank(b)) return rank(a) < rank(b)
    return a < b || (!(b < a) && typeof a < typeof b)
  }
  holds(min(self<number | bigint | string>), mixed, (all) => least(all, order))
  holds(max(self<number | bigint | string>), mixed, (all) => least(all, (a, b) => order(b, a)))
})

const rows = fc.record({ n: fc.integer({ min: 0, max: 3 }), id: fc.constantFrom('a', 'b', 'c', 'd') })
type Row = { readonly n: number; readonly id: string }

test('first and last by event time, ties by content', () => {
  const canonical = ({ id, n }: Row) => ({ id, n })
  const keyed = (all: readonly Timed<Row>[]) => all.map(({ timeMs, value }) => ({ timeMs, value: canonical(value) }))
  holds(first<Row>(), rows, (all) => inOrder(keyed(all))[0] ?? null)
  holds(last<Row>(), rows, (all) => inOrder(keyed(all)).at(-1) ?? null)
  holds(
    last((row: Row) => row.id),
    rows,
    (all) => {
      return inOrder(all.map(({ timeMs, value }) => ({ timeMs, value: value.id }))).at(-1) ?? null
    },
  )
})

test('topN by rank, ties by content, equal values each', () => {
  const naive = (sign: number) => (all: readonly Timed<Row>[]) =>
    valuesOf(all)
      .sort((a, b) => sign * (a.n - b.n) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
      .slice(0, 3)
      .map(({ id }) => id)
  holds(
    topN(3, (row: Row) => row.n, { keep: (row) => row.id }),
    rows,
    naive(-1),
  )
  holds(
    topN(3, (row: Row) => row.n, { keep: (row) => row.id, order: 'smallest' }),
    rows,
    naive(1),
  )
})

test('collect keeps the latest, in the order of time and content', () => {
  holds(collect({ atMost: 5, keep: (row: Row) => row.id }), rows, (all) =>
    inOrder(all.map(({ timeMs, value }) => ({ timeMs, value: value.id }))).slice(-5),
  )
})

test('distinct, exactly: values of different types are different', () => {
  const some = fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom<string | boolean | bigint>('1', 1n, true, 'x'))
  holds(distinct(self<number | string | boolean | bigint>), some, (all) => new Set(valuesOf(all)).size)
})

test('approximate distinct counts depend on the set of values alone', () => {
  const aggregator = approximateDistinct(self<number>, { precision: 5 })
  fc.assert(
    fc.property(gatherings(fc.integer({ min: 0, max: 60 }), 120), (how) => {
      const once = [...new Set(valuesOf(how.values))]
      const all = once.reduce((sketch, n) => aggregator.add(sketch, n, { eventTimeMs: 0 }), aggregator.init())
      expect(gathered(aggregator, how)).toBe(aggregator.result(all))
    }),
  )
})

test('a quantile is within the relative error of the value at its rank, in every order', () => {
  const share = fc.constantFrom(0, 0.01, 0.07, 0.25, 0.5, 0.9, 0.99, 1)
  fc.assert(
    fc.property(gatherings(moderate), share, (how, q) => {
      const result = gathered(quantile(q, self<number>), how) as number | null
      const sorted = valuesOf(how.values).sort((a, b) => a - b)
      if (sorted.length === 0) return expect(result).toBeNull()
      const rank = Math.max(1, Math.ceil(Number(BigInt(Math.round(q * 100)) * BigInt(sorted.length)) / 100))
      const wanted = sorted[rank - 1] as number
      expect(Math.abs((result as number) - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 0.0100001)
    }),
    { numRuns: 500 },
  )
})

test('a quantile over more magnitudes than it keeps ranges for depends on the values alone', () => {
  const wide = fc.integer({ min: -120, max: 120 }).map((power) => 10 ** power)
  const aggregator = quantile(0.5, self<number>)
  fc.assert(
    fc.property(gatherings(wide), (how) => {
      const inOrder = valuesOf(how.values).sort((a, b) => a - b)
      const all = inOrder.reduce((sketch, n) => aggregator.add(sketch, n, { eventTimeMs: 0 }), aggregator.init())
      expect(gathered({ ...aggregator, result: aggregator.encode }, how)).toEqual(aggregator.encode(all))
    }),
  )
})

test('named aggregators give their results by name, a custom one among them', () => {
  const spread = custom<number, { least: number | null; largest: number }, number>({
    init: () => ({ least: null, largest: 0 }),
    add: ({ least, largest }, n) => ({
      least: Math.min(least ?? n, n),
      largest: least === null ? n : Math.max(largest, n),
    }),
    merge: (a, b) => {
      if (a.least === null || b.least === null) return a.least === null ? b : a
      return { least: Math.min(a.least, b.least), largest: Math.max(a.largest, b.largest) }
    },
    result: ({ least, largest }) => largest - (least ?? largest),
  })
  const spreadOf = (all: readonly number[]) => (all.length === 0 ? 0 : Math.max(...all) - Math.min(...all))
  holds<number, unknown>(named('a test', { all: count<number>(), spread }), fc.integer({ min: -9, max: 9 }), (all) => ({
    all: all.length,
    spread: spreadOf(valuesOf(all)),
  }))
})
