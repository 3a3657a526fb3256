/** Sinks that are tables: on the embedded DynamoDB and on an endpoint that another program runs. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeleteTableCommand, paginateScan, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import { DeleteStreamCommand, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { Closing } from '../../../lib/local/closing.ts'
import {
  type LocalApplication,
  type LocalApplicationOptions,
  startLocalApplication,
} from '../../../lib/local/run/application.ts'
import { endpointsAt, startLocalServices } from '../../../lib/local/run/endpoints.ts'
import { environmentOf } from '../../../lib/local/run/stage.ts'
import { localKinesisClient } from '../../../lib/local/run/streams.ts'
import { ensureTable, localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { startForeignServices } from '../fixtures/foreign-services.ts'
import { visitsApp } from '../fixtures/visits.ts'

const timeoutMs = 180_000
const tables = {
  'last-visits': { partitionKey: 'name' },
  'all-visits': { partitionKey: 'name', sortKey: 'atMs', sortKeyType: 'N' },
} as const
let directory: string
let closing: Closing

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-tables-'))
  closing = new Closing()
})
afterEach(async () => {
  await closing.close()
  await rm(directory, { recursive: true, force: true })
})

async function start(options: Partial<LocalApplicationOptions> = {}): Promise<LocalApplication> {
  const app = await startLocalApplication({
    topology: visitsApp,
    entry: 'test/local/fixtures/visits.ts',
    directory: join(directory, 'state'),
    workers: 1,
    tables,
    mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 50 } },
    ...options,
  })
  closing.defer(() => app.stop())
  return app
}

interface Visit {
  readonly name: string
  readonly page: string
  readonly atMs: number
}
const ada = { name: 'Ada', page: 'home', atMs: 1 }
const bob = { name: 'Bob', page: 'home', atMs: 2 }
const adaAgain = { name: 'Ada', page: 'news', atMs: 3 }

async function send(app: LocalApplication, ...visits: readonly Visit[]): Promise<void> {
  const Records = visits.map((visit) => ({ PartitionKey: visit.name, Data: Buffer.from(JSON.stringify(visit)) }))
  await app.client.send(new PutRecordsCommand({ StreamName: 'visits', Records }))
}

/** Runs until all that was sent is processed. */
async function settle(app: LocalApplication): Promise<void> {
  const sinceMs = systemClock.nowMs()
  await app.run()
  while (!app.hasProcessed(sinceMs)) {
    if (systemClock.nowMs() > sinceMs + timeoutMs / 2) throw new Error('not processed in time')
    await systemClock.sleep(10)
  }
}

/** What a table holds, beside the positions that Millrace keeps in its rows. */
async function rowsOf(app: LocalApplication, TableName: string): Promise<readonly Visit[]> {
  const client = localDynamoDBClient(app.endpoints.dynamodb)
  const rows: Visit[] = []
  for await (const { Items = [] } of paginateScan({ client }, { TableName })) {
    for (const { name, page, atMs } of Items)
      rows.push({ name: name?.S ?? '', page: page?.S ?? '', atMs: Number(atMs?.N) })
  }
  client.destroy()
  return rows.sort((one, other) => one.atMs - other.atMs)
}

test(
  'rows are in the tables, the other sinks stay streams, and the next run keeps the rows',
  async () => {
    const first = await start()
    expect([...first.tables.values()]).toEqual([
      { tableName: 'last-visits', partitionKey: 'name', partitionKeyType: 'S' },
      { tableName: 'all-visits', partitionKey: 'name', partitionKeyType: 'S', sortKey: 'atMs', sortKeyType: 'N' },
    ])
    expect(first.status().outputs.map(({ name }) => name)).toEqual(['pages', 'dead letters'])
    await send(first, ada, bob, adaAgain)
    await settle(first)
    expect(await rowsOf(first, 'last-visits')).toEqual([bob, adaAgain])
    expect(await rowsOf(first, 'all-visits')).toEqual([ada, bob, adaAgain])
    await first.stop()
    const second = await start()
    expect(await rowsOf(second, 'all-visits')).toEqual([ada, bob, adaAgain])
    await second.stop()
    const fresh = await start({ fresh: true })
    expect(await rowsOf(fresh, 'all-visits')).toEqual([])
  },
  timeoutMs,
)

test(
  'what is delivered again is not applied again',
  async () => {
    const first = await start()
    await send(first, ada, bob)
    await settle(first)
    // A mark that a second application would overwrite.
    const client = localDynamoDBClient(first.endpoints.dynamodb)
    await client.send(
      new UpdateItemCommand({
        TableName: 'last-visits',
        Key: { name: { S: 'Ada' } },
        UpdateExpression: 'SET page = :mark',
        ExpressionAttributeValues: { ':mark': { S: 'marked' } },
      }),
    )
    client.destroy()
    await first.stop()
    await rm(join(directory, 'state/checkpoints'), { recursive: true })
    const second = await start()
    await settle(second)
    expect(second.status().stages[0]?.mapping.counters.invokedEvents).toBe(2)
    expect(await rowsOf(second, 'last-visits')).toEqual([{ ...ada, page: 'marked' }, bob])
    await send(second, adaAgain)
    await settle(second)
    expect(await rowsOf(second, 'last-visits')).toEqual([bob, adaAgain])
  },
  timeoutMs,
)

test(
  'an endpoint takes the place of both services, and the tables are made there',
  async () => {
    const foreign = await startForeignServices()
    closing.defer(() => foreign.close())
    await expectToWorkAt(foreign.url)
  },
  timeoutMs,
)

async function expectToWorkAt(url: string): Promise<void> {
  const first = await start({ endpoint: url })
  expect(first.endpoints).toEqual(endpointsAt(url))
  await send(first, ada, bob)
  await settle(first)
  await first.stop()
  const second = await start({ endpoint: url })
  await send(second, adaAgain)
  await settle(second)
  expect(second.status().stages[0]?.mapping.counters.invokedEvents).toBe(1)
  expect(await rowsOf(second, 'last-visits')).toEqual([bob, adaAgain])
  expect(await rowsOf(second, 'all-visits')).toEqual([ada, bob, adaAgain])
  // No service of our own was started for it.
  const names = await readdir(join(directory, 'state'))
  expect(names.filter((name) => name === 'kinesis' || name === 'dynamodb')).toEqual([])
}

const ministackUrl = process.env.MILLRACE_MINISTACK_URL
if (ministackUrl === undefined) {
  console.warn(
    'SKIPPED: tables on MiniStack, since MILLRACE_MINISTACK_URL is not set. Run it with: .ci/ministack run npx jest test/local/run/tables',
  )
}
const onMiniStack = ministackUrl === undefined ? test.skip : test

onMiniStack(
  'MiniStack, an emulator that others wrote, takes the tables, too',
  async () => {
    const url = ministackUrl ?? ''
    const kinesis = localKinesisClient(url)
    const dynamodb = localDynamoDBClient(url)
    for (const StreamName of ['visits', 'pages', 'visits-dead-letters']) {
      await kinesis.send(new DeleteStreamCommand({ StreamName })).catch(() => undefined)
    }
    for (const TableName of Object.keys(tables)) {
      await dynamodb.send(new DeleteTableCommand({ TableName })).catch(() => undefined)
    }
    kinesis.destroy()
    dynamodb.destroy()
    await expectToWorkAt(url)
  },
  timeoutMs,
)

test('a function finds the services of the run in its environment, and no endpoint for those that the run has not', async () => {
  const bindings = {
    formatVersion: 1,
    topology: 'visits',
    sources: [],
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 'dead' },
  } as const
  const endpoints = await startLocalServices(directory, 0, closing)
  expect(endpoints.kinesis).not.toBe(endpoints.dynamodb)
  const embedded = environmentOf({ bindings, endpoints })
  expect(embedded).toMatchObject({
    AWS_ENDPOINT_URL_KINESIS: endpoints.kinesis,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpoints.dynamodb,
  })
  expect(embedded).not.toHaveProperty('AWS_ENDPOINT_URL')
  const url = 'http://127.0.0.1:4566'
  expect(environmentOf({ bindings, endpoints: endpointsAt(url) })).toMatchObject({
    AWS_ENDPOINT_URL: url,
    AWS_ENDPOINT_URL_KINESIS: url,
    AWS_ENDPOINT_URL_DYNAMODB: url,
  })
})

test('a table that exists keeps its keys: their types are taken over, and other keys are one clear line', async () => {
  const service = await startDynamoService()
  closing.defer(() => service.close())
  const client = localDynamoDBClient(service.url)
  closing.defer(() => client.destroy())
  const made = await ensureTable(client, systemClock, 'totals', { partitionKey: 'day', partitionKeyType: 'N' })
  expect(await ensureTable(client, systemClock, 'totals', { partitionKey: 'day' })).toEqual(made)
  const others = [
    { partitionKey: 'week' },
    { partitionKey: 'day', partitionKeyType: 'S' },
    { partitionKey: 'day', sortKey: 'hour' },
  ] as const
  for (const keys of others) {
    await expect(ensureTable(client, systemClock, 'totals', keys)).rejects.toThrow(
      /^The table totals exists with the key day:N, which is not the one asked for: .*\.$/,
    )
  }
})

test('a table for what is no sink, and an endpoint where nobody listens, are one clear line', async () => {
  await expect(start({ tables: { visit: { partitionKey: 'name' } } })).rejects.toThrow(
    /^a table is bound to "visit", which is no sink of topology "visits": it has last-visits, all-visits, pages\.$/,
  )
  await expect(start({ endpoint: 'http://127.0.0.1:1' })).rejects.toThrow(
    /^The table last-visits cannot be made ready: .*Check that the endpoint runs and speaks DynamoDB\.$/,
  )
})
