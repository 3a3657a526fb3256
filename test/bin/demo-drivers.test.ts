import { runDemo, valuesOf } from './demo-run.ts'

test('S4: prefixes that are delivered again change nobody’s earnings', async () => {
  const run = await runDemo('drivers', '--events', '600', '--drivers', '12', '--replays', '3', '--seed', '7')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  expect(valuesOf(run, 'drivers changed by a replay', 'earnings changed by replays')).toEqual([0, 0])
  expect(valuesOf(run, 'drivers whose state differs from a plain loop over the events')).toEqual([0])
  const [prefixes, events = 0, frames = 0] = valuesOf(
    run,
    'prefixes delivered again',
    'events delivered again',
    'frames delivered again',
  )
  expect(prefixes).toBe(3)
  // The last replay is of everything, so at least that was delivered again.
  expect(events).toBeGreaterThan(600)
  expect(frames).toBeGreaterThan(3)
  expect(run.stdout).toMatch(/^replay 3, to the end +\d+ +600 +/m)
}, 300_000)
