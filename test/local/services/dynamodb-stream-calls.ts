/**
 * The stream of a table, read as a consumer reads it. DynamoDB Streams has an SDK client of its own, which is not installed: its four
 * operations are sent as it would send them.
 */
import {
  CreateTableCommand,
  DeleteItemCommand,
  DeleteTableCommand,
  type DynamoDBClient,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { Note } from './dynamodb-table-calls.ts'

/** The fields that the script uses of the answers of the stream operations. */
interface StreamAnswer {
  readonly __type?: string
  readonly Streams?: readonly { readonly StreamArn?: string; readonly TableName?: string }[]
  readonly StreamDescription?: {
    readonly StreamStatus?: string
    readonly StreamViewType?: string
    readonly TableName?: string
    readonly KeySchema?: unknown
    readonly Shards?: readonly { readonly ShardId?: string; readonly ParentShardId?: string }[]
  }
  readonly ShardIterator?: string
  readonly NextShardIterator?: string
  readonly Records?: readonly StreamRecord[]
}

interface StreamRecord {
  readonly eventName?: string
  readonly eventSource?: string
  readonly eventVersion?: string
  readonly dynamodb?: {
    readonly Keys?: unknown
    readonly OldImage?: unknown
    readonly NewImage?: unknown
    readonly StreamViewType?: string
    readonly SequenceNumber?: string
  }
}

/** An answer that is an exception rejects with its name, as the SDK does. */
async function ask(url: string, operation: string, body: unknown): Promise<StreamAnswer> {
  const authorization = `AWS4-HMAC-SHA256 Credential=test/20261129/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0`
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'x-amz-target': `DynamoDBStreams_20120810.${operation}`, 'content-type': 'application/x-amz-json-1.0' },
      authorization,
    },
    body: JSON.stringify(body),
  })
  const json = (await answer.json()) as StreamAnswer
  if (answer.ok) return json
  throw Object.assign(new Error(operation), { name: String(json.__type).replace(/^.*#/, '') })
}

/** What endpoints choose freely is left out: times, ids, sequence numbers, sizes. */
const shownRecord = ({ eventName, eventSource, dynamodb = {} }: StreamRecord) => {
  const { Keys, OldImage, NewImage, StreamViewType } = dynamodb
  return { eventName, eventSource, Keys, OldImage, NewImage, StreamViewType }
}

/** Sends, changes and deletes items of a table with a stream, and notes what the stream says of it. */
export async function noteStream(client: DynamoDBClient, url: string, table: string, note: Note): Promise<void> {
  const TableName = `${table}-streamed`
  await note('create a table with a stream', async () => {
    const { TableDescription } = await client.send(
      new CreateTableCommand({
        TableName,
        AttributeDefinitions: [{ AttributeName: 'p', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
        BillingMode: 'PAY_PER_REQUEST',
        StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
      }),
    )
    return [TableDescription?.StreamSpecification, TableDescription?.LatestStreamArn !== undefined]
  })
  const item = (n: string) => ({ p: { S: 'a' }, n: { N: n }, deep: { M: { list: { L: [{ BOOL: true }] } } } })
  await client.send(new PutItemCommand({ TableName, Item: item('1') }))
  await client.send(new PutItemCommand({ TableName, Item: item('2') }))
  // Neither changes anything, so neither is in the stream.
  await client.send(new PutItemCommand({ TableName, Item: item('2') }))
  await client.send(new DeleteItemCommand({ TableName, Key: { p: { S: 'none' } } }))
  await client.send(
    new UpdateItemCommand({
      ...{ TableName, Key: { p: { S: 'a' } }, UpdateExpression: 'SET n = n + :one REMOVE deep' },
      ExpressionAttributeValues: { ':one': { N: '1' } },
    }),
  )
  await client.send(new DeleteItemCommand({ TableName, Key: { p: { S: 'a' } } }))
  await noteReading(url, TableName, note)
  await client.send(new DeleteTableCommand({ TableName }))
}

async function noteReading(url: string, TableName: string, note: Note): Promise<void> {
  const { Streams: [{ StreamArn } = {}] = [] } = await ask(url, 'ListStreams', { TableName })
  await note('list the streams of the table', async () => {
    const { Streams } = await ask(url, 'ListStreams', { TableName })
    return Streams?.map((stream) => stream.TableName === TableName)
  })
  await note('list the streams of a table without one', async () => {
    return (await ask(url, 'ListStreams', { TableName: `${TableName}-none` })).Streams
  })
  const { StreamDescription: { Shards: [{ ShardId } = {}] = [] } = {} } = await ask(url, 'DescribeStream', {
    StreamArn,
  })
  await note('describe the stream', async () => {
    const { StreamDescription: stream = {} } = await ask(url, 'DescribeStream', { StreamArn })
    const { StreamStatus, StreamViewType, KeySchema, Shards } = stream
    return {
      StreamStatus,
      StreamViewType,
      KeySchema,
      shards: Shards?.map((shard) => shard.ParentShardId ?? 'no parent'),
    }
  })
  await note('describe a stream that is not there', () =>
    ask(url, 'DescribeStream', { StreamArn: `${StreamArn?.replace(TableName, `${TableName}-none`)}` }),
  )
  const iteratorAt = async (ShardIteratorType: string, SequenceNumber?: string) =>
    (await ask(url, 'GetShardIterator', { StreamArn, ShardId, ShardIteratorType, SequenceNumber })).ShardIterator
  const read = async (ShardIterator: string | undefined, Limit?: number) =>
    (await ask(url, 'GetRecords', { ShardIterator, Limit })).Records ?? []
  const all = await read(await iteratorAt('TRIM_HORIZON'))
  await note('read the stream', async () => all.map(shownRecord))
  await note('sequence numbers grow', async () => {
    const numbers = all.map(({ dynamodb }) => BigInt(dynamodb?.SequenceNumber ?? -1))
    return numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0n))
  })
  await note('read two, and the next page', async () => {
    const first = await ask(url, 'GetRecords', { ShardIterator: await iteratorAt('TRIM_HORIZON'), Limit: 2 })
    const rest = await read(first.NextShardIterator)
    return [first.Records ?? [], rest].map((records) => records.map(({ eventName }) => eventName))
  })
  const second = all[1]?.dynamodb?.SequenceNumber
  for (const type of ['AT_SEQUENCE_NUMBER', 'AFTER_SEQUENCE_NUMBER']) {
    await note(`read ${type} of the second`, async () => {
      return (await read(await iteratorAt(type, second))).map(({ eventName }) => eventName)
    })
  }
  await note('read from LATEST', async () => read(await iteratorAt('LATEST')))
  await note('an iterator of a shard that is not there', () =>
    ask(url, 'GetShardIterator', {
      ...{ StreamArn, ShardId: 'shardId-00000000000000000000-none0000', ShardIteratorType: 'TRIM_HORIZON' },
    }),
  )
  await note('an iterator of a type that there is not', () => iteratorAt('AT_TIMESTAMP'))
  await note('AT_SEQUENCE_NUMBER without one', () => iteratorAt('AT_SEQUENCE_NUMBER'))
  await note('read no records of the stream', () => iteratorAt('TRIM_HORIZON').then((iterator) => read(iterator, 0)))
  await note('read with an iterator that is none', () => read('none'))
}
