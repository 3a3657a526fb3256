import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { provide } from '../../../lib/aws/handler/stages.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { minutes } from '../../../lib/core/duration.ts'
import { ConfigurationError, RetryableError } from '../../../lib/core/errors.ts'
import { text } from '../../../lib/core/format.ts'
import { lookup, staticTable } from '../../../lib/operators/enrich/table.ts'
import type { HandlerPorts } from '../../../lib/runtime/ports.ts'
import { delivered, type Sink } from '../../../lib/runtime/sink.ts'
import { kafkaEvent, kinesisEvent, lambdaContext, sequenceNumber } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { aggregateOf } from '../events/kpl-aggregate-bytes.ts'

/** Throws a RetryableError for lines that begin with "later", until `fix()`. */
function retrying(name = 'app') {
  const app = new Topology(name)
  const out = app.sink<string>('out')
  let fixed = false
  const source = app.source('lines', text())
  source
    .map((line) => {
      if (line.startsWith('later') && !fixed) throw new RetryableError('later')
      return line
    })
    .to(out)
  const ports = memoryPorts()
  const fix = () => {
    fixed = true
  }
  return { app, source, out, ports, fix, handler: streamHandler(app, { ports }), received: () => ports.received(out) }
}

const exact = (answer: unknown): string => JSON.stringify(answer)

describe('Kinesis', () => {
  test('the answer of a batch that is done is exactly an empty list', async () => {
    const { handler, received } = retrying()
    expect(exact(await handler(kinesisEvent(['a', 'b']), lambdaContext()))).toBe('{"batchItemFailures":[]}')
    expect(received()).toEqual(['a', 'b'])
  })

  test('invariant 2: one item names the first record that is not done; the rest comes again with it', async () => {
    const { handler, received, fix } = retrying()
    const answer = await handler(kinesisEvent(['a', 'later', 'b', 'later-2']), lambdaContext())
    expect(exact(answer)).toBe(`{"batchItemFailures":[{"itemIdentifier":"${sequenceNumber(1)}"}]}`)
    expect(received()).toEqual(['a'])
    fix()
    await handler(kinesisEvent(['later', 'b', 'later-2'], { firstIndex: 1 }), lambdaContext())
    expect(received()).toEqual(['a', 'later', 'b', 'later-2'])
  })

  test('an empty batch is done', async () => {
    expect(await retrying().handler({ Records: [] }, lambdaContext())).toEqual({ batchItemFailures: [] })
  })

  test('a batch without time left goes back whole', async () => {
    for (const remainingMs of [0, -1]) {
      const { handler, received, ports } = retrying()
      const answer = await handler(kinesisEvent(['a', 'b']), lambdaContext({ remainingMs }))
      expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: sequenceNumber(0) }] })
      expect([received(), ports.deadLettered]).toEqual([[], []])
    }
  })

  test('of an aggregate its parent is named, and its first records are not applied twice', async () => {
    const { handler, received, fix } = retrying()
    const records = ['a', 'later', 'b'].map((data, i) => ({ partitionKey: `k${i}`, data }))
    const event = kinesisEvent(['first', aggregateOf(records), 'last'])
    expect(await handler(event, lambdaContext())).toEqual({
      batchItemFailures: [{ itemIdentifier: sequenceNumber(1) }],
    })
    expect(received()).toEqual(['first', 'a'])
    fix()
    expect(await handler(kinesisEvent([aggregateOf(records), 'last'], { firstIndex: 1 }), lambdaContext())).toEqual({
      batchItemFailures: [],
    })
    expect(received()).toEqual(['first', 'a', 'later', 'b', 'last'])
  })

  test('an aggregate with a wrong checksum is a dead letter with its own bytes; an empty one is done', async () => {
    const { handler, received, ports } = retrying()
    const broken = aggregateOf([{ partitionKey: 'k', data: 'a' }])
    broken.set([broken.at(-1) === 0 ? 1 : 0], broken.length - 1)
    expect(await handler(kinesisEvent([broken, aggregateOf([]), 'b']), lambdaContext())).toEqual({
      batchItemFailures: [],
    })
    expect(received()).toEqual(['b'])
    expect(ports.deadLettered).toMatchObject([
      {
        position: sequenceNumber(0),
        payload: broken.toString('base64'),
        reason: { code: 'aggregate-corrupt', phase: 'decode' },
      },
    ])
    expect(await handler(kinesisEvent([aggregateOf([])]), lambdaContext())).toEqual({ batchItemFailures: [] })
  })

  test('the number of one record on two shards is two records', async () => {
    const { handler, received } = retrying()
    await handler(kinesisEvent(['a'], { shardId: 'shardId-000000000000' }), lambdaContext())
    await handler(kinesisEvent(['b'], { shardId: 'shardId-000000000001' }), lambdaContext())
    expect(received()).toEqual(['a', 'b'])
  })
})

describe('Kafka without provisioned pollers', () => {
  const records = (...values: string[]) => values.map((value, i) => ({ offset: 100 + i, value }))

  test('invariant 4: where anything is not done the invocation rejects, and the other partitions are done all the same', async () => {
    const { app, out, fix } = retrying()
    const ports = memoryPorts({ kafka: 'on-demand' })
    const handler = streamHandler(app, { ports })
    const event = kafkaEvent({
      'lines-0': records('a', 'later', 'b'),
      'lines-1': records('c'),
      'lines-10': records('later'),
    })
    await expect(handler(event, lambdaContext())).rejects.toMatchObject({
      code: 'records-not-done',
      message: expect.stringContaining('partition 0 from offset 101 on, partition 10 from offset 100 on'),
    })
    expect(ports.received(out)).toEqual(['a', 'c'])
    fix()
    expect(exact(await handler(event, lambdaContext()))).toBe('{"batchItemFailures":[]}')
    expect(ports.received(out)).toEqual(['a', 'c', 'later', 'b', 'later'])
  })

  test('a redrive is answered by record: whoever sends it reads that', async () => {
    const { app } = retrying()
    const handler = streamHandler(app, { ports: memoryPorts({ kafka: 'on-demand' }) })
    const redrive = {
      ...kafkaEvent({ 'lines-0': records('later') }),
      millrace: { redrive: { ownMarkMs: null, applied: false } },
    }
    expect(await handler(redrive, lambdaContext())).toEqual({
      batchItemFailures: [{ itemIdentifier: { partition: 'lines-0', offset: 100 } }],
    })
  })
})

describe.each([false, true])('Kafka, self-managed: %p', (selfManaged) => {
  test('invariant 3: per partition the first offset that is not done and every later one', async () => {
    const { app, out } = retrying()
    const ports = { ...memoryPorts(), sourceOf: () => 'lines' }
    const handler = streamHandler(app, { ports })
    const records = (...values: string[]) => values.map((value, i) => ({ offset: 100 + i, value }))
    const event = kafkaEvent(
      { 'my-topic-0': records('a', 'later', 'b'), 'my-topic-1': records('c'), 'my-topic-10': records('later') },
      { selfManaged },
    )
    expect(exact(await handler(event, lambdaContext()))).toBe(
      '{"batchItemFailures":[{"itemIdentifier":{"partition":"my-topic-0","offset":101}},{"itemIdentifier":{"partition":"my-topic-0","offset":102}},{"itemIdentifier":{"partition":"my-topic-10","offset":100}}]}',
    )
    expect(ports.received(out)).toEqual(['a', 'c'])
  })

  test('topics of two sources run through their own stages', async () => {
    const app = new Topology('two')
    const out = app.sink<string>('out')
    for (const name of ['orders', 'returns'])
      app
        .source(name, text())
        .map((line) => `${name} ${line}`)
        .to(out)
    const ports = memoryPorts()
    const event = kafkaEvent(
      { 'orders-0': [{ offset: 1, value: 'a' }], 'returns-0': [{ offset: 1, value: 'b' }], 'orders-1': [] },
      { selfManaged },
    )
    expect(await streamHandler(app, { ports })(event, lambdaContext())).toEqual({ batchItemFailures: [] })
    expect(ports.received(out)).toEqual(['orders a', 'returns b'])
  })

  test('no records are no failures', async () => {
    const { handler } = retrying()
    expect(await handler(kafkaEvent({}, { selfManaged }), lambdaContext())).toEqual({ batchItemFailures: [] })
    expect(await handler(kafkaEvent({ 'lines-0': [] }, { selfManaged }), lambdaContext())).toEqual({
      batchItemFailures: [],
    })
  })

  test('an unknown topic rejects by name', async () => {
    const event = kafkaEvent({ 'other-0': [{ offset: 1, value: 'a' }] }, { selfManaged })
    await expect(retrying().handler(event, lambdaContext())).rejects.toThrow(
      /topic other is bound to no source|other is bound to no source/,
    )
  })
})

describe('invariant 4: what cannot be told by record rejects', () => {
  test('an unknown event source', async () => {
    const { handler, received } = retrying()
    const failure: unknown = await handler(kinesisEvent(['a'], { source: { name: 'other' } }), lambdaContext()).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ name: 'ConfigurationError', code: 'unknown-event-source' })
    expect((failure as Error).message).toContain('stream/other is bound to no source of topology "app" (lines)')
    expect(received()).toEqual([])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['text', 'event'],
    ['an empty object', {}],
    ['a list', []],
    ['an API call', { httpMethod: 'GET', path: '/' }],
    [
      'a message of SQS',
      { Records: [{ messageId: '1', body: 'x', eventSource: 'aws:sqs', eventSourceARN: 'arn:aws:sqs:::lines' }] },
    ],
    ['an object of S3', { Records: [{ eventSource: 'aws:s3', s3: {} }] }],
    ['a record of nothing', { Records: [null] }],
    ['Records that are none', { Records: 'x' }],
    ['Kafka without records', { eventSource: 'aws:kafka', records: null }],
    ['Kafka with a list', { eventSource: 'aws:kafka', records: [{ offset: 1 }] }],
    ['Kafka with a record of nothing', { eventSource: 'aws:kafka', records: { 'lines-0': [null] } }],
    [
      'Kafka without an offset',
      { eventSource: 'aws:kafka', records: { 'lines-0': [{ value: 'YQ==', timestamp: 1 }] } },
    ],
  ])('%s', async (_what, event) => {
    const { handler, received } = retrying()
    await expect(handler(event, lambdaContext())).rejects.toMatchObject({
      code: expect.stringMatching(/^(unknown-event|malformed-event|unknown-event-source)/),
    })
    expect(received()).toEqual([])
  })

  test('a table that cannot be loaded', async () => {
    const { app, ports } = (() => {
      const app = new Topology('app')
      const table = staticTable<string>('t', () => Promise.reject(new Error('down')))
      app
        .source('lines', text())
        .enrich<string, string>({ from: table, key: (line) => line, join: (line) => line })
        .to(app.sink<string>('out'))
      return { app, ports: memoryPorts() }
    })()
    await expect(streamHandler(app, { ports })(kinesisEvent(['a']), lambdaContext())).rejects.toThrow(
      'table "t" could not be loaded: down',
    )
  })
})

describe('ports', () => {
  test('never fall back: without an environment there is one clear error, at each invocation', async () => {
    const handler = streamHandler(retrying().app)
    for (let invocation = 0; invocation < 2; invocation++) {
      const failure: unknown = await handler(kinesisEvent(['a']), lambdaContext()).catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(ConfigurationError)
      expect((failure as Error).message).toContain('the environment variable MILLRACE_BINDINGS is missing')
    }
  })

  test('may be an object of a class', async () => {
    const { app, out } = retrying()
    const memory = memoryPorts()
    class OwnPorts implements HandlerPorts {
      readonly clock = memory.clock
      readonly logger = memory.logger
      readonly metrics = memory.metrics
      readonly deadLetters = memory.deadLetters
      #flushed = 0
      sink(name: string) {
        return memory.sink(name)
      }
      sourceOf(...given: Parameters<HandlerPorts['sourceOf']>) {
        return memory.sourceOf(...given)
      }
      flush() {
        this.#flushed++
      }
      get flushed() {
        return this.#flushed
      }
    }
    const ports = new OwnPorts()
    await streamHandler(app, { ports })(kinesisEvent(['a']), lambdaContext())
    expect(memory.received(out)).toEqual(['a'])
    expect(ports.flushed).toBe(1)
  })

  test('a provided sink takes the place of the bound one', async () => {
    const { app, out } = retrying()
    const ports = memoryPorts()
    const taken: string[] = []
    const sink: Sink<string, string> = {
      prepare: ({ value }) => value,
      deliver: async (items) => {
        taken.push(...items)
        return items.map(() => delivered)
      },
    }
    await streamHandler(app, { ports, sinks: [provide(out, sink)] })(kinesisEvent(['a']), lambdaContext())
    expect(taken).toEqual(['a'])
    expect(ports.received(out)).toEqual([])
  })

  test('a sink that the topology has not cannot be provided', () => {
    const foreign = new Topology('other').sink<string>('theirs')
    const sink: Sink<string> = { prepare: ({ value }) => value, deliver: async () => [] }
    expect(() => streamHandler(retrying().app, { sinks: [provide(foreign, sink)] })).toThrow(
      'provide("theirs", ...) names no sink of topology "app".',
    )
  })

  test('a sink without a port is named', async () => {
    const { app } = retrying()
    const ports = { ...memoryPorts(), sink: () => undefined }
    await expect(streamHandler(app, { ports })(kinesisEvent(['a']), lambdaContext())).rejects.toThrow(
      'sink "out" of stage "lines" has no port',
    )
  })

  test('metrics are flushed however the invocation ends', async () => {
    const { app } = retrying()
    let flushed = 0
    const ports = { ...memoryPorts(), flush: () => void flushed++ }
    const handler = streamHandler(app, { ports })
    await handler(kinesisEvent(['a']), lambdaContext())
    await handler(kinesisEvent(['later']), lambdaContext())
    expect(flushed).toBe(2)
  })
})

describe('invariant 5: nothing of an invocation outlives it', () => {
  test('two batches that overlap at a lookup answer for their own records', async () => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    const waiting: (() => void)[] = []
    const load = (keys: readonly string[]) =>
      new Promise<ReadonlyMap<string, string>>((resolve) =>
        waiting.push(() => resolve(new Map(keys.map((key) => [key, key.toUpperCase()])))),
      )
    app
      .source('lines', text())
      .enrich({
        from: lookup<string>('l', { load, ttl: minutes(1) }),
        key: (line) => line,
        join: (line, row) => `${line}${row}`,
      })
      .map((line) => {
        if (line === 'bB') throw new RetryableError('later')
        return line
      })
      .to(out)
    const ports = memoryPorts()
    const handler = streamHandler(app, { ports })
    const first = handler(kinesisEvent(['a', 'b'], { shardId: 'shardId-000000000000' }), lambdaContext())
    const second = handler(kinesisEvent(['c', 'd'], { shardId: 'shardId-000000000001' }), lambdaContext())
    let done = false
    const both = Promise.all([second, first]).finally(() => {
      done = true
    })
    while (!done) {
      waiting.pop()?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await both).toEqual([
      { batchItemFailures: [] },
      { batchItemFailures: [{ itemIdentifier: sequenceNumber(1) }] },
    ])
    expect(ports.received(out).toSorted()).toEqual(['aA', 'cC', 'dD'])
  })
})

describe('what Lambda and middy see', () => {
  test('a handler of two parameters: Node 24 on Lambda has no callbacks', () => {
    expect(retrying().handler.length).toBeLessThanOrEqual(2)
  })

  test('a topology that cannot run fails when the module loads', () => {
    expect(() => streamHandler(new Topology('empty'))).toThrow(ConfigurationError)
  })

  test('wrapped in middy it answers the same', () => {
    // In a process of its own, because middy exports only for `import` and these tests run as CommonJS.
    const script = `
      import middy from '@middy/core'
      import { streamHandler, Topology, text, RetryableError } from './lib/index.ts'
      import { kinesisEvent, lambdaContext, memoryPorts } from './lib/testing/index.ts'
      const app = new Topology('app')
      app.source('lines', text()).map((line) => {
        if (line === 'later') throw new RetryableError('later')
        return line
      }).to(app.sink('out'))
      const seen = []
      const wrapped = middy()
        .use({ before: () => void seen.push('before'), after: () => void seen.push('after') })
        .handler(streamHandler(app, { ports: memoryPorts() }))
      const answer = await wrapped(kinesisEvent(['a', 'later']), lambdaContext())
      console.log(JSON.stringify({ answer, seen, arity: wrapped.length }))`
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: join(__dirname, '../../..'),
      encoding: 'utf8',
    })
    expect(JSON.parse(output)).toEqual({
      answer: { batchItemFailures: [{ itemIdentifier: sequenceNumber(1) }] },
      seen: ['before', 'after'],
      arity: expect.any(Number),
    })
    expect((JSON.parse(output) as { arity: number }).arity).toBeLessThanOrEqual(2)
  })
})

test.each(['aws:s3', 'aws:ses'])('records of %s are refused by name', async (eventSource) => {
  const app = new Topology('other-service')
  app.source('lines', text()).to(app.sink<string>('out'))
  const handler = streamHandler(app, { ports: memoryPorts() })
  await expect(handler({ Records: [{ eventSource }] }, lambdaContext())).rejects.toThrow(`records of ${eventSource}`)
  const ofSns = { Records: [{ EventSource: 'aws:sns' }] }
  await expect(handler(ofSns, lambdaContext())).rejects.toThrow('records of aws:sns')
})

test('options that make no sense are refused when the handler is made', () => {
  const app = new Topology('options')
  app.source('lines', text()).to(app.sink<string>('out'))
  expect(() => streamHandler(app, { tries: 0 })).toThrow('tries is 0')
})
