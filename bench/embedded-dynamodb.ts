/**
 * How fast the embedded DynamoDB takes conditional updates, the write that keyed state is made of: through the real SDK over HTTP,
 * the service in a thread of its own, as the clients of a local run are other processes; and in the model alone.
 * `node bench/embedded-dynamodb.ts [--json FILE]`. Exits with 1 when a figure misses its goal.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import {
  BatchGetItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { createDynamoModel } from '../lib/emulator/dynamodb/index.ts'
import { startDynamoService } from '../lib/local/services/dynamodb.ts'
import { listenOnLoopback } from '../lib/local/services/loopback-server.ts'
import { type Figure, finish, median, table } from './figures.ts'

const KEYS = 1_000
const UPDATES = 6_000
const MODEL_UPDATES = 50_000
const BATCHES = 200
const IN_FLIGHT = 16
const ROUNDS = 3
const TableName = 'bench'
/** The SDK's client bounds the figure: see the server that does nothing. dynalite took 800 a second on a machine like this. */
const GOAL = { goal: 800, unit: 'updates/s' }

const definition = {
  TableName,
  AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' as const }],
  KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' as const }],
  BillingMode: 'PAY_PER_REQUEST' as const,
}

/** The n-th update of its key: state and position, on condition of the position before. */
function update(n: number): UpdateItemCommandInput & { TableName: string; Key: object } {
  const position = Math.floor(n / KEYS)
  return {
    TableName,
    Key: { key: { S: `key-${n % KEYS}` } },
    UpdateExpression: 'SET #count = :count, revenue = :revenue, #position = :position',
    ConditionExpression: position === 0 ? 'attribute_not_exists(#position)' : '#position = :before',
    ExpressionAttributeNames: { '#count': 'count', '#position': 'position' },
    ExpressionAttributeValues: {
      ':count': { N: String(position + 1) },
      ':revenue': { N: `${n}.25` },
      ':position': { N: String(position) },
      ...(position === 0 ? {} : { ':before': { N: String(position - 1) } }),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  }
}

async function perSecond(count: number, work: () => unknown): Promise<number> {
  const startMs = performance.now()
  await work()
  return Math.round((count * 1_000) / (performance.now() - startMs))
}

/** Sends the numbers from 0 to `count`, several at a time, those of one key one after another. */
async function sendAll(count: number, send: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async (_, lane) => {
      for (let n = lane; n < count; n += 1) if ((n % KEYS) % IN_FLIGHT === lane) await send(n)
    }),
  )
}

const createClient = (endpoint: string) =>
  new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })

/** What the other thread serves: the embedded DynamoDB, or answers to nobody in particular. */
type Served = { readonly directory?: string } | 'nothing'

async function serve(served: Served): Promise<string> {
  if (served !== 'nothing') return (await startDynamoService(served)).url
  const server = await listenOnLoopback({
    service: 'nothing',
    port: 0,
    contentType: 'application/x-amz-json-1.0',
    largestBodyBytes: 1_000_000,
    answer: async () => ({ status: 200, body: '{}' }),
  })
  return server.url
}

/** Gives a client of a service in a thread of its own to `work`, and ends both afterwards. */
async function withService<T>(served: Served, work: (client: DynamoDBClient) => Promise<T>): Promise<T> {
  const thread = new Worker(new URL(import.meta.url), { workerData: served })
  const [endpoint] = (await once(thread, 'message')) as [string]
  const client = createClient(endpoint)
  try {
    return await work(client)
  } finally {
    client.destroy()
    await thread.terminate()
  }
}

const sendUpdates = (client: DynamoDBClient) =>
  perSecond(UPDATES, () => sendAll(UPDATES, (n) => client.send(new UpdateItemCommand(update(n)))))

function measureService(directory?: string) {
  return withService(directory === undefined ? {} : { directory }, async (client) => {
    await client.send(new CreateTableCommand(definition))
    const updates = await sendUpdates(client)
    const Keys = Array.from({ length: 100 }, (_, n) => ({ key: { S: `key-${n}` } }))
    const RequestItems = { [TableName]: { Keys, ConsistentRead: true } }
    const reads = await perSecond(BATCHES * 100, () =>
      sendAll(BATCHES, () => client.send(new BatchGetItemCommand({ RequestItems }))),
    )
    const rounds = UPDATES / KEYS
    const TransactItems = (batch: number) =>
      Array.from({ length: 4 }, (_, i) => {
        const { ReturnValuesOnConditionCheckFailure, ...Update } = update(rounds * KEYS + batch * 4 + i)
        return { Update: { ...Update, UpdateExpression: Update.UpdateExpression ?? '' } }
      })
    const transactions = await perSecond(BATCHES, () =>
      sendAll(BATCHES, (n) => client.send(new TransactWriteItemsCommand({ TransactItems: TransactItems(n) }))),
    )
    return { updates, reads, transactions }
  })
}

/** What the SDK's client costs by itself: the same updates, to a server that answers nothing. No service can be faster. */
const measureClient = () => withService('nothing', sendUpdates)

function measureModel(): Promise<number> {
  const model = createDynamoModel({ clock: { nowMs: () => 0 } })
  model.call('CreateTable', definition)
  const inputs = Array.from({ length: MODEL_UPDATES }, (_, n) => update(n))
  return perSecond(MODEL_UPDATES, () => {
    for (const input of inputs) model.call('UpdateItem', input as Parameters<typeof model.call<'UpdateItem'>>[1])
  })
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: 'string' } } })
  const memory: Awaited<ReturnType<typeof measureService>>[] = []
  const journal: typeof memory = []
  const alone: number[] = []
  const clientAlone: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const directory = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
    try {
      memory.push(await measureService())
      journal.push(await measureService(directory))
      alone.push(await measureModel())
      clientAlone.push(await measureClient())
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  const figures: Figure[] = [
    {
      name: 'conditional updates through the SDK, in memory',
      value: median(memory.map(({ updates }) => updates)),
      ...GOAL,
    },
    {
      name: 'conditional updates through the SDK, with a journal',
      value: median(journal.map(({ updates }) => updates)),
      ...GOAL,
    },
    { name: 'the same updates to a server that does nothing', value: median(clientAlone), unit: 'updates/s' },
    { name: 'conditional updates in the model alone', value: median(alone), unit: 'updates/s' },
    {
      name: 'items read in batches of 100 through the SDK',
      value: median(memory.map(({ reads }) => reads)),
      unit: 'items/s',
    },
    {
      name: 'transactions of four updates through the SDK',
      value: median(memory.map(({ transactions }) => transactions)),
      unit: 'transactions/s',
    },
  ]
  console.log(
    table(
      figures.map(({ name, value, unit, goal }) => [
        name,
        value.toLocaleString('en'),
        unit,
        goal === undefined ? '' : `goal ${goal.toLocaleString('en')}`,
      ]),
    ),
  )
  finish('npm run bench:dynamodb', figures, values.json)
}

if (isMainThread) await main()
else parentPort?.postMessage(await serve(workerData as Served))
