/** The demos of bounded state, map state, the classic uses and table-first state. */
import { runDemo, valuesOf } from './demo-run.ts'

test('S6: the table hour by hour holds what TTL allows, and in the end only who still reports', async () => {
  const run = await runDemo('bounded-state', '--hours', '4', '--devices', '6', '--steady', '2')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  expect(valuesOf(run, 'distinct keys', 'most key items at a time')).toEqual([26, 26])
  expect(valuesOf(run, 'hours with other key items than TTL allows')).toEqual([0])
  expect(valuesOf(run, 'hours with other map entries than TTL allows')).toEqual([0])
  expect(run.figures.get('key items at the end, of 26 keys')).toMatchObject({ value: 2, goal: 2 })
  // Two hours of TTL, a day of retention in each of two streams and a day: the devices of the first hour have gone after hour 75.
  expect(run.stdout).toMatch(/^ *74 +26 +26 +26 /m)
  expect(run.stdout).toMatch(/^ *75 +26 +20 +20 /m)
}, 300_000)

test('S7: the cost of an entry is the same for maps of all sizes, up to 10,000 entries', async () => {
  const run = await runDemo('map-state')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  for (const size of ['10', '100', '1,000', '10,000']) {
    const names = ['one entry written', 'one entry read, cold', 'one entry read, warm']
    expect(valuesOf(run, ...names.map((name) => `map of ${size}: ${name}`))).toEqual([4, 2, 0])
  }
  expect(run.stdout).toMatch(/^ *10,000 +[\d,]+ +4 +2 +0 +\d{3}$/m)
}, 300_000)

test('S8: the five classic uses come to what plain loops over their input do', async () => {
  const run = await runDemo('classics', '--events', '120', '--keys', '6', '--seed', '3')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  const uses = ['running counter', 'recent-event list', 'session state machine', 'per-user aggregate', 'join key table']
  expect(valuesOf(run, ...uses.map((use) => `${use}: wrong or missing results`))).toEqual([0, 0, 0, 0, 0])
  expect(valuesOf(run, ...uses.map((use) => `${use}: dead letters`))).toEqual([0, 0, 0, 0, 0])
  for (const lines of valuesOf(run, ...uses.map((use) => `${use}: user code`))) expect(lines).toBeLessThan(40)
}, 300_000)

test('S12: two other consumers read all accounts, and add no item and no write unit', async () => {
  const run = await runDemo('table-first', '--bookings', '300', '--accounts', '20')
  expect([run.code, run.stderr, run.ok]).toEqual([0, '', true])
  expect(valuesOf(run, 'accounts', 'read units per lookup')).toEqual([20, 2])
  expect(valuesOf(run, 'accounts that a lookup shows wrongly')).toEqual([0])
  expect(valuesOf(run, 'accounts that the changelog comes to wrongly')).toEqual([0])
  expect(valuesOf(run, 'items that the other consumers added', 'write units that the other consumers cost')).toEqual([
    0, 0,
  ])
  expect(run.figures.get('changes in the changelog')?.value).toBeGreaterThan(20)
}, 300_000)
