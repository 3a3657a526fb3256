import { interruptDemo, runDemo, valuesOf } from './demo-run.ts'

const timeoutMs = 300_000
const takeOver =
  /^killed w\d, which held shards [\d ]+, (with an invocation|none was) in flight: detected after [\d,]+ ms, taken over [\d,]+ ms later, first record/m

const withoutTimes = (stderr: string): string =>
  stderr.replaceAll(/^missed: (detection to take-over|SIGKILL to first record), .*\n/gm, '')

test(
  'S1: a killed worker costs no record; its shards go on at their checkpoints, and repeats are absorbed',
  async () => {
    const run = await runDemo(
      // Long enough before the kill that a line shows all workers, and behind it.
      ...(['partitions', '--seconds', '8', '--kill-after', '5', '--shards', '6', '--rate', '120'] as const),
    )
    // How fast it was depends on the machine, so the exit code may be 1 for that alone.
    expect(withoutTimes(run.stderr)).toBe('')
    expect(run.code).toBe(run.ok ? 0 : 1)
    expect(run.command).toBe('npm run demo:partitions')
    const counts = valuesOf(run, 'lost', 'in the table without reason', 'duplicates with other content')
    expect(counts).toEqual([0, 0, 0])
    const [sent, kept, rows] = valuesOf(run, 'sent', 'kept by the filter', 'in the output table')
    expect(sent).toBeGreaterThan(300)
    expect(kept).toBeLessThan(sent ?? 0)
    expect(rows).toBe(kept)
    expect(valuesOf(run, 'workers killed', 'orphaned shards', 'resumed at the last checkpoint')).toEqual([1, 2, 2])
    expect(valuesOf(run, 'checkpointed before the output was there')).toEqual([0])
    expect(run.figures.get('detection to take-over, slowest orphan')).toMatchObject({ unit: 'ms', goal: 300 })
    expect(run.figures.get('SIGKILL to first record, slowest orphan')).toMatchObject({ unit: 'ms', goal: 1_000 })
    expect(run.stdout).toMatch(takeOver)
    expect(run.stdout).toMatch(/\| w1 holds \d \d, w2 holds \d \d, w3 holds \d \d \| 0 killed$/m)
  },
  timeoutMs,
)

test(
  'S1: more workers than shards run no more invocations at once than there are shards',
  async () => {
    const run = await runDemo('partitions', '--seconds', '6', '--shards', '2', '--workers', '3')
    expect(withoutTimes(run.stderr)).toBe('')
    expect(run.figures.get('parallelism: min(shards, workers)')).toMatchObject({ value: 2, goal: 2, better: 'exactly' })
    // Nobody said when, so one is killed halfway.
    expect(valuesOf(run, 'workers killed', 'lost')).toEqual([1, 0])
  },
  timeoutMs,
)

test(
  'S1: Ctrl-C, which reaches the workers too, ends the run with what was sent processed, and kills nobody',
  async () => {
    const run = await interruptDemo(
      / out [1-9]/,
      ...(['partitions', '--seconds', '600', '--kill-after', '599', '--shards', '4'] as const),
    )
    // A run that is cut this short need not have had all workers at once.
    expect(run.missed?.filter((name) => !name.startsWith('parallelism'))).toEqual([])
    expect(run.code).toBe(run.ok ? 0 : 1)
    expect(run.stdout).toContain('Stopping. Ctrl-C again stops at once.')
    expect(valuesOf(run, 'lost', 'duplicates absorbed', 'workers killed')).toEqual([0, 0, 0])
    expect(run.figures.get('in the output table')?.value).toBeGreaterThan(0)
  },
  timeoutMs,
)

test(
  'S1: a missed goal is named, in the file too, and the exit code is 1',
  async () => {
    // One record a second, so that two orphans cannot both have one within a second.
    const run = await runDemo(
      ...(['partitions', '--shards', '6', '--rate', '1', '--seconds', '2', '--kill-after', '1'] as const),
    )
    const figure = 'SIGKILL to first record, slowest orphan'
    expect([run.code, run.ok]).toEqual([1, false])
    expect(run.missed).toContain(figure)
    expect(run.stderr).toMatch(new RegExp(`^missed: ${figure} (is \\d+ ms|never came), the goal is at most 1000$`, 'm'))
    expect(run.stdout).toMatch(new RegExp(`^${figure} .* at most 1,000 +MISSED$`, 'm'))
    expect([...run.figures.values()].filter(({ value }) => typeof value !== 'number')).toEqual([])
    expect(run.figures.get('lost')).toEqual({ name: 'lost', value: 0, unit: 'records', goal: 0, better: 'lower' })
  },
  timeoutMs,
)

test('a kill that would come after the end is refused', async () => {
  const run = await runDemo('partitions', '--seconds', '2', '--kill-after', '2')
  expect([run.code, run.stdout]).toEqual([2, ''])
  expect(run.stderr).toBe(
    'npm run demo:partitions: --kill-after 2 kills nobody: the run ends before, with --seconds 2. `npm run demo:partitions -- --help` lists the flags.\n',
  )
})

test('wrong flags are one line and exit code 2, before anything runs', async () => {
  const run = await runDemo('partitions', '--kill-after', 'soon')
  expect([run.code, run.stdout]).toEqual([2, ''])
  expect(run.stderr).toBe(
    'npm run demo:partitions: --kill-after soon is not a number from 0.1 to 600. `npm run demo:partitions -- --help` lists the flags.\n',
  )
})
