import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { shardViews } from '../../../lib/local/display/run-display.ts'
import {
  deadLetterOutput,
  type LocalApplication,
  type LocalApplicationOptions,
  startLocalApplication,
} from '../../../lib/local/run/application.ts'
import type { LocalInvocation } from '../../../lib/local/run/stage.ts'
import type { WorkerEvent } from '../../../lib/local/workers/index.ts'
import { greetingsApp } from '../fixtures/greetings.ts'

const timeoutMs = 180_000
let directory: string
let running: LocalApplication[] = []
let received: { output: string; value: unknown }[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-application-'))
  received = []
})
afterEach(async () => {
  await Promise.all(running.map((app) => app.stop()))
  running = []
  await rm(directory, { recursive: true })
})

async function start(options: Partial<LocalApplicationOptions> = {}): Promise<LocalApplication> {
  const app = await startLocalApplication({
    topology: greetingsApp,
    entry: 'test/local/fixtures/greetings.ts',
    directory: join(directory, 'state'),
    workers: 1,
    onOutput: (output, records) => {
      for (const { data } of records) received.push({ output, value: JSON.parse(Buffer.from(data).toString()) })
    },
    ...options,
  })
  running.push(app)
  return app
}

async function send(app: LocalApplication, ...payloads: readonly string[]): Promise<void> {
  const Records = payloads.map((payload) => ({ PartitionKey: payload, Data: Buffer.from(payload) }))
  await app.client.send(new PutRecordsCommand({ StreamName: app.streamOf('names').streamName, Records }))
}

/** Waits until all that was sent so far is processed and its outputs are received. */
async function settle(app: LocalApplication): Promise<void> {
  const sentAtMs = Date.now()
  await until(() => app.hasProcessed(sentAtMs))
  const processedAtMs = Date.now()
  await until(() => app.hasReadOutputs(processedAtMs))
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + timeoutMs / 2
  while (!condition()) {
    if (Date.now() > endMs) throw new Error('the condition did not come true in time')
    await new Promise((go) => setTimeout(go, 10))
  }
}

const hello = (name: string) => ({ output: 'greetings', value: { text: `Hello ${name}` } })

test(
  'records go through the bundled handler to the sinks, bad ones to the dead letters',
  async () => {
    const app = await start({ shards: 2 })
    await app.run()
    await send(app, '{"name":"Ada"}', '{"name":', '{"name":"Bob"}')
    await settle(app)
    const values = received.filter(({ output }) => output === 'greetings')
    expect(values).toHaveLength(2)
    expect(values).toEqual(expect.arrayContaining([hello('Ada'), hello('Bob')]))
    expect(received.filter(({ output }) => output === deadLetterOutput)).toMatchObject([
      { value: { source: 'names', reason: { code: 'not-json' } } },
    ])
    const status = app.status()
    expect(status.outputs).toMatchObject([
      { name: 'greetings', streamName: 'greetings', records: 2 },
      { name: deadLetterOutput, streamName: 'greetings-dead-letters', records: 1 },
    ])
    const shards = shardViews(status)
    expect(shards.map(({ state, waiting }) => ({ state, waiting }))).toEqual([
      { state: 'running', waiting: 0 },
      { state: 'running', waiting: 0 },
    ])
    expect(shards.reduce((sum, { done }) => sum + done, 0)).toBe(3)
    expect(await readFile(app.logFile, 'utf8')).toContain('a record became a dead letter')
    // What is not bound is not in the bundle.
    const bundle = await readFile(join(directory, 'state/bundle/names/handler.mjs'), 'utf8')
    expect(bundle).toContain('Kinesis_20131202')
    expect(bundle).not.toContain('DynamoDB_20120810')
  },
  timeoutMs,
)

test(
  'the next run goes on at the checkpoint and finds the streams as they were',
  async () => {
    const first = await start()
    await first.run()
    await send(first, '{"name":"Ada"}')
    await settle(first)
    await first.stop()
    received = []
    const second = await start()
    expect(second.streamOf('names').isNew).toBe(false)
    await send(second, '{"name":"Bob"}')
    await second.run()
    await settle(second)
    // Outputs are read from their beginning; a repeated greeting of Ada would be here twice.
    expect(received).toEqual([hello('Ada'), hello('Bob')])
    expect(second.status().stages[0]?.mapping.counters.invokedEvents).toBe(1)
  },
  timeoutMs,
)

test(
  'with fresh nothing is left of earlier runs',
  async () => {
    const first = await start()
    await first.run()
    await send(first, '{"name":"Ada"}')
    await settle(first)
    await first.stop()
    received = []
    const second = await start({ fresh: true })
    expect(second.streamOf('names').isNew).toBe(true)
    await second.run()
    await send(second, '{"name":"Bob"}')
    await settle(second)
    expect(received).toEqual([hello('Bob')])
  },
  timeoutMs,
)

test(
  'after halt nothing more is invoked, and what was done is saved',
  async () => {
    const app = await start()
    await app.run()
    await send(app, '{"name":"Ada"}')
    await settle(app)
    await app.halt()
    await send(app, '{"name":"Bob"}')
    const atMs = Date.now()
    await until(() => app.hasReadOutputs(atMs))
    expect(received).toEqual([hello('Ada')])
    expect(app.status().stages[0]?.mapping.state).toBe('stopped')
    const checkpoints = JSON.parse(await readFile(join(directory, 'state/checkpoints/names.json'), 'utf8'))
    expect(checkpoints.shards['shardId-000000000000'].position.at).toBe('after')
  },
  timeoutMs,
)

test(
  'workers can be killed and added while it runs, and say what they did',
  async () => {
    const events: WorkerEvent[] = []
    const invocations: LocalInvocation[] = []
    const recordsIn: number[] = []
    const app = await start({
      shards: 2,
      workers: 2,
      batchSize: 1,
      affinity: 'shards',
      mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 20 } },
      onWorkerEvent: (stage, event) => void (stage === 'names' && events.push(event)),
      onInvocation: (invocation) => invocations.push(invocation),
      onMetrics: (_stage, _workerId, metrics) => recordsIn.push(...(metrics.get('records-in') ?? [])),
    })
    await app.run()
    await send(app, '{"name":"Ada"}', '{"name":"Bob"}')
    await settle(app)
    await until(() => recordsIn.length === 2)
    expect(recordsIn).toEqual([1, 1])
    expect(invocations).toMatchObject([
      {
        stage: 'names',
        lane: 0,
        attempt: 1,
        records: 1,
        firstPosition: expect.stringMatching(/^\d+$/),
        outcome: 'answered',
      },
      { stage: 'names', records: 1, outcome: 'answered' },
    ])
    const workers = app.workersOf('names')
    await workers.addWorkers(1)
    expect(app.status().stages[0]?.workers.map(({ id }) => id)).toEqual(['w1', 'w2', 'w3'])
    await workers.killWorker('w1')
    expect(events.filter(({ kind }) => kind === 'exited')).toMatchObject([{ workerId: 'w1' }])
    await send(app, '{"name":"Cyd"}')
    await settle(app)
    const greeted = received.map(({ value }) => value)
    expect(greeted).toHaveLength(3)
    expect(greeted).toEqual(
      expect.arrayContaining([hello('Ada'), hello('Bob'), hello('Cyd')].map(({ value }) => value)),
    )
    expect(() => app.workersOf('nobody')).toThrow('there is no stage "nobody": there are names')
    await expect(workers.killWorker('w9')).rejects.toThrow('There is no worker w9')
  },
  timeoutMs,
)

test(
  'a directory that is in use is refused, and stays as it is',
  async () => {
    await start()
    await expect(start({ fresh: true })).rejects.toThrow(/application\.lock are in use by process \d+: stop it/)
    expect(running[0]?.status().outputs[0]?.records).toBe(0)
  },
  timeoutMs,
)

test(
  'what cannot start says why in one line and lets go of everything',
  async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((go) => server.once('listening', go))
    const { port } = server.address() as AddressInfo
    const broken = join(directory, 'broken.ts')
    await writeFile(broken, 'import { nothing } from "./missing.ts"\nexport const handler = nothing\n')
    await expect(start({ port })).rejects.toThrow(new RegExp(`^The embedded Kinesis cannot listen on port ${port} .*`))
    await expect(start({ entry: join(directory, 'none.ts') })).rejects.toThrow(/^There is no handler file .*none\.ts/)
    await expect(start({ entry: broken })).rejects.toThrow(
      /^The handler file .*broken\.ts cannot be bundled: .*broken\.ts:1: Could not resolve "\.\/missing\.ts"$/,
    )
    await new Promise((go) => server.close(go))
    // The lock and the port are free again.
    const app = await start({ port, entry: resolve('test/local/fixtures/greetings.ts') })
    expect(app.endpoint).toBe(`http://127.0.0.1:${port}`)
  },
  timeoutMs,
)
