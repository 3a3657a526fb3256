import { spawnSync } from 'node:child_process'

const simulate = (...args: readonly string[]) =>
  spawnSync(process.execPath, ['bin/simulate.ts', ...args], { encoding: 'utf8' })

test('--only time plays the seeds with windows and timers, and says which', () => {
  const { stdout, status } = simulate('--runs', '3', '--from', '10', '--only', 'time')
  expect(stdout).toContain('seeds 11 to 15, time only')
  expect(stdout).toContain('3 runs, 0 failed')
  expect(stdout).toContain('windows: finals 3')
  expect(status).toBe(0)
}, 120_000)

test('--only takes one of the two applications', () => {
  const { stderr, status } = simulate('--runs', '3', '--only', 'windows')
  expect(stderr).toContain('--only windows: say time')
  expect(status).toBe(2)
}, 60_000)
