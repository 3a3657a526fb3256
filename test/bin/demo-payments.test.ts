import { runDemo, valuesOf } from './demo-run.ts'

test('S2: workers are added to a running stream, and every payment comes out once, where it belongs', async () => {
  const run = await runDemo(
    ...([
      'payments',
      '--seconds',
      '1',
      '--from',
      '1',
      '--to',
      '3',
      '--shards',
      '2',
      '--factor',
      '2',
      '--backlog',
      '400',
    ] as const),
  )
  // How much faster three are than one depends on the machine, so the exit code may be 1 for that alone.
  expect(run.stderr.replaceAll(/^missed: sink 20 ms away: 3 workers against 1 .*\n/gm, '')).toBe('')
  expect(run.code).toBe(run.ok ? 0 : 1)
  const [sent, ...came] = valuesOf(run, 'payments sent', 'validated', 'rejected', 'dead letters')
  expect(Math.min(...came.map((count) => count ?? 0))).toBeGreaterThan(0)
  expect(came.reduce<number>((sum, count) => sum + (count ?? 0), 0)).toBe(sent)
  expect(valuesOf(run, 'lost', 'in the wrong output', 'repeated outputs')).toEqual([0, 0, 0])
  expect(run.figures.get('sink 20 ms away: 3 workers against 1')).toMatchObject({ goal: 2.7, unit: 'times' })
  expect(run.figures.get('CPU-bound: 3 workers against 1')?.goal).toBeUndefined()
  expect(run.stdout).toMatch(/^.*\| sink 20 ms away \| 1 workers \|.*$/m)
  expect(run.stdout).toMatch(/^.*\| sink 20 ms away \| 3 workers \|.*$/m)
  expect(run.stdout).toContain('one invocation per shard times parallelization factor, here at most 2 x 2 = 4')
}, 300_000)
