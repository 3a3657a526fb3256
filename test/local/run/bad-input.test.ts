/**
 * What a person sees of a local run, and what becomes of the records, when a handler, a stream, a sink or the disk misbehaves. The
 * handlers run in worker processes; the mapping is the emulator; the state is what the display shows.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateStreamCommand,
  DeleteStreamCommand,
  type KinesisClient,
  PutRecordsCommand,
} from '@aws-sdk/client-kinesis'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import {
  type CheckpointStore,
  EventSourceMapping,
  type Invoker,
  kinesisFormat,
  type MappingSettings,
  type ShardReader,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import { shardViews, stageTroubles } from '../../../lib/local/display/run-display.ts'
import { CheckpointFile } from '../../../lib/local/files/checkpoint-file.ts'
import { KinesisShardReader } from '../../../lib/local/reading/kinesis-shard-reader.ts'
import { startStreamTail } from '../../../lib/local/reading/stream-tail.ts'
import { endpointsAt } from '../../../lib/local/run/endpoints.ts'
import { bundleHandler } from '../../../lib/local/run/handler-bundle.ts'
import { environmentOf } from '../../../lib/local/run/stage.ts'
import { localKinesisClient } from '../../../lib/local/run/streams.ts'
import { startKinesisService } from '../../../lib/local/services/kinesis.ts'
import { startWorkerPool, type WorkerPoolOptions } from '../../../lib/local/workers/index.ts'
import { streamArn } from '../../emulator/event-source-mapping/mapping-world.ts'
import { MemoryCheckpoints, MemoryDestination, MemoryStream } from '../../emulator/event-source-mapping/memory-ports.ts'
import { VirtualClock } from '../../emulator/event-source-mapping/virtual-clock.ts'

const s0 = 'shardId-000000000000'
const timeoutMs = 180_000
let folder: string
const closing: (() => unknown)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-bad-input-'))
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await rm(folder, { recursive: true, force: true })
})

async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + timeoutMs / 2
  while (!condition()) {
    if (Date.now() > endMs) throw new Error('the condition did not come true in time')
    await new Promise((go) => setTimeout(go, 5))
  }
}

interface Ports {
  readonly reader: ShardReader
  readonly invoker: Invoker
  readonly checkpoints?: CheckpointStore
  readonly settings?: Partial<MappingSettings>
  readonly sourceArn?: string
}

/** A mapping that retries soon, and what the display says of it. */
async function startMapping(ports: Ports) {
  const { reader, invoker, checkpoints = new MemoryCheckpoints(), settings = {}, sourceArn = streamArn } = ports
  const onFailure = new MemoryDestination()
  const mapping = new EventSourceMapping({
    settings: {
      uuid: 'u',
      functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:f',
      startingPosition: 'TRIM_HORIZON',
      batchSize: 10,
      functionResponseTypes: ['ReportBatchItemFailures'],
      emulation: {
        backoff: { initialMs: 20, factor: 2, maxMs: 200 },
        pollIntervalMs: 50,
        shardSyncIntervalMs: 100,
      },
      ...settings,
    },
    format: kinesisFormat({ streamArn: sourceArn }),
    reader,
    invoker,
    checkpoints,
    clock: systemClock,
    onFailure,
  })
  await mapping.start()
  closing.push(() => mapping.stop())
  const status = () => ({
    stages: [
      {
        name: 'orders',
        kind: 'stateless' as const,
        streamName: 'orders',
        mapping: mapping.status(),
        recordsDone: new Map(),
        workers: [],
      },
    ],
    outputs: [],
  })
  return {
    onFailure,
    shown: () => shardViews(status()).map(({ state }) => state),
    troubles: () => stageTroubles(status()),
    position: () => mapping.status().shards[0]?.position,
  }
}

/** Workers whose handler misbehaves while a file exists, and the records that it was given when it did not. */
async function startBadWorkers(how: string, options: Partial<WorkerPoolOptions> = {}) {
  const badWhile = join(folder, 'bad')
  await writeFile(badWhile, '')
  const delivered: string[] = []
  const pool = await startWorkerPool({
    size: 1,
    handlerFile: join(__dirname, '../fixtures/bad-while.mjs'),
    environment: { BAD_HOW: how, BAD_WHILE: badWhile },
    memoryLimitMb: 128,
    // Long, as a busy machine takes its time: what is to time out says so.
    ...{ timeoutMs: 60_000, initTimeoutMs: 60_000 },
    onLine: (_worker, output, line) => {
      if (output === 'stdout' && /^[\d ]+$/.test(line)) delivered.push(...line.split(' '))
    },
    ...options,
  })
  closing.push(() => pool.stop())
  return { pool, delivered, mend: () => rm(badWhile, { force: true }) }
}

function streamOf(count: number): MemoryStream {
  const stream = new MemoryStream(new VirtualClock(Date.now()))
  stream.addShard(s0)
  for (let sequence = 1; sequence <= count; sequence += 1) stream.put(s0, sequence)
  return stream
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1))

const outsideOfTheHeap: [string, string, Partial<WorkerPoolOptions>] = [
  'exceeds memory outside of the heap',
  'above its memory limit of 128 MB',
  {},
]

describe('a handler that', () => {
  test.each<[string, string, Partial<WorkerPoolOptions>]>([
    // Long enough for the mended handler, whose records would come twice.
    ['never answers', 'Task timed out after 3.00 seconds', { timeoutMs: 3_000 }],
    ['never lets go', 'Task timed out after 3.00 seconds', { timeoutMs: 3_000 }],
    ['exits', 'Runtime.ExitError: the environment ended with status 7', {}],
    ['throws undefined', 'the handler threw undefined', {}],
    ['answers a circle', 'Runtime.MarshalError: Unable to stringify response body', {}],
    ['answers a wrong identifier', 'itemIdentifier (missing) is not in the batch', {}],
    ['exceeds the heap', 'above its memory limit of 32 MB', { memoryLimitMb: 32 }],
    // Only Linux tells what a process holds.
    ...(process.platform === 'linux' ? [outsideOfTheHeap] : []),
  ])(
    '%s is shown as retrying with the reason; mended, it is given every record once, in order',
    async (how, reason, options) => {
      const { pool, delivered, mend } = await startBadWorkers(how, options)
      const run = await startMapping({ reader: streamOf(30), invoker: pool })
      await until(() => run.shown()[0]?.startsWith('retrying: ') ?? false)
      expect(run.shown()).toEqual([expect.stringContaining(reason)])
      expect([run.position(), delivered]).toEqual([undefined, []])
      await mend()
      await until(() => run.position() === '30')
      expect(run.shown()).toEqual(['running'])
      await until(() => delivered.length >= 30)
      expect(delivered).toEqual(numbers(30))
      expect(run.onFailure.messages).toEqual([])
    },
    timeoutMs,
  )

  test(
    'answers in an unknown shape loses its records in silence on AWS: here the display says so, once for all',
    async () => {
      const { pool } = await startBadWorkers('answers a wrong key')
      const run = await startMapping({ reader: streamOf(30), invoker: pool })
      await until(() => run.position() === '30')
      expect(run.troubles()).toEqual([
        'orders: 3 answers of no known shape count as success, as on AWS, and their records may be lost; the last: the answer (keys batchItemFailure) has no batchItemFailures',
      ])
    },
    timeoutMs,
  )

  test(
    'fails to the end of its retries has its batch reported, and the display counts it',
    async () => {
      const { pool, delivered } = await startBadWorkers('throws undefined')
      const settings = { maximumRetryAttempts: 1 }
      const run = await startMapping({ reader: streamOf(10), invoker: pool, settings })
      await until(() => run.position() === '10')
      expect(delivered).toEqual([])
      expect(run.onFailure.envelopes).toMatchObject([{ KinesisBatchInfo: { startSequenceNumber: '1', batchSize: 10 } }])
      expect(run.troubles()).toEqual(['orders: 10 records were given up and reported to the on-failure destination'])
    },
    timeoutMs,
  )
})

test(
  'a full disk for the checkpoint: the shard is blocked and says so, nothing newer begins; with space again nothing is lost or repeated',
  async () => {
    const { pool, delivered, mend } = await startBadWorkers('exits')
    await mend()
    let isFull = true
    const written: string[] = []
    const checkpoints = new CheckpointFile(join(folder, 'checkpoints.json'), async (_path, text) => {
      if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      written.push(text)
    })
    const run = await startMapping({ reader: streamOf(30), invoker: pool, checkpoints })
    await until(() => run.shown()[0]?.startsWith('blocked: ') ?? false)
    expect(run.shown()).toEqual([
      `blocked: its checkpoint cannot be saved: ${join(folder, 'checkpoints.json')} cannot be written: the disk is full; free some space and the run goes on`,
    ])
    await until(() => delivered.length >= 10)
    expect([run.position(), delivered]).toEqual([undefined, numbers(10)])
    isFull = false
    await until(() => run.position() === '30')
    await until(() => delivered.length >= 30)
    expect(delivered).toEqual(numbers(30))
    expect(JSON.parse(written.at(-1) ?? '').shards[s0].position).toEqual({ at: 'after', sequenceNumber: '30' })
    expect(run.shown()).toEqual(['running'])
  },
  timeoutMs,
)

async function startStreams(...names: readonly string[]): Promise<{ url: string; client: KinesisClient }> {
  const service = await startKinesisService()
  const client = localKinesisClient(service.url)
  closing.push(() => service.close())
  closing.push(() => client.destroy())
  for (const StreamName of names) await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
  return { url: service.url, client }
}

function put(client: KinesisClient, StreamName: string, texts: readonly string[]) {
  const Records = texts.map((text) => ({ PartitionKey: text, Data: Buffer.from(text) }))
  return client.send(new PutRecordsCommand({ StreamName, Records }))
}

test(
  'a stream that is deleted while it is read: what was read is delivered, the shard is blocked with the reason, and nothing else is touched',
  async () => {
    const { client } = await startStreams('orders')
    const { pool, delivered, mend } = await startBadWorkers('throws undefined')
    await put(client, 'orders', numbers(20))
    const reader = new KinesisShardReader({ client, streamName: 'orders', clock: systemClock })
    const run = await startMapping({ reader, invoker: pool, settings: { batchSize: 20 } })
    await until(() => run.shown()[0]?.startsWith('retrying: ') ?? false)
    await client.send(new DeleteStreamCommand({ StreamName: 'orders' }))
    await until(() => run.shown()[0]?.startsWith('blocked: ') ?? false)
    expect(run.shown()).toEqual([
      expect.stringMatching(/^blocked: cannot be read: stream orders: (ResourceNotFound|ExpiredIterator)Exc/),
    ])
    await until(() => run.troubles().length > 0)
    expect(run.troubles()).toEqual([
      expect.stringMatching(
        /^orders: the stream's shards cannot be listed: stream orders: ResourceNotFoundException: Stream orders under account \d+ not found/,
      ),
    ])
    await mend()
    await until(() => delivered.length >= 20)
    expect(new Set(delivered).size).toBe(20)
    expect(run.onFailure.messages).toEqual([])

    // Another stream of that name has other records: it is not read from where the first was left.
    await client.send(new CreateStreamCommand({ StreamName: 'orders', ShardCount: 1 }))
    await put(client, 'orders', numbers(5))
    await until(() => run.shown()[0]?.includes('did not come from this stream') ?? false)
    expect(delivered).toHaveLength(20)
  },
  timeoutMs,
)

/** A way to Kinesis on which nothing can be put while `isRefusing` says so. */
async function startWayTo(url: string, isRefusing: () => boolean): Promise<{ url: string; refused: () => number }> {
  let refused = 0
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (isRefusing() && String(request.headers['x-amz-target']).endsWith('PutRecords')) {
      refused += 1
      response.writeHead(500, { 'content-type': 'application/x-amz-json-1.1' })
      response.end('{"__type":"InternalFailure","message":"the sink refuses"}')
      return
    }
    const headers = { 'x-amz-target': String(request.headers['x-amz-target']) }
    const answer = await fetch(url, { method: 'POST', headers, body: Buffer.concat(chunks) })
    response.writeHead(answer.status, { 'content-type': 'application/x-amz-json-1.1' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((go) => server.listen(0, '127.0.0.1', go))
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, refused: () => refused }
}

test(
  'a sink that refuses for longer than an invocation may take: shown as retrying, no dead letter, and then everything arrives',
  async () => {
    const { url, client } = await startStreams('names', 'greetings', 'greetings-dead-letters')
    let isRefusing = true
    const way = await startWayTo(url, () => isRefusing)
    const sourceArn = 'arn:aws:kinesis:us-east-1:000000000000:stream/names'
    const bindings = {
      formatVersion: 1,
      topology: 'greetings',
      sources: [{ name: 'names', kind: 'kinesis', streamArn: sourceArn }],
      sinks: [{ name: 'greetings', kind: 'kinesis', streamName: 'greetings', ordering: 'per-key' }],
      deadLetters: { kind: 'kinesis', streamName: 'greetings-dead-letters' },
    } as const
    const lines: string[] = []
    const pool = await startWorkerPool({
      size: 1,
      handlerFile: await bundleHandler({ entry: 'test/local/fixtures/greetings.ts', directory: folder, bindings }),
      functionName: 'greetings',
      environment: environmentOf({ bindings, endpoints: endpointsAt(way.url) }),
      memoryLimitMb: 256,
      ...{ timeoutMs: 4_000, initTimeoutMs: 60_000 },
      onLine: (_worker, _output, line) => lines.push(line),
    })
    closing.push(() => pool.stop())
    const records = numbers(20).map((number) => JSON.stringify({ name: `n${number}` }))
    await put(client, 'names', records)
    const reader = new KinesisShardReader({ client, streamName: 'names', clock: systemClock })
    const settings = { batchSize: 20, bisectBatchOnFunctionError: true }
    const run = await startMapping({ reader, invoker: pool, settings, sourceArn })
    const received: string[] = []
    const deadLetters: unknown[] = []
    for (const [streamName, onText] of [
      ['greetings', (text: string) => received.push(JSON.parse(text).text)],
      ['greetings-dead-letters', (text: string) => deadLetters.push(text)],
    ] as const) {
      const tail = await startStreamTail({
        reader: new KinesisShardReader({ client, streamName, clock: systemClock }),
        clock: systemClock,
        onRecords: (given) => {
          for (const { data } of given) onText(Buffer.from(data).toString())
        },
      })
      closing.push(() => tail.stop())
    }
    // A machine that is busy may time the whole invocation out; that is retried, too.
    const isReported = () =>
      /^retrying: the function reported \d+ as failed; its log says why/.test(run.shown()[0] ?? '')
    await until(isReported)
    await until(() => lines.some((line) => line.includes('"code":"sink-deadline"')))
    await until(() => way.refused() > 1)
    expect(run.position()).toBeUndefined()
    isRefusing = false
    await until(() => run.position() !== undefined && run.shown()[0] === 'running')
    await until(() => new Set(received).size >= 20)
    expect([...new Set(received)].sort()).toEqual(
      numbers(20)
        .map((number) => `Hello n${number}`)
        .sort(),
    )
    expect(deadLetters).toEqual([])
    expect(run.onFailure.messages).toEqual([])
  },
  timeoutMs,
)
