import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import {
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  ExecuteStatementCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import {
  type DynamoService,
  type DynamoServiceOptions,
  startDynamoService,
} from '../../../lib/local/services/dynamodb.ts'
import { runDynamoCalls } from './dynamodb-call-script.ts'

const TableName = 'orders'
let directory: string
const open: { close(): Promise<void> }[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-dynamodb-'))
})
afterEach(async () => {
  for (const service of open.splice(0)) await service.close().catch(() => {})
  await rm(directory, { recursive: true, force: true })
})

async function start(options: DynamoServiceOptions = {}): Promise<{ service: DynamoService; client: DynamoDBClient }> {
  const service = await startDynamoService({ sweepEveryMs: 0, ...options })
  const client = new DynamoDBClient({
    endpoint: service.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  open.push(service, { close: async () => client.destroy() })
  return { service, client }
}

const createTable = (client: DynamoDBClient) =>
  client.send(
    new CreateTableCommand({
      TableName,
      AttributeDefinitions: [{ AttributeName: 'p', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
      StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
    }),
  )

const put = (client: DynamoDBClient, p: string, n = 0) =>
  client.send(new PutItemCommand({ TableName, Item: { p: { S: p }, n: { N: String(n) } } }))

async function keys(client: DynamoDBClient): Promise<string[]> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName, ConsistentRead: true }))
  return Items.map(({ p }) => p?.S ?? '').sort()
}

interface RawAnswer {
  readonly status: number
  readonly json: Record<string, unknown>
}

/** What a raw request is answered with; the stream operations have a client of their own, which is not needed here. */
async function post(url: string, target: string, body: unknown): Promise<RawAnswer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'x-amz-target': target, 'content-type': 'application/x-amz-json-1.0' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await answer.text()
  expect(answer.headers.get('x-amz-crc32')).toBe(String(crc32(text)))
  return { status: answer.status, json: JSON.parse(text) }
}

/** The fields that tests use of the answers of the stream operations. */
interface StreamAnswer {
  readonly Streams: readonly { StreamArn?: string }[]
  readonly StreamDescription: { readonly Shards: readonly { ShardId?: string }[] }
  readonly ShardIterator: string
  readonly Records: readonly unknown[]
}

async function changes(url: string): Promise<readonly unknown[]> {
  const streams = async (operation: string, body: unknown) =>
    (await post(url, `DynamoDBStreams_20120810.${operation}`, body)).json as unknown as StreamAnswer
  const [{ StreamArn } = {}] = (await streams('ListStreams', { TableName })).Streams
  const { StreamDescription } = await streams('DescribeStream', { StreamArn })
  const [{ ShardId } = {}] = StreamDescription.Shards
  const { ShardIterator } = await streams('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
  return (await streams('GetRecords', { ShardIterator })).Records
}

describe('the embedded DynamoDB through the SDK', () => {
  it('answers a script of all kinds of calls', async () => {
    const { service, client } = await start()
    const outcomes = await runDynamoCalls(client, service.url, TableName)
    expect(Object.fromEntries(outcomes.map(({ call, outcome }) => [call, outcome]))).toMatchSnapshot()
  })

  it('carries values of every type, and names that objects have by themselves', async () => {
    const { client } = await start()
    await createTable(client)
    const B = Uint8Array.from({ length: 256 }, (_, i) => i)
    const Item = {
      p: { S: '🗝️' },
      bytes: { B },
      set: { BS: [B] },
      nested: { L: [{ M: { constructor: { N: '1.5' }, toString: { NULL: true } } }, { BOOL: false }] },
    }
    await client.send(new PutItemCommand({ TableName, Item }))
    const { Item: found } = await client.send(new GetItemCommand({ TableName, Key: { p: Item.p } }))
    expect(found).toEqual(Item)
  })

  it('throws the exceptions of the SDK, with the items and reasons that they carry', async () => {
    const { client } = await start()
    await expect(put(client, 'a')).rejects.toMatchObject({ name: 'ResourceNotFoundException', $fault: 'client' })
    await createTable(client)
    await put(client, 'a', 7)
    const failing = {
      ConditionExpression: 'n < :n',
      ExpressionAttributeValues: { ':n': { N: '7' } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    }
    const Item = { p: { S: 'a' }, n: { N: '7' } }
    await expect(client.send(new PutItemCommand({ TableName, Item, ...failing }))).rejects.toMatchObject({
      name: 'ConditionalCheckFailedException',
      message: 'The conditional request failed',
      Item,
    })
    const TransactItems = [{ Put: { TableName, Item: { p: { S: 'b' } } } }, { Put: { TableName, Item, ...failing } }]
    await expect(client.send(new TransactWriteItemsCommand({ TransactItems }))).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      message: expect.stringContaining('[None, ConditionalCheckFailed]'),
      CancellationReasons: [{ Code: 'None' }, { Code: 'ConditionalCheckFailed', Item }],
    })
  })

  it('refuses loudly what it does not have: operations, fields, wrong types, broken JSON', async () => {
    const { service, client } = await start()
    await expect(client.send(new ExecuteStatementCommand({ Statement: 'SELECT' }))).rejects.toMatchObject({
      name: 'UnknownOperationException',
      message: expect.stringContaining("'ExecuteStatement'"),
    })
    await createTable(client)
    const byIndex = {
      TableName,
      IndexName: 'i',
      KeyConditionExpression: 'p = :p',
      ExpressionAttributeValues: { ':p': { S: 'a' } },
    }
    await expect(client.send(new QueryCommand(byIndex))).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining("does not know the field 'IndexName' here"),
    })
    const raw = async (operation: string, body: unknown) => {
      const { status, json } = await post(service.url, `DynamoDB_20120810.${operation}`, body)
      expect(status).toBe(400)
      return String(json.__type).split('#')[1]
    }
    expect(await raw('GetItem', '{"TableName":')).toBe('SerializationException')
    expect(await raw('GetItem', [])).toBe('SerializationException')
    expect(await raw('GetItem', { TableName, Key: { p: { B: 'no base64!' } } })).toBe('SerializationException')
    expect(await raw('GetItem', { TableName, Key: { p: { S: 7 } } })).toBe('SerializationException')
    expect(await raw('GetItem', { TableName, Key: { p: { X: 'a' } } })).toBe('ValidationException')
    expect(await raw('GetItem', { TableName })).toBe('ValidationException')
    expect(await raw('PutItem', { TableName, Item: {}, Expected: {} })).toBe('ValidationException')
    expect(await raw('Scan', { TableName, Limit: 1.5 })).toBe('SerializationException')
    expect(await raw('GetRecords', { ShardIterator: 'x' })).toBe('UnknownOperationException')
    expect(await raw('PutItem', 'x'.repeat(33 * 1_048_576))).toBe('SerializationException')
    expect((await post(service.url, 'GetItem', {})).json.__type).toContain('UnknownOperationException')
  })

  it('gives the changes of a table as a stream', async () => {
    const { service, client } = await start()
    await createTable(client)
    await client.send(new PutItemCommand({ TableName, Item: { p: { S: 'a' }, b: { B: Buffer.from('b') } } }))
    expect(await changes(service.url)).toMatchObject([
      {
        eventName: 'INSERT',
        dynamodb: {
          Keys: { p: { S: 'a' } },
          NewImage: { p: { S: 'a' }, b: { B: Buffer.from('b').toString('base64') } },
        },
      },
    ])
  })

  it('sweeps what has expired from time to time', async () => {
    let nowMs = 1_700_000_000_000
    const { service, client } = await start({ clock: { nowMs: () => nowMs }, sweepEveryMs: 1 })
    await createTable(client)
    const TimeToLiveSpecification = { AttributeName: 'n', Enabled: true }
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }))
    await put(client, 'a', nowMs / 1_000 + 1)
    await put(client, 'b', nowMs / 1_000 + 100)
    nowMs += 2_000
    while ((await keys(client)).length > 1);
    expect(await keys(client)).toEqual(['b'])
    expect((await changes(service.url)).at(-1)).toMatchObject({
      userIdentity: { Type: 'Service', PrincipalId: 'dynamodb.amazonaws.com' },
    })
  })

  it('says in one line which port is taken and what to do', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => new Promise<void>((resolve) => other.close(() => resolve())) })
    const { port } = other.address() as AddressInfo
    const starting = startDynamoService({ port })
    await expect(starting).rejects.toBeInstanceOf(ConfigurationError)
    await expect(starting).rejects.toThrow(
      `The embedded DynamoDB cannot listen on port ${port} of 127.0.0.1: another program listens there. Stop that program, or give another port (0 takes any free one).`,
    )
  })
})

describe('the embedded DynamoDB with a directory', () => {
  it('goes on after a restart with the same tables, items, streams and tokens', async () => {
    const first = await start({ directory })
    await createTable(first.client)
    await put(first.client, 'a', 1)
    const transaction = new TransactWriteItemsCommand({
      TransactItems: [
        {
          Update: {
            TableName,
            Key: { p: { S: 'a' } },
            UpdateExpression: 'ADD n :one',
            ExpressionAttributeValues: { ':one': { N: '1' } },
          },
        },
      ],
      ClientRequestToken: 'token',
    })
    await first.client.send(transaction)
    const { Table } = await first.client.send(new DescribeTableCommand({ TableName }))
    const before = await changes(first.service.url)
    await first.service.close()

    const second = await start({ directory })
    expect((await second.client.send(new DescribeTableCommand({ TableName }))).Table).toEqual(Table)
    await second.client.send(transaction)
    const { Item } = await second.client.send(new GetItemCommand({ TableName, Key: { p: { S: 'a' } } }))
    expect(Item?.n).toEqual({ N: '2' })
    expect(await changes(second.service.url)).toEqual(before)
    await put(second.client, 'b')
    expect(await changes(second.service.url)).toHaveLength(3)
  })

  it('counts every acknowledged update when many clients update at once', async () => {
    const { service, client } = await start({ directory })
    await createTable(client)
    await put(client, 'a')
    const add = new UpdateItemCommand({
      TableName,
      Key: { p: { S: 'a' } },
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': { N: '1' } },
    })
    await Promise.all(Array.from({ length: 100 }, () => client.send(add)))
    await service.close()
    const again = await start({ directory })
    const { Item } = await again.client.send(new GetItemCommand({ TableName, Key: { p: { S: 'a' } } }))
    expect(Item?.n).toEqual({ N: '100' })
  })

  it('fails requests while the disk is full, shows nothing unsaved, and goes on when it is not', async () => {
    let full = false
    const writeAt: DynamoServiceOptions['writeAt'] = async (file, bytes, position) => {
      if (full) {
        await file.write(bytes, 0, Math.floor(bytes.length / 2), position)
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      }
      await file.write(bytes, 0, bytes.length, position)
    }
    const { service, client } = await start({ directory, writeAt })
    await createTable(client)
    await put(client, 'saved')
    full = true
    await expect(put(client, 'unsaved')).rejects.toMatchObject({ name: 'InternalServerError' })
    await expect(put(client, 'refused')).rejects.toMatchObject({ message: expect.stringContaining('ENOSPC') })
    await expect(keys(client)).rejects.toMatchObject({ name: 'InternalServerError' })
    const journal = await readFile(join(directory, 'dynamodb.journal'))

    full = false
    await put(client, 'later')
    expect(await keys(client)).toEqual(['later', 'saved', 'unsaved'])
    await service.close()
    expect(await keys((await start({ directory })).client)).toEqual(['later', 'saved', 'unsaved'])

    const crashed = join(directory, 'crashed')
    await mkdir(crashed)
    await writeFile(join(crashed, 'dynamodb.journal'), journal)
    expect(await keys((await start({ directory: crashed })).client)).toEqual(['saved'])
  })

  it('does not share a directory with another running service, nor start on a damaged journal', async () => {
    const { service } = await start({ directory })
    await expect(startDynamoService({ directory })).rejects.toThrow(/dynamodb\.lock are in use by process \d+: stop it/)
    await service.close()
    await writeFile(join(directory, 'dynamodb.journal'), 'nonsense\n')
    await expect(startDynamoService({ directory })).rejects.toThrow(/damaged at .*dynamodb\.journal:1/)
  })

  it('answers what is in flight and then refuses connections when it closes', async () => {
    const { service, client } = await start({ directory })
    await createTable(client)
    const puts = Array.from({ length: 20 }, (_, i) =>
      put(client, String(i)).then(
        () => true,
        () => false,
      ),
    )
    await puts[0]
    await service.close()
    const acknowledged = (await Promise.all(puts)).filter(Boolean).length
    await expect(put(client, 'late')).rejects.toThrow('ECONNREFUSED')
    expect((await keys((await start({ directory })).client)).length).toBeGreaterThanOrEqual(acknowledged)
    expect(acknowledged).toBeGreaterThan(0)
  })
})
