import { runDemo, valuesOf } from './demo-run.ts'

const timeoutMs = 300_000

test(
  'S11: a killed worker costs no record and no repetition, and results come again over either state',
  async () => {
    const flags = ['--small-keys', '100', '--large-keys', '5000', '--kills', '1', '--rate', '50']
    const run = await runDemo('recovery', ...flags)
    // How fast it was depends on the machine, so the exit code may be 1 for that alone.
    expect(run.missed?.filter((name) => name !== 'difference of the medians')).toEqual([])
    expect(run.code).toBe(run.ok ? 0 : 1)
    for (const size of ['100 keys', '5,000 keys']) {
      const [kills, sent, counted] = valuesOf(
        run,
        ...([`${size}: kills with a new result after`, `${size}: sent`, `${size}: counted in the state`] as const),
      )
      expect(kills).toBe(1)
      expect(sent).toBeGreaterThan(0)
      expect(counted).toBe(sent)
    }
    expect(run.stdout).toMatch(/^kill 1 over 5,000 keys: first new result after \d+ ms$/m)
  },
  timeoutMs,
)

test('a small state that is not smaller is refused', async () => {
  const run = await runDemo('recovery', '--small-keys', '100', '--large-keys', '100')
  expect(run.code).toBe(2)
  expect(run.stderr).toContain('--small-keys 100 is not below --large-keys 100')
})
