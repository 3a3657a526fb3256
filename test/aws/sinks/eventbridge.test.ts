import { eventBridgeSink } from '../../../lib/aws/sinks/eventbridge.ts'
import type { Outcome } from '../../../lib/runtime/sink.ts'
import { type Probe, sinkConformance } from '../../../lib/testing/index.ts'
import { awsError, never, outputs, testPorts } from '../sink-worlds.ts'
import { conformanceWorld, StubBus } from './batch-worlds.ts'

const eventBusName = 'arn:aws:events:us-east-1:000000000000:event-bus/orders'
const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)

function setUp(changes: { readonly ordering?: 'none' } = {}) {
  const bus = new StubBus()
  const sink = eventBridgeSink({
    client: bus,
    eventBusName,
    origin: 'app/out',
    source: 'shop',
    detailType: 'paid',
    ...testPorts(),
    ...changes,
  })
  const deliver = (values: readonly unknown[], keyOf?: (value: unknown) => string, signal = never()) =>
    sink.deliver(
      outputs(values, keyOf).map((output) => sink.prepare(output)),
      { signal },
    )
  return { bus, sink, deliver }
}

const only = (value: unknown) => outputs([value])[0] as never
const events = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

const make = async () => {
  const { bus, sink } = setUp()
  const probeOf = ({ Detail }: { Detail?: string | undefined }): Probe => JSON.parse(Detail ?? '')
  return conformanceWorld(bus, sink, { probeOf, code: 'ThrottlingException' })
}
for (const { name, run } of sinkConformance('a bus', { make })) test(name, run)

test('an event has the value as detail, the identity of the output as resource and the time of the record', () => {
  const [output] = outputs([{ n: 1 }])
  if (output) (output.record as { eventTimeMs: number }).eventTimeMs = Date.UTC(2026, 0, 2)
  expect(setUp().sink.prepare(output as never).entry).toEqual({
    EventBusName: eventBusName,
    Source: 'shop',
    DetailType: 'paid',
    Time: new Date('2026-01-02T00:00:00Z'),
    Resources: ['app/out/orders/shardId-000000000000/1/0/0'],
    Detail: '{"n":1}',
  })
})

test.each([['text'], [[1]], [null], [7]])('the value %p is no detail', (value) => {
  expect(() => setUp().sink.prepare(only(value))).toThrow(terminal('not-an-object'))
})

test('an event above the limit is terminal, counted as EventBridge counts', () => {
  const overhead =
    14 + 'shop'.length + 'paid'.length + 'app/out/orders/shardId-000000000000/1/0/0'.length + '{"t":""}'.length
  expect(setUp().sink.prepare(only({ t: 'x'.repeat(999_999 - overhead) })).bytes).toBe(999_999)
  expect(() => setUp().sink.prepare(only({ t: 'x'.repeat(1_000_000 - overhead) }))).toThrow(terminal('oversize'))
})

test('requests hold ten events, and less than a megabyte together', async () => {
  const { bus, deliver } = setUp()
  await deliver(events(23))
  expect(bus.requests.map(({ length }) => length)).toEqual([10, 10, 3])
  const { bus: other, deliver: deliverLarge } = setUp()
  await deliverLarge([1, 2, 3].map((n) => ({ t: `${n}`.repeat(400_000) })))
  expect(other.requests.map(({ length }) => length)).toEqual([2, 1])
})

test.each([['ThrottlingException'], ['InternalFailure'], ['InternalException']])(
  'an entry that is refused with %s is sent again alone',
  async (code) => {
    const { bus, deliver } = setUp()
    let refusals = 1
    bus.refuse = ({ Detail }) => (Detail === '{"n":1}' && refusals-- > 0 ? { code } : undefined)
    expect(statuses(await deliver(events(3)))).toEqual(['delivered', 'delivered', 'delivered'])
    expect(bus.requests.map(({ length }) => length)).toEqual([3, 1])
  },
)

test('what EventBridge can never take is a dead letter, what a setting stops goes back', async () => {
  const { bus, deliver } = setUp()
  bus.refuse = ({ Detail }) =>
    Detail === '{"n":0}' ? { code: 'MalformedDetail' } : { code: 'NotAuthorizedForSourceException' }
  expect(await deliver(events(2))).toMatchObject([
    { status: 'rejected', error: { code: 'unsupported-value' } },
    { status: 'retry', error: { code: 'sink-misconfigured' } },
  ])
})

test.each([
  [undefined, [1, 1, 1]],
  ['none' as const, [3]],
])('with the ordering %p events of one key take requests of %p', async (ordering, expected) => {
  const { bus, deliver } = setUp(ordering === undefined ? {} : { ordering })
  await deliver(events(3), () => 'k')
  expect(bus.requests.map(({ length }) => length)).toEqual(expected)
})

test('a bus that is missing returns everything', async () => {
  const { bus, deliver } = setUp()
  bus.fail = () => {
    throw awsError('ResourceNotFoundException', { $fault: 'client' })
  }
  expect(await deliver(events(2))).toMatchObject([{ status: 'retry' }, { status: 'retry' }])
})

test.each([[Number.NEGATIVE_INFINITY], [-1], [Number.NaN], [8.64e15]])(
  'a time that no date holds, %p, is left out',
  (timeMs) => {
    const [output] = outputs([{ n: 1 }])
    if (output) (output.record as { eventTimeMs: number }).eventTimeMs = timeMs
    expect(setUp().sink.prepare(output as never).entry).not.toHaveProperty('Time')
  },
)
