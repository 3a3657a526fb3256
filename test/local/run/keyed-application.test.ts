/** Keyed stages in a local run: the deployed handler in worker processes, on the embedded Kinesis and DynamoDB. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DescribeTimeToLiveCommand } from '@aws-sdk/client-dynamodb'
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { Closing } from '../../../lib/local/closing.ts'
import { LocalFunction } from '../../../lib/local/dead-letters/function.ts'
import { shardViews } from '../../../lib/local/display/run-display.ts'
import {
  type LocalApplication,
  type LocalApplicationOptions,
  startLocalApplication,
} from '../../../lib/local/run/application.ts'
import { ensureStateTable, localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { ridesApp } from '../fixtures/rides.ts'

const timeoutMs = 300_000
const never = new AbortController().signal
let directory: string
let closing: Closing
let received: { output: string; value: unknown }[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-keyed-'))
  closing = new Closing()
  received = []
})
afterEach(async () => {
  await closing.close()
  await rm(directory, { recursive: true, force: true })
})

async function start(options: Partial<LocalApplicationOptions> = {}): Promise<LocalApplication> {
  const app = await startLocalApplication({
    topology: ridesApp,
    entry: 'test/local/fixtures/rides.ts',
    directory: join(directory, 'state'),
    workers: 1,
    onOutput: (output, records) => {
      for (const { data } of records) received.push({ output, value: JSON.parse(Buffer.from(data).toString()) })
    },
    ...options,
    mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 50 }, ...options.mapping },
  })
  closing.defer(() => app.stop())
  return app
}

interface Ride {
  readonly driver: string
  readonly city: string
  readonly km: number
}

async function send(app: LocalApplication, rides: readonly Ride[]): Promise<void> {
  const Records = rides.map((ride) => ({ PartitionKey: ride.driver, Data: Buffer.from(JSON.stringify(ride)) }))
  await app.client.send(new PutRecordsCommand({ StreamName: app.streamOf('rides').streamName, Records }))
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = systemClock.nowMs() + timeoutMs / 2
  while (!condition()) {
    if (systemClock.nowMs() > endMs) throw new Error('the condition did not come true in time')
    await systemClock.sleep(10)
  }
}

async function settle(app: LocalApplication): Promise<void> {
  const sentAtMs = systemClock.nowMs()
  await until(() => app.hasProcessed(sentAtMs))
  const processedAtMs = systemClock.nowMs()
  await until(() => app.hasReadOutputs(processedAtMs))
}

/** What the table of a stage holds of a state, by key. */
async function statesOf(app: LocalApplication, stage: string, state: string, keys: readonly string[]) {
  const client = localDynamoDBClient(app.endpoints.dynamodb)
  try {
    const store = new DynamoDBStateStore({ client, tableName: `rides-app-${stage}-state`, stage, clock: systemClock })
    const items = await store.readKeys(keys, never)
    return new Map(keys.map((key) => [key, items.get(key)?.states[state]]))
  } finally {
    client.destroy()
  }
}

const drivers = Array.from({ length: 12 }, (_, i) => `driver-${i}`)
const citiesVisited = ['Bern', 'Chur', 'Genf']
const ridesOf = (count: number, from = 0): Ride[] =>
  Array.from({ length: count }, (_, i) => ({
    driver: drivers[(i + from) % drivers.length] ?? '',
    city: citiesVisited[(i + from) % 3] ?? '',
    km: 1 + ((i + from) % 5),
  }))

/** What a plain loop over the rides comes to. */
function expected(rides: readonly Ride[]) {
  const byDriver = new Map<string, unknown>()
  const byCity = new Map<string, { city: string; rides: number }>()
  for (const { driver, city, km } of rides) {
    const sum = (byDriver.get(driver) ?? { rides: 0, km: 0 }) as { rides: number; km: number }
    byDriver.set(driver, { rides: sum.rides + 1, km: sum.km + km, city })
    byCity.set(city, { city, rides: (byCity.get(city)?.rides ?? 0) + 1 })
  }
  return { byDriver, byCity }
}

test(
  'two keyed stages count exactly, whatever workers are killed meanwhile',
  async () => {
    const killed: string[] = []
    const invocations = new Map<string, number>()
    const app: LocalApplication = await start({
      shards: 2,
      workers: 2,
      batchSize: 10,
      onInvocation({ stage, workerId, outcome }) {
        // A worker that died with it is not there to be killed again.
        if (outcome !== 'answered') return
        const count = (invocations.get(stage) ?? 0) + 1
        invocations.set(stage, count)
        if (count !== 2 && count !== 5) return
        killed.push(stage)
        void app.workersOf(stage).killWorker(workerId)
      },
    })
    await app.run()
    const rides = ridesOf(240)
    for (let i = 0; i < rides.length; i += 40) await send(app, rides.slice(i, i + 40))
    await settle(app)
    const { byDriver, byCity } = expected(rides)
    expect(await statesOf(app, 'by-driver', 'driven', drivers)).toEqual(byDriver)
    expect(await statesOf(app, 'by-city', 'visited', citiesVisited)).toEqual(byCity)
    expect(new Set(killed)).toEqual(new Set(['rides', 'by-driver', 'by-city']))
    // Outputs come at least once; which ones is exact.
    const counts = received.map(({ value }) => JSON.stringify(value))
    const every = [...byCity.values()].flatMap(({ city, rides: count }) =>
      Array.from({ length: count }, (_, i) => JSON.stringify({ city, rides: i + 1 })),
    )
    expect(new Set(counts)).toEqual(new Set(every))
    expect(received.filter(({ output }) => output !== 'cities')).toEqual([])
  },
  timeoutMs,
)

test(
  'the next run goes on with the state, and says of every stage where it is',
  async () => {
    const first = await start()
    await first.run()
    await send(first, ridesOf(24))
    await settle(first)
    await first.stop()
    const second = await start()
    expect(second.streamOf('by-driver')).toMatchObject({ streamName: 'rides-app-by-driver', isNew: false })
    await second.run()
    await send(second, ridesOf(10, 24))
    await settle(second)
    const { byDriver, byCity } = expected(ridesOf(34))
    expect(await statesOf(second, 'by-driver', 'driven', drivers)).toEqual(byDriver)
    expect(await statesOf(second, 'by-city', 'visited', citiesVisited)).toEqual(byCity)
    const status = second.status()
    expect(status.stages.map(({ name, kind, streamName }) => [name, kind, streamName])).toEqual([
      ['rides', 'feeding', 'rides'],
      ['by-driver', 'keyed', 'rides-app-by-driver'],
      ['by-city', 'keyed', 'rides-app-by-city'],
    ])
    expect(shardViews(status).map(({ stage, waiting }) => [stage, waiting])).toEqual([
      ['rides', 0],
      ['by-driver', 0],
      ['by-city', 0],
    ])
  },
  timeoutMs,
)

test(
  'a state table is made with TTL, and each bundle holds what its stage needs',
  async () => {
    const app = await start()
    const client = localDynamoDBClient(app.endpoints.dynamodb)
    closing.defer(() => client.destroy())
    const ask = new DescribeTimeToLiveCommand({ TableName: 'rides-app-by-city-state' })
    const { TimeToLiveDescription } = await client.send(ask)
    expect(TimeToLiveDescription).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' })
    // A table that is there already stays as it is.
    await ensureStateTable(client, systemClock, 'rides-app-by-city-state')
    const bundleOf = (stage: string) => readFile(join(directory, 'state/bundle', stage, 'handler.mjs'), 'utf8')
    for (const stage of ['rides', 'by-driver', 'by-city']) expect(await bundleOf(stage)).toContain('DynamoDB_20120810')
    expect(await bundleOf('rides')).toContain('ExplicitHashKey')
    // A redrive finds the same resources.
    const own = await LocalFunction.start({
      ...{
        planned: plan(ridesApp),
        entry: 'test/local/fixtures/rides.ts',
        directory: join(directory, 'state'),
        tables: {},
      },
      ...{ endpoints: app.endpoints, client: app.client, deadLetterStream: 'rides-app-dead-letters' },
      onLine: () => undefined,
    })
    closing.defer(() => own.stop())
    const streams = own.keyedStreams()
    expect([streams.slotsOf('by-city'), streams.slotsOf('rides')]).toEqual([
      64,
      { reason: 'topology "rides-app" has no keyed stage "rides"' },
    ])
  },
  timeoutMs,
)

test('two batches of a shard at once are refused before anything is made', async () => {
  await expect(start({ mapping: { parallelizationFactor: 2 } })).rejects.toThrow(
    'stage "rides" has the parallelization factor 2, and it feeds the keyed stage "by-driver"',
  )
})
