import { lambdaMetrics } from '../../../lib/aws/handler/observability.ts'
import { metricsIn } from '../../../lib/local/run/metric-lines.ts'

const line = (content: object) => JSON.stringify(content)
const directive = (Namespace: string, ...names: readonly string[]) => ({
  _aws: { Timestamp: 0, CloudWatchMetrics: [{ Namespace, Metrics: names.map((Name) => ({ Name, Unit: 'Count' })) }] },
})

test('the metrics that a function writes are read back', () => {
  const lines: string[] = []
  const log = jest.spyOn(console, 'log').mockImplementation((text) => void lines.push(text))
  // Makes Powertools write through the console that jest holds; by itself it would then write no metrics at all.
  const development = { POWERTOOLS_DEV: 'true', POWERTOOLS_METRICS_DISABLED: 'false' }
  Object.assign(process.env, development)
  const metrics = lambdaMetrics({ application: 'orders', stage: 'orders' })
  metrics.count('lookup-hits', 3)
  metrics.count('lookup-hits', 4)
  metrics.gauge('table-staleness', 20, 'milliseconds')
  metrics.gauge('table-staleness', 30, 'milliseconds')
  metrics.flush()
  log.mockRestore()
  for (const name of Object.keys(development)) delete process.env[name]
  expect(lines.map((text) => metricsIn(text))).toEqual([
    new Map([
      ['lookup-hits', [7]],
      ['table-staleness', [20, 30]],
    ]),
  ])
})

test.each([
  ['an ordinary log line', line({ level: 'INFO', message: 'hello' })],
  ['text', 'CloudWatchMetrics'],
  ['a cut line', '{"_aws":{"CloudWatchMetrics":[{"Namespace":"Millr'],
  ['something that only looks alike', line({ _aws: { CloudWatchMetrics: 'none' } })],
  ['null', 'null'],
  ['another namespace', line({ ...directive('Other', 'records-in'), 'records-in': 1 })],
])('%s carries none', (_, text) => {
  expect(metricsIn(text)).toBeUndefined()
})

test('what is no number is left out', () => {
  const text = line({ ...directive('Millrace', 'records-in', 'missing'), 'records-in': ['x', 2] })
  expect(metricsIn(text)).toEqual(
    new Map([
      ['records-in', [2]],
      ['missing', []],
    ]),
  )
})
