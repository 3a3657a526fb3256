import { firehoseSink } from '../../../lib/aws/sinks/firehose.ts'
import type { Outcome } from '../../../lib/runtime/sink.ts'
import { sinkConformance } from '../../../lib/testing/index.ts'
import { awsError, never, outputs, testPorts } from '../sink-worlds.ts'
import { conformanceWorld, StubFirehose } from './batch-worlds.ts'

const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)

function setUp(changes: { readonly delimiter?: string; readonly ordering?: 'none' } = {}) {
  const service = new StubFirehose()
  const sink = firehoseSink({ client: service, deliveryStreamName: 'lake', ...testPorts(), ...changes })
  const deliver = (values: readonly unknown[], keyOf?: (value: unknown) => string, signal = never()) =>
    sink.deliver(
      outputs(values, keyOf).map((output) => sink.prepare(output)),
      { signal },
    )
  return { service, sink, deliver }
}

const only = (value: unknown) => outputs([value])[0] as never
const range = (count: number) => Array.from({ length: count }, (_, n) => n)

const make = async () => {
  const { service, sink } = setUp()
  return conformanceWorld(service, sink, { probeOf: (text) => JSON.parse(text), code: 'ServiceUnavailableException' })
}
for (const { name, run } of sinkConformance('a Firehose stream', { make })) test(name, run)

test('a record is one line of JSON, or has the delimiter that is said', async () => {
  const { service, deliver } = setUp()
  await deliver([{ id: 'ä' }])
  expect(service.stored).toEqual(['{"id":"ä"}\n'])
  const { service: other, deliver: deliverBare } = setUp({ delimiter: '' })
  await deliverBare([1])
  expect(other.stored).toEqual(['1'])
})

test('a record above 1,000 KiB with its delimiter is terminal', () => {
  expect(setUp().sink.prepare(only('x'.repeat(1_024_000 - 3))).data.byteLength).toBe(1_024_000)
  expect(() => setUp().sink.prepare(only('x'.repeat(1_024_000 - 2)))).toThrow(terminal('oversize'))
})

test('requests hold 500 records, and four mebibytes', async () => {
  const { service, deliver } = setUp()
  await deliver(range(1_100))
  expect(service.requests.map(({ length }) => length)).toEqual([500, 500, 100])
  const { service: other, deliver: deliverLarge } = setUp()
  await deliverLarge(range(5).map((n) => `${n}`.repeat(1_000_000)))
  expect(other.requests.map(({ length }) => length)).toEqual([4, 1])
})

test('only the records that failed are sent again', async () => {
  const { service, deliver } = setUp()
  let refusals = 2
  service.refuse = (text) => (text === '1\n' && refusals-- > 0 ? { code: 'ServiceUnavailableException' } : undefined)
  expect(statuses(await deliver(range(3)))).toEqual(['delivered', 'delivered', 'delivered'])
  expect(service.requests).toEqual([['0\n', '1\n', '2\n'], ['1\n'], ['1\n']])
})

test.each([
  [undefined, [1, 1, 1]],
  ['none' as const, [3]],
])('with the ordering %p records of one key take requests of %p', async (ordering, expected) => {
  const { service, deliver } = setUp(ordering === undefined ? {} : { ordering })
  await deliver(range(3), () => 'k')
  expect(service.requests.map(({ length }) => length)).toEqual(expected)
})

test('a throttled request is tried again, a stream that is missing returns everything', async () => {
  const { service, deliver } = setUp()
  service.fail = (request) => {
    if (request === 1) throw awsError('ServiceUnavailableException', { $fault: 'server' })
  }
  expect(statuses(await deliver([1]))).toEqual(['delivered'])
  service.fail = () => {
    throw awsError('ResourceNotFoundException', { $fault: 'client' })
  }
  expect(await deliver([1])).toMatchObject([{ status: 'retry', error: { code: 'sink-misconfigured' } }])
})
