import { kinesisSink } from '../../../lib/aws/sinks/kinesis.ts'
import type { Outcome } from '../../../lib/runtime/sink.ts'
import { awsError, type InstantClock, never, outputs, StubStream, testPorts } from '../sink-worlds.ts'

interface Order {
  readonly id: string
  readonly n: number
}

const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)
const orders = (keys: string): Order[] => [...keys].map((id, n) => ({ id, n }))

function setUp(changes: object = {}) {
  const stream = new StubStream()
  const ports = testPorts()
  const sink = kinesisSink<unknown>({ client: stream, streamName: 'out', ...ports, ...changes })
  const deliver = (values: readonly Order[], signal = never()) =>
    sink.deliver(
      outputs(values, ({ id }) => id).map((output) => sink.prepare(output)),
      { signal },
    )
  return { stream, ports, sink, deliver }
}

const only = <T>(value: T, key?: string) => outputs([value], key === undefined ? undefined : () => key)[0] as never

describe('prepare', () => {
  const { sink } = setUp()

  test('writes JSON in UTF-8 under the key of the sink', () => {
    expect(sink.prepare(only({ id: 'ä', n: 1 }, 'ä'))).toEqual({
      Data: Buffer.from('{"id":"ä","n":1}'),
      PartitionKey: 'ä',
    })
  })

  test('without a key takes the identity of the output, or its hash where that is too long', () => {
    expect(sink.prepare(only(1)).PartitionKey).toBe('orders/shardId-000000000000/1/0/0')
    const output = outputs([1])[0]
    const record = { ...output?.record, partition: `${'t'.repeat(249)}-0` }
    const key = sink.prepare({ ...output, record } as never).PartitionKey
    expect(key).toMatch(/^[0-9a-f]{64}$/)
    expect(sink.prepare({ ...output, record } as never).PartitionKey).toBe(key)
  })

  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  test.each([
    ['a BigInt', { n: 1n }],
    ['a cycle', cycle],
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    [
      'a toJSON that throws',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
  ])('%s is terminal, code not-serialisable', (_, value) => {
    expect(() => sink.prepare(only(value, 'k'))).toThrow(terminal('not-serialisable'))
  })

  test.each([[''], ['k'.repeat(257)], ['\ud800']])('the key %p is terminal, code invalid-key', (key) => {
    expect(() => sink.prepare(only(1, key))).toThrow(terminal('invalid-key'))
  })

  test('the record limit counts the bytes of data and key, and is exact', () => {
    const { sink: raw } = setUp({ encode: (value: Uint8Array) => value })
    const key = 'ä'.repeat(100)
    expect(raw.prepare(only(new Uint8Array(1_048_576 - 200), key)).Data.byteLength).toBe(1_048_376)
    expect(() => raw.prepare(only(new Uint8Array(1_048_576 - 199), key))).toThrow(terminal('oversize'))
  })

  test('encode hands on bytes and text as they are, and refuses text that is not well-formed', () => {
    const { sink: raw } = setUp({ encode: (value: unknown) => value })
    expect(raw.prepare(only('text', 'k')).Data).toEqual(Buffer.from('text'))
    expect(raw.prepare(only(Uint8Array.of(1, 2), 'k')).Data).toEqual(Uint8Array.of(1, 2))
    expect(() => raw.prepare(only('\udc00', 'k'))).toThrow(terminal('not-serialisable'))
  })
})

describe('deliver', () => {
  test('packs unique keys into requests of 500, several in flight', async () => {
    const { stream, deliver } = setUp()
    const values = Array.from({ length: 1_700 }, (_, n) => ({ id: `k${n}`, n }))
    expect(new Set(statuses(await deliver(values)))).toEqual(new Set(['delivered']))
    expect(stream.requests.map((request) => request.length)).toEqual([500, 500, 500, 200])
    expect(stream.mostInFlight).toBe(4)
  })

  test('a request stays within 5 MiB', async () => {
    const { stream, sink } = setUp({ encode: () => new Uint8Array(1_000_000) })
    const items = outputs([1, 2, 3, 4, 5, 6, 7], (n) => `k${n}`).map((output) => sink.prepare(output))
    await sink.deliver(items, { signal: never() })
    expect(stream.requests.map((request) => request.length)).toEqual([5, 2])
  })

  test('sends the records of one key one after the other', async () => {
    const { stream, deliver } = setUp()
    await deliver(orders('aabab'))
    expect(stream.requests.map((request) => request.map(({ PartitionKey }) => PartitionKey).join(''))).toEqual([
      'ab',
      'ab',
      'a',
    ])
  })

  test('without ordering one request takes all', async () => {
    const { stream, deliver } = setUp({ ordering: 'none' })
    await deliver(orders('aabab'))
    expect(stream.requests).toHaveLength(1)
  })

  test('a refused record is sent again before later ones of its key; other keys go on', async () => {
    const { stream, ports, deliver } = setUp()
    let refusals = 2
    stream.refuse = ({ PartitionKey }) =>
      PartitionKey === 'a' && refusals-- > 0 ? 'ProvisionedThroughputExceededException' : undefined
    expect(statuses(await deliver(orders('abababb')))).toEqual(Array(7).fill('delivered'))
    const numbers = stream.texts.map((text) => JSON.parse(text) as Order)
    expect(numbers.filter(({ id }) => id === 'a').map(({ n }) => n)).toEqual([0, 2, 4])
    expect(numbers.slice(0, 2).map(({ id }) => id)).toEqual(['b', 'b'])
    expect((ports.clock as InstantClock).sleptMs).toEqual([25, 50])
    expect(ports.lines).toEqual([
      {
        level: 'warn',
        message: 'stream "out" refused items, which were sent again',
        fields: { items: 1, attempts: 2, reasons: ['ProvisionedThroughputExceededException'] },
      },
    ])
  })

  test.each([
    ['a throttle', awsError('LimitExceededException', { $metadata: { httpStatusCode: 400 } })],
    ['an error of the service', awsError('Unknown', { $metadata: { httpStatusCode: 500 } })],
    ['a lost connection', awsError('Error', { code: 'ECONNRESET' })],
    ['a time-out', awsError('TimeoutError')],
  ])('%s is retried', async (_, error) => {
    const { stream, deliver } = setUp()
    stream.fail = (request) => {
      if (request <= 3) throw error
    }
    expect(statuses(await deliver(orders('ab')))).toEqual(['delivered', 'delivered'])
    expect(stream.requests).toHaveLength(4)
  })

  test.each([
    [awsError('AccessDeniedException', { $metadata: { httpStatusCode: 400 } })],
    [awsError('ResourceNotFoundException', { $metadata: { httpStatusCode: 400 } })],
    [awsError('ValidationException', { $metadata: { httpStatusCode: 400 } })],
    [awsError('CredentialsProviderError')],
  ])('%s returns everything at once, with what to do', async (error) => {
    const { stream, ports, deliver } = setUp()
    stream.fail = () => {
      throw error
    }
    const outcomes = await deliver(orders('aab'))
    expect(statuses(outcomes)).toEqual(['retry', 'retry', 'retry'])
    expect(stream.requests).toHaveLength(1)
    expect(outcomes[0]).toMatchObject({ error: { code: 'sink-misconfigured', cause: error } })
    expect(ports.lines).toMatchObject([
      {
        level: 'error',
        message: 'stream "out" cannot be written to: check its name, settings and permissions',
        fields: { error: error.name },
      },
    ])
  })

  test('an answer that leaves records out does not count for them', async () => {
    const { stream, deliver } = setUp()
    const take = stream.take.bind(stream)
    let short = true
    stream.take = (records) => {
      const output = take(short ? records.slice(0, 1) : records)
      short = false
      return output
    }
    expect(statuses(await deliver(orders('abc')))).toEqual(Array(3).fill('delivered'))
    expect(stream.requests.map((request) => request.length)).toEqual([3, 2])
  })

  test('after the abort no request starts, what is in flight counts and the rest is a retry with its refusal', async () => {
    const { stream, deliver } = setUp()
    const controller = new AbortController()
    stream.refuse = ({ PartitionKey }) => {
      if (PartitionKey === 'a') controller.abort()
      return PartitionKey === 'a' ? 'InternalFailure' : undefined
    }
    const outcomes = await deliver(orders('aabb'), controller.signal)
    expect(statuses(outcomes)).toEqual(['retry', 'retry', 'delivered', 'retry'])
    expect(outcomes[0]).toMatchObject({ error: { message: expect.stringContaining('InternalFailure') } })
    expect(stream.requests).toHaveLength(1)
  })

  test('an empty batch sends nothing', async () => {
    const { stream, deliver } = setUp()
    expect(await deliver([])).toEqual([])
    expect(stream.requests).toHaveLength(0)
  })

  test('addresses a stream by its ARN', async () => {
    const inputs: unknown[] = []
    const stream = new StubStream()
    const client = {
      send: (command: Parameters<StubStream['send']>[0]) => {
        inputs.push({ ...command.input, Records: undefined })
        return stream.send(command)
      },
    }
    const streamArn = 'arn:aws:kinesis:eu-central-1:000000000000:stream/out'
    const sink = kinesisSink<unknown>({ client, streamArn, ...testPorts() })
    await sink.deliver([sink.prepare(only(1))], { signal: never() })
    expect(inputs).toEqual([{ StreamARN: streamArn }])
  })
})
