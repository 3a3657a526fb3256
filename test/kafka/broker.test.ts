/** What becomes of a suite that needs more of a broker than the one at hand can do. */
const before = { environment: { ...process.env }, describe: globalThis.describe }
const loud = jest.spyOn(process.stderr, 'write').mockReturnValue(true)

/** Declares suites as a file of tests does, at the broker that the environment names. */
function declared(environment: Readonly<Record<string, string>>) {
  const suites: string[] = []
  for (const name of ['CI', 'KAFKA_NAME', 'MILLRACE_TEST_KAFKA', 'MILLRACE_TEST_KAFKA_SASL_SSL'])
    delete process.env[name]
  Object.assign(process.env, environment)
  globalThis.describe = Object.assign(() => void suites.push('runs'), {
    skip: () => void suites.push('is skipped'),
  }) as unknown as jest.Describe
  loud.mockClear()
  jest.isolateModules(() => {
    const broker: typeof import('./broker.ts') = require('./broker.ts')
    for (const suite of [broker.withOwnBroker, broker.withSecureBroker]) {
      try {
        suite('a suite', () => undefined)
      } catch (error) {
        suites.push(String(error))
      }
    }
  })
  process.env = { ...before.environment }
  globalThis.describe = before.describe
  return { suites, lines: loud.mock.calls.map(([line]) => String(line).trim()) }
}

// A file that declares suites is read before any test runs.
const address = { MILLRACE_TEST_KAFKA: '127.0.0.1:1' }
const none = declared({ CI: '1' })
const bare = declared(address)
const bareInCi = declared({ ...address, CI: '1' })
const full = declared({ ...address, CI: '1', KAFKA_NAME: 'a', MILLRACE_TEST_KAFKA_SASL_SSL: '127.0.0.1:2' })
loud.mockRestore()

const own = expect.stringContaining('(KAFKA_NAME): "a suite" is SKIPPED')
const secure = expect.stringContaining('(MILLRACE_TEST_KAFKA_SASL_SSL): "a suite" is SKIPPED')

test('without a broker one line is said for all', () => {
  const line = expect.stringMatching(/^NO KAFKA BROKER: .* SKIPPED/)
  expect(none).toEqual({ suites: ['is skipped', 'is skipped'], lines: [line] })
})

test('with a broker of somebody else each suite that it cannot do is skipped with a loud line', () => {
  expect(bare).toEqual({ suites: ['is skipped', 'is skipped'], lines: [own, secure] })
})

test('in CI each of them fails instead', () => {
  expect(bareInCi).toEqual({ suites: [own, secure], lines: [] })
})

test('with all that is needed nothing is said', () => {
  expect(full).toEqual({ suites: ['runs', 'runs'], lines: [] })
})
