/** The table sink against the embedded DynamoDB, through the real SDK: what its unit tests claim of a stub holds of the model too. */
import {
  type AttributeValue,
  CreateTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb'
import { createDynamoDBClient } from '../../../lib/aws/clients/dynamodb.ts'
import { dynamodbTableSink } from '../../../lib/aws/sinks/dynamodb-table.ts'
import type { DynamoFaults } from '../../../lib/emulator/dynamodb/index.ts'
import { type DynamoService, startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import type { Output } from '../../../lib/runtime/sink.ts'
import { type Probe, type Refusal, type SinkUnderTest, sinkConformance } from '../../../lib/testing/sink-conformance.ts'
import { InstantClock, never, outputs, testPorts } from '../sink-worlds.ts'

const tableName = 'rates'
let service: DynamoService
let client: DynamoDBClient
let refusal: Refusal | undefined
const credentials = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const

/** Throttles updates of the row concerned as often as was planned. */
const refuse: DynamoFaults['refuse'] = ({ operation, key }) => {
  if (operation !== 'UpdateItem' || refusal === undefined || key?.id?.S !== refusal.key || refusal.times === 0) {
    return undefined
  }
  refusal.refused()
  refusal = { ...refusal, times: refusal.times - 1 }
  return 'throttle'
}

beforeAll(() => {
  for (const name of credentials) process.env[name] = 'local'
})
afterAll(() => {
  for (const name of credentials) delete process.env[name]
})

beforeEach(async () => {
  service = await startDynamoService({ faults: { refuse } })
  client = createDynamoDBClient({ endpoint: service.url, region: 'us-east-1' })
  await createTable()
})
afterEach(async () => {
  client.destroy()
  await service.close()
})

async function createTable(): Promise<void> {
  refusal = undefined
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
    }),
  )
}

const makeSink = (name = tableName) =>
  dynamodbTableSink({ client, tableName: name, partitionKey: 'id', ...testPorts(new InstantClock()) })

async function deliver(list: readonly Output<unknown>[], sink = makeSink()) {
  const outcomes = await sink.deliver(
    list.map((output) => sink.prepare(output)),
    { signal: never() },
  )
  return outcomes.map((outcome) =>
    outcome.status === 'delivered' ? 'delivered' : [outcome.status, outcome.error.name],
  )
}

async function row(id: string): Promise<Record<string, AttributeValue> | undefined> {
  return (await client.send(new GetItemCommand({ TableName: tableName, Key: { id: { S: id } }, ConsistentRead: true })))
    .Item
}

const byId = ({ id }: { id: string }): string => id

describe('the sink keeps every rule of a sink', () => {
  const make = async (): Promise<SinkUnderTest> => ({
    sink: makeSink(),
    keeps: 'latest',
    idempotent: true,
    refuse: (planned) => {
      refusal = planned
    },
    stored: async () => {
      const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }))
      return Items.map(({ key, n }): Probe => ({ key: key?.S ?? '', n: Number(n?.N) }))
    },
  })
  for (const { name, run } of sinkConformance('the table sink', { make })) test(name, run)
})

test('a row has the attributes of its outputs and remembers their position', async () => {
  await deliver(
    outputs(
      [
        { id: 'h1', price: 12.5, seats: 12345678901234567890n, note: 'ä', tags: ['x', { deep: null }] },
        { id: 'h1', price: 13, note: undefined },
      ],
      byId,
    ),
  )
  expect(await row('h1')).toEqual({
    id: { S: 'h1' },
    price: { N: '13' },
    seats: { N: '12345678901234567890' },
    tags: { L: [{ S: 'x' }, { M: { deep: { NULL: true } } }] },
    'millrace#orders/shardId-000000000000': { S: '001:2/001:0/001:0' },
  })
})

test('an output that comes again, or an older one, changes nothing and is delivered', async () => {
  const list = outputs(
    [1, 2, 3].map((price) => ({ id: 'h1', price })),
    byId,
  )
  await deliver(list)
  const before = await row('h1')
  expect(await deliver(list.slice(0, 2))).toEqual(['delivered', 'delivered'])
  expect(await row('h1')).toEqual(before)
  expect(before?.price).toEqual({ N: '3' })
})

test('a row that outgrows a table item is rejected; its neighbours are written', async () => {
  const text = 'x'.repeat(300_000)
  await deliver(outputs([{ id: 'big', first: text }], byId))
  const more = outputs([{ id: 'big', second: text }, { id: 'small' }], byId, 2)
  expect(await deliver(more)).toEqual([['rejected', 'TerminalError'], 'delivered'])
  expect(Object.keys((await row('big')) ?? {})).not.toContain('second')
})

test('a missing table returns everything', async () => {
  expect(await deliver(outputs([{ id: 'h1' }], byId), makeSink('none'))).toEqual([['retry', expect.any(String)]])
})
