import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canaries } from '../../lib/testing/simulator/canaries.ts'
import { kafkaCanaries } from '../../lib/testing/simulator/kafka-canaries.ts'
import { protocolCanaries } from '../../lib/testing/simulator/protocol-canaries.ts'
import { timedCanaries } from '../../lib/testing/simulator/timed-canaries.ts'

const simulate = (...args: readonly string[]) =>
  spawnSync(process.execPath, ['bin/simulate.ts', ...args], { encoding: 'utf8' })

test('--seed plays one seed, says what it met and that nothing was found; --trace shows each event', () => {
  const played = simulate('--seed', '8')
  expect(played.stdout).toMatch(/^seed 8\n\d+ records, \d+ steps, [\d:.]+ virtual minutes\n/)
  expect(played.stdout).toContain('every referee is content')
  expect(played.status).toBe(0)
  const { stdout, status } = simulate('--seed', '8', '--trace')
  // A step, its virtual time, who, what.
  expect(stdout.match(/^ *\d+ +\d+:\d\d\.\d{3} {2}\S.* {2}\S/gm)?.length).toBeGreaterThan(500)
  expect(status).toBe(0)
}, 120_000)

test('--break list names every canary, what it breaks and who notices', () => {
  const { stdout, status } = simulate('--break', 'list')
  const all = Object.entries({ ...canaries, ...protocolCanaries, ...timedCanaries, ...kafkaCanaries })
  expect(stdout.trimEnd().split('\n')).toHaveLength(all.length)
  for (const [name, { breaks, caughtBy }] of all) {
    expect(stdout).toMatch(new RegExp(`^${name} +${breaks} \\(noticed by ${caughtBy}\\)$`, 'm'))
  }
  expect(status).toBe(0)
}, 60_000)

test('--break NAME exits with 1, and shows the end of the run and what its referee says', () => {
  const { stdout, status } = simulate('--break', 'publish-after-commit')
  expect(stdout).toMatch(/^broken: outputs are sent after the keys are committed/)
  expect(stdout).toMatch(/^the last 40 of \d+ events:$/m)
  expect(stdout).toMatch(/^applied-once +\S/m)
  expect(stdout.split('\n').length).toBeLessThan(100)
  expect(status).toBe(1)
}, 120_000)

test('--break of what is no canary says so, and exits with 2', () => {
  const { stderr, status } = simulate('--break', 'everything')
  expect(stderr).toContain('there is no canary "everything": --break list names them')
  expect(status).toBe(2)
}, 60_000)

test('--only time plays the seeds with windows and timers, and says which', () => {
  const { stdout, status } = simulate('--runs', '3', '--from', '10', '--only', 'time')
  expect(stdout).toContain('seeds 11 to 15, time only')
  expect(stdout).toContain('3 runs, 0 failed')
  expect(stdout).toContain('windows: finals 3')
  expect(status).toBe(0)
}, 120_000)

test('--kafka plays seeds on Kafka, and meets what only Kafka does', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'millrace-sim-')), 'figures.json')
  const { stdout, status } = simulate('--runs', '6', '--from', '10', '--kafka', '--json', file)
  expect(stdout).toContain('seeds 10 to 15, on Kafka')
  expect(stdout).toContain('6 runs, 0 failed')
  expect(stdout).toMatch(/batch of several partitions [1-9]/)
  expect(status).toBe(0)
  const { command, ok, figures, failed, from } = JSON.parse(readFileSync(file, 'utf8'))
  expect([command, ok, failed, from]).toEqual(['npm run sim', true, [], 10])
  expect(figures.slice(0, 2)).toEqual([
    { name: 'seeds', value: 6, unit: 'runs' },
    { name: 'seeds that failed', value: 0, unit: 'runs', goal: 0, better: 'exactly' },
  ])
}, 120_000)

test('--only takes one of the two applications', () => {
  const { stderr, status } = simulate('--runs', '3', '--only', 'windows')
  expect(stderr).toContain('--only windows: say time')
  expect(status).toBe(2)
}, 60_000)
