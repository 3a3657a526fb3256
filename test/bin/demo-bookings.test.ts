import { runDemo, valuesOf } from './demo-run.ts'

test('S5: a result at close, a revision for a late booking in grace, the late output after it; a blind consumer ends right', async () => {
  const run = await runDemo(
    'bookings',
    '--bookings',
    '600',
    '--hotels',
    '7',
    '--rounds',
    '2',
    '--late',
    '5',
    '--seed',
    '3',
  )
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  expect(valuesOf(run, 'windows that differ from a batch computation', 'dead letters')).toEqual([0, 0])
  expect(valuesOf(run, 'results that correct an earlier one', 'bookings in the late output')).toEqual([10, 10])
  const [windows = 0] = valuesOf(run, 'hotels and windows with a result')
  expect(windows).toBeGreaterThan(60)
  expect(run.stdout).toMatch(/revision 0: \d+ bookings, [\d.]+\nhotel-\d+ [\d:-]+ {2}revision 1: \d+ bookings/)
}, 300_000)
