import { runDemo, valuesOf } from './demo-run.ts'

test('S3: three kinds of table, one call per batch at most, staleness and cache hits shown', async () => {
  const run = await runDemo('enrichment', '--seconds', '3', '--rate', '200', '--shards', '2', '--workers', '1')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  expect(valuesOf(run, 'lost', 'enriched wrongly')).toEqual([0, 0])
  const [calls, batches] = valuesOf(run, 'lookup calls', 'batches')
  expect(calls).toBeGreaterThan(0)
  expect(calls).toBeLessThanOrEqual(batches ?? 0)
  expect(valuesOf(run, 'lookup calls per batch, at most')).toEqual([1])
  expect(valuesOf(run, 'lookup calls that the service counted otherwise')).toEqual([0])
  expect(run.figures.get('cache hits')?.value).toBeGreaterThan(0)
  expect(run.figures.get('price lists used')?.value).toBeGreaterThan(1)
  expect(run.figures.get('per-record calls refused')).toMatchObject({ value: 5, goal: 5 })
  expect(run.stdout).toMatch(/\| prices: list [1-9]\d*, \d+\.\d s old \| customers: [\d,]+ cache hits, [\d,]+ misses/)
}, 300_000)
