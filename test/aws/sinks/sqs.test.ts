import { sqsSink } from '../../../lib/aws/sinks/sqs.ts'
import type { Outcome } from '../../../lib/runtime/sink.ts'
import { type Probe, sinkConformance } from '../../../lib/testing/index.ts'
import { awsError, never, outputs, testPorts } from '../sink-worlds.ts'
import { conformanceWorld, StubQueue } from './batch-worlds.ts'

const queueUrl = 'https://sqs.us-east-1.amazonaws.com/000000000000/orders'
const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)

function setUp(
  changes: { readonly fifo?: boolean; readonly ordering?: 'none'; readonly maxMessageBytes?: number } = {},
) {
  const queue = new StubQueue()
  const ports = testPorts()
  const sink = sqsSink({ client: queue, queueUrl, origin: 'app/out', fifo: false, ...ports, ...changes })
  const deliver = (values: readonly unknown[], keyOf?: (value: unknown) => string, signal = never()) =>
    sink.deliver(
      outputs(values, keyOf).map((output) => sink.prepare(output)),
      { signal },
    )
  return { queue, ports, sink, deliver }
}

const only = (value: unknown, key?: string) => outputs([value], key === undefined ? undefined : () => key)[0] as never
const range = (count: number) => Array.from({ length: count }, (_, n) => n)
const keyOf = (value: unknown) => (value as { id: string }).id

describe.each([{ fifo: false }, { fifo: true }])('under $fifo as fifo', ({ fifo }) => {
  const make = async () => {
    const { queue, sink } = setUp({ fifo })
    const probeOf = ({ MessageBody }: { MessageBody: string | undefined }): Probe => JSON.parse(MessageBody ?? '')
    return conformanceWorld(queue, sink, { probeOf, code: 'InternalError', idempotent: fifo })
  }
  for (const { name, run } of sinkConformance(fifo ? 'a FIFO queue' : 'a standard queue', { make })) test(name, run)
})

describe('a message', () => {
  test('is JSON, with the identity of its output as an attribute', () => {
    expect(setUp().sink.prepare(only({ id: 'ä' }, 'k')).entry).toEqual({
      MessageBody: '{"id":"ä"}',
      MessageAttributes: {
        'millrace-output': { DataType: 'String', StringValue: 'app/out/orders/shardId-000000000000/1/0/0' },
      },
    })
  })

  test('of a FIFO queue has its key as group, and its identity as deduplication id', () => {
    const { sink } = setUp({ fifo: true })
    expect(sink.prepare(only(1, 'o-1')).entry).toMatchObject({
      MessageGroupId: 'o-1',
      MessageDeduplicationId: 'app/out/orders/shardId-000000000000/1/0/0',
    })
    expect(() => sink.prepare(only(1))).toThrow(terminal('missing-key'))
  })

  test.each([['São Paulo'], ['a b'], ['k'.repeat(129)]])('has a hash as group where SQS takes no %p', (key) => {
    const { sink } = setUp({ fifo: true })
    expect(sink.prepare(only(1, key)).entry.MessageGroupId).toMatch(/^[0-9a-f]{64}$/)
    expect(sink.prepare(only(1, key)).orderKey).toBe(key)
  })

  test('has escapes for the two characters that JSON may hold and SQS does not take', () => {
    const body = setUp().sink.prepare(only({ odd: '\ufffe\uffff' })).entry.MessageBody
    expect(body).toBe('{"odd":"\\ufffe\\uffff"}')
    expect(JSON.parse(body ?? '')).toEqual({ odd: '\ufffe\uffff' })
  })

  test('above the limit is terminal, counted with its attribute and exact', () => {
    const overhead = 'millrace-output'.length + 'String'.length + 'app/out/orders/shardId-000000000000/1/0/0'.length + 2
    expect(setUp().sink.prepare(only('x'.repeat(1_048_576 - overhead))).bytes).toBe(1_048_576)
    expect(() => setUp().sink.prepare(only('x'.repeat(1_048_577 - overhead)))).toThrow(terminal('oversize'))
    expect(() => setUp({ maxMessageBytes: 1_024 }).sink.prepare(only('x'.repeat(1_024)))).toThrow(terminal('oversize'))
  })
})

describe('delivery', () => {
  test('fills requests of ten messages, and of a mebibyte', async () => {
    const { queue, deliver } = setUp()
    await deliver(range(25))
    expect(queue.requests.map(({ length }) => length)).toEqual([10, 10, 5])
    const { queue: other, deliver: deliverLarge } = setUp()
    await deliverLarge(range(3).map((n) => `${n}`.repeat(400_000)))
    expect(other.requests.map(({ length }) => length)).toEqual([2, 1])
  })

  test('sends only what failed again, by entry', async () => {
    const { queue, deliver } = setUp()
    let refusals = 3
    queue.refuse = ({ MessageBody }) =>
      MessageBody === '4' && refusals-- > 0 ? { code: 'ThrottlingException', senderFault: true } : undefined
    expect(new Set(statuses(await deliver(range(10))))).toEqual(new Set(['delivered']))
    expect(queue.requests.map((entries) => entries.map(({ MessageBody }) => MessageBody).join())).toEqual([
      '0,1,2,3,4,5,6,7,8,9',
      '4',
      '4',
      '4',
    ])
  })

  test('makes what SQS can never take a dead letter, and nothing else of its request', async () => {
    const { queue, deliver } = setUp()
    queue.refuse = ({ MessageBody }) => {
      if (MessageBody === '1') return { code: 'InvalidMessageContents', senderFault: true }
      if (MessageBody !== '2') return undefined
      return { code: 'InvalidParameterValue', message: 'Message must be shorter than 262144 bytes.', senderFault: true }
    }
    const outcomes = await deliver(range(4))
    expect(statuses(outcomes)).toEqual(['delivered', 'rejected', 'rejected', 'delivered'])
    expect(outcomes[1]).toMatchObject({ error: { code: 'unsupported-value' } })
    expect(outcomes[2]).toMatchObject({ error: { code: 'oversize' } })
  })

  test('returns what a wrong key stops, and makes no dead letter of it', async () => {
    const { queue, deliver } = setUp()
    queue.refuse = () => ({ code: 'KMS.AccessDeniedException', senderFault: true })
    expect(await deliver([1])).toEqual([
      { status: 'retry', error: expect.objectContaining({ code: 'sink-misconfigured' }) },
    ])
  })

  test('tries a lost connection again, and returns everything where the queue is missing', async () => {
    const { queue, deliver } = setUp()
    queue.fail = (request) => {
      if (request === 1) throw awsError('TimeoutError')
    }
    expect(statuses(await deliver([1]))).toEqual(['delivered'])
    queue.fail = () => {
      throw awsError('QueueDoesNotExist', { $fault: 'client' })
    }
    expect(await deliver([1])).toMatchObject([{ status: 'retry', error: { code: 'sink-misconfigured' } }])
  })

  test('of one key is one message per request, in order', async () => {
    const { queue, deliver } = setUp({ fifo: true })
    await deliver(
      [
        { id: 'a', n: 1 },
        { id: 'a', n: 2 },
        { id: 'b', n: 1 },
      ],
      keyOf,
    )
    expect(queue.requests.map((entries) => entries.map(({ MessageBody }) => JSON.parse(MessageBody ?? '').n))).toEqual([
      [1, 1],
      [2],
    ])
  })

  test("with ordering 'none' fills requests, and FIFO queues keep their order", async () => {
    const values = Array.from({ length: 12 }, (_, n) => ({ id: 'a', n }))
    const { queue, deliver } = setUp({ ordering: 'none' })
    await deliver(values, keyOf)
    expect(queue.requests.map(({ length }) => length)).toEqual([10, 2])
    const { queue: fifo, deliver: deliverInOrder } = setUp({ ordering: 'none', fifo: true })
    await deliverInOrder(values, keyOf)
    expect(fifo.requests).toHaveLength(12)
  })

  test('without keys sends what shares no key together', async () => {
    const { queue, deliver } = setUp()
    await deliver([{ id: 'a' }, { id: 'a' }])
    expect(queue.requests).toHaveLength(1)
  })
})
