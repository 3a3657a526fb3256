/** Each query, through the whole stack, comes to what DuckDB makes of the whole file at once. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventLines } from '../../bin/nexmark/delivery.ts'
import { Random } from '../../bin/nexmark/random.ts'
import { queries } from '../../functions/nexmark/queries.ts'
import { seconds } from '../../lib/index.ts'
import { type BatchQuery, openBatch } from './batch-queries.ts'
import { runLines } from './run-lines.ts'

// Queries over tens of thousands of events take their time on a busy machine.
jest.setTimeout(120_000)

const names = ['q0', 'q1', 'q2', 'q5', 'q7', 'q11', 'q12', 'q14', 'q21', 'q22']

it('covers every query that there is', () => {
  expect(Object.keys(queries)).toEqual(names)
})

/** Opens the lines for DuckDB while the tests of a group run. */
function inBatch(lines: readonly string[]): { readonly rows: BatchQuery } {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-nexmark-'))
  let batch: { readonly rows: BatchQuery; readonly close: () => void }
  beforeAll(async () => {
    const file = join(directory, 'events.ndjson')
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
    batch = await openBatch(file)
  })
  afterAll(() => {
    batch.close()
    rmSync(directory, { recursive: true })
  })
  return { rows: (query) => batch.rows(query) }
}

// At 200 events a second a file is 60 s: 7 tumbling windows, 35 hops, and several sessions of most bidders.
const options = { events: 12_000, rate: 200 }

describe.each([
  { seed: 1, disorderMs: 0, partitions: 4 },
  { seed: 1, disorderMs: 4_000, partitions: 4 },
  { seed: 77, disorderMs: 0, partitions: 1 },
  { seed: 77, disorderMs: 4_000, partitions: 7 },
])('seed $seed with a disorder of $disorderMs ms in $partitions partitions', ({ seed, disorderMs, partitions }) => {
  const lines = [...eventLines({ ...options, seed, disorderMs })]
  const batch = inBatch(lines)

  it.each(names)('%s equals the batch query', async (query) => {
    const expected = (await batch.rows(query)).toSorted()
    const { results, late, deadLetters } = await runLines(query, lines, { partitions, batchSize: 500 })
    expect(results).toEqual(expected)
    expect(expected.length).toBeGreaterThan(0)
    expect([late, deadLetters]).toEqual([[], []])
  })
})

/** The lines in an order that has nothing to do with their times, the same for a seed. */
const shuffled = (lines: readonly string[], seed: number): readonly string[] => {
  const random = new Random()
  const placed = lines.map((line, i) => [random.restart('delay', seed, i).fraction(), line] as const)
  return placed.toSorted(([a], [b]) => a - b).map(([, line]) => line)
}

// Half as many: each query runs twice here.
const fewer = { events: 6_000, rate: 100 }

const orders: Readonly<Record<string, (seed: number) => readonly string[]>> = {
  'with a disorder of 15 s': (seed) => [...eventLines({ ...fewer, seed, disorderMs: 15_000 })],
  shuffled: (seed) => shuffled([...eventLines({ ...fewer, seed })], seed),
  backwards: (seed) => [...eventLines({ ...fewer, seed })].reverse(),
  'as one log behind another of the same time': (seed) => [
    ...eventLines({ ...fewer, seed }),
    ...eventLines({ ...fewer, seed: seed + 1, disorderMs: 500 }),
  ],
}

describe.each(Object.keys(orders))('events %s', (order) => {
  describe.each([1, 77])('of seed %d', (seed) => {
    const lines = orders[order]?.(seed) as readonly string[]
    const batch = inBatch(lines)

    it.each(['q5', 'q7', 'q11', 'q12'])(
      '%s equals the batch query, and would not with less allowance',
      async (query) => {
        const expected = (await batch.rows(query)).toSorted()
        const { results, late, deadLetters } = await runLines(query, lines, { batchSize: 500 })
        expect(results).toEqual(expected)
        expect([late, deadLetters]).toEqual([[], []])
        const strict = await runLines(query, lines, { batchSize: 500, outOfOrderness: seconds(4) })
        expect(strict.late.length).toBeGreaterThan(0)
        expect(strict.results).not.toEqual(expected)
      },
    )
  })
})

it('q14 meets all parts of a day', async () => {
  const lines = [...eventLines({ events: 50_000, rate: 1, baseTimeMs: Date.UTC(2024, 2, 1, 5, 30), seed: 3 })]
  const { results } = await runLines('q14', lines, { addition: 10_000, batchSize: 10_000 })
  const types = new Set(results.map((line) => JSON.parse(line).bidTimeType))
  expect([...types].toSorted()).toEqual(['dayTime', 'nightTime', 'otherTime'])
})
