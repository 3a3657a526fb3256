/**
 * One script of calls through the SDK that any endpoint that claims to be DynamoDB can be put to, so that two of them can be
 * compared call by call. What endpoints choose freely (times, ids, the order of a set and of a batch) is left out or put in order;
 * exceptions are recorded by name, with the items and reasons that they carry.
 */
import {
  type AttributeValue,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  CreateTableCommand,
  type CreateTableCommandInput,
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ListTablesCommand,
  PutItemCommand,
  ScanCommand,
  type ScanCommandInput,
  TransactGetItemsCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { noteConditions, noteRefusedUpdates, noteUpdates } from './dynamodb-expression-calls.ts'
import { noteStream } from './dynamodb-stream-calls.ts'
import { type Item, type Note, TableCalls } from './dynamodb-table-calls.ts'

/** A call, and what came of it. */
export interface CallOutcome {
  readonly call: string
  readonly outcome: unknown
}

/** Runs the script at `url`, where the client points too, on tables whose names begin with the given one, which must not exist, and deletes them. */
export async function runDynamoCalls(client: DynamoDBClient, url: string, name: string): Promise<CallOutcome[]> {
  const outcomes: CallOutcome[] = []
  const note: Note = async (call, run) => {
    const outcome = await run().then(comparable, exceptionOf)
    outcomes.push({ call, outcome })
  }
  const calls = new TableCalls(client, name, note)
  await noteTables(client, name, note)
  await notePuts(calls)
  await noteConditions(calls)
  await noteUpdates(calls)
  await noteRefusedUpdates(calls)
  await noteNumbers(calls)
  await noteReads(calls)
  await noteQueries(calls)
  await noteBatches(client, name, note)
  await noteTransactions(calls)
  await noteStream(client, url, name, note)
  await note('delete the table', async () => {
    const { TableDescription } = await client.send(new DeleteTableCommand({ TableName: name }))
    return TableDescription?.TableName === name
  })
  return outcomes
}

function exceptionOf(error: unknown): unknown {
  const { name, Item, CancellationReasons } = error as {
    name: string
    Item?: Item
    CancellationReasons?: { Code?: string; Item?: Item }[]
  }
  return comparable({
    exception: name,
    ...(Item === undefined ? {} : { item: Item }),
    ...(CancellationReasons === undefined
      ? {}
      : { reasons: CancellationReasons.map(({ Code, Item }) => (Item === undefined ? Code : { Code, Item })) }),
  })
}

/** Sets in order, bytes as text, objects by name. */
function comparable(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => {
        const plain = comparable(member)
        const isSet = /^[SNB]S$/.test(name) && Array.isArray(plain)
        return [name, isSet ? plain.map(String).sort() : plain]
      }),
  )
}

async function noteTables(client: DynamoDBClient, TableName: string, note: Note): Promise<void> {
  const definition: CreateTableCommandInput = {
    TableName,
    AttributeDefinitions: [
      { AttributeName: 'p', AttributeType: 'S' },
      { AttributeName: 's', AttributeType: 'N' },
    ],
    KeySchema: [
      { AttributeName: 'p', KeyType: 'HASH' },
      { AttributeName: 's', KeyType: 'RANGE' },
    ],
    BillingMode: 'PAY_PER_REQUEST',
  }
  await note('describe a table that is not there', () => client.send(new DescribeTableCommand({ TableName })))
  await note('create', async () => {
    const { TableDescription } = await client.send(new CreateTableCommand(definition))
    return TableDescription?.KeySchema
  })
  await note('create it again', () => client.send(new CreateTableCommand(definition)))
  await note('describe', async () => {
    const { Table } = await client.send(new DescribeTableCommand({ TableName }))
    return [Table?.TableStatus, Table?.KeySchema, Table?.ItemCount, Table?.BillingModeSummary?.BillingMode]
  })
  await note('list', async () => (await client.send(new ListTablesCommand({}))).TableNames?.includes(TableName))
  const ttl = (AttributeName: string, Enabled: boolean) =>
    client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification: { AttributeName, Enabled } }))
  await note('TTL before it is set', async () => {
    const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }))
    return TimeToLiveDescription?.TimeToLiveStatus
  })
  await note('set TTL', async () => (await ttl('expiresAt', true)).TimeToLiveSpecification)
  await note('set TTL again', async () => (await ttl('expiresAt', true)).TimeToLiveSpecification)
  await note('TTL', async () => {
    const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }))
    return TimeToLiveDescription
  })
  const keys = (KeySchema: CreateTableCommandInput['KeySchema']) =>
    client.send(new CreateTableCommand({ ...definition, TableName: `${TableName}-2`, KeySchema }))
  await note('create without a partition key', () => keys([{ AttributeName: 'p', KeyType: 'RANGE' }]))
  await note('create with a key that is not defined', () => keys([{ AttributeName: 'q', KeyType: 'HASH' }]))
  await note('create with more definitions than keys', () => keys([{ AttributeName: 'p', KeyType: 'HASH' }]))
}

async function notePuts(calls: TableCalls): Promise<void> {
  const full: Item = {
    ...calls.key('all'),
    text: { S: 'é🗝️' },
    empty: { S: '' },
    bytes: { B: Uint8Array.from([0, 255]) },
    yes: { BOOL: true },
    nothing: { NULL: true },
    texts: { SS: ['b', 'a'] },
    numbers: { NS: ['2', '1.0'] },
    binaries: { BS: [Uint8Array.from([2]), Uint8Array.from([1])] },
    list: { L: [{ N: '1' }, { M: { constructor: { S: 'x' }, toString: { L: [] } } }] },
  }
  await calls.put('put values of every type', full)
  await calls.get('get them', calls.key('all'))
  await calls.put('put again and return the old', { ...calls.key('all'), n: { N: '1' } }, { ReturnValues: 'ALL_OLD' })
  await calls.put('put and ask for what PutItem does not return', calls.key('all'), { ReturnValues: 'ALL_NEW' })
  await calls.put('put without the sort key', { p: { S: 'x' } })
  await calls.put('put a key of another type', { p: { S: 'x' }, s: { S: '1' } })
  await calls.put('put an empty key', calls.key(''))
  await calls.put('put a key of 2,048 bytes', calls.key('k'.repeat(2_048)))
  await calls.put('put a key of 2,049 bytes', calls.key('k'.repeat(2_049)))
  await calls.put('put an empty set', { ...calls.key('x'), a: { SS: [] } })
  await calls.put('put a set with an element twice', { ...calls.key('x'), a: { NS: ['1', '1.0'] } })
  await calls.put('put a null that is none', { ...calls.key('x'), a: { NULL: false } as unknown as AttributeValue })
  const overhead = 'p'.length + 'size'.length + 's'.length + 2 + 'a'.length
  await calls.put('put exactly 400 KB', { ...calls.key('size'), a: { S: 'x'.repeat(409_600 - overhead) } })
  await calls.put('put a byte more', { ...calls.key('size'), a: { S: 'x'.repeat(409_601 - overhead) } })
  await calls.delete('delete and return the old', calls.key('all'), { ReturnValues: 'ALL_OLD' })
  await calls.delete('delete what is not there', calls.key('all'), { ReturnValues: 'ALL_OLD' })
  await calls.delete('delete with half a key', { p: { S: 'all' } })
  await calls.get('get with an attribute that is no key', { ...calls.key('all'), n: { N: '1' } })
}

async function noteNumbers(calls: TableCalls): Promise<void> {
  const digits38 = '12345678901234567890123456789012345678'
  const texts = [
    '0',
    '-0.0',
    '007',
    '1.50',
    '.5',
    '1e3',
    '-1E-3',
    digits38,
    `0.${digits38}`,
    `${digits38}9`,
    `${digits38}000`,
    '1e125',
    '9.9e125',
    '1e126',
    '1e-130',
    '1e-131',
    'abc',
    '',
    ' 1',
    'Infinity',
    '0x10',
  ]
  for (const [i, N] of texts.entries()) {
    await calls.put(`put the number '${N}'`, { ...calls.key('n', String(i)), v: { N } })
    await calls.get(`get the number '${N}'`, calls.key('n', String(i)))
  }
  const sums = [
    ['99999999999999999999999999999999999999', '1'],
    [digits38, '-1'],
    [digits38, '0.1'],
    ['9.9e125', '9e125'],
    ['0.1', '0.2'],
    ['1e20', '-1e20'],
  ]
  for (const [a = '', b = ''] of sums) {
    await calls.put(`put ${a}`, { ...calls.key('sum'), v: { N: a } })
    const ExpressionAttributeValues = { ':b': { N: b } }
    await calls.update(`SET ${a} + ${b}`, calls.key('sum'), 'SET r = v + :b', { ExpressionAttributeValues })
    await calls.update(`ADD ${b} to ${a}`, calls.key('sum'), 'ADD v :b', { ExpressionAttributeValues })
  }
}

async function noteReads(calls: TableCalls): Promise<void> {
  await calls.put('put to be read', {
    ...calls.key('r'),
    a: { M: { b: { L: [{ N: '0' }, { N: '1' }, { N: '2' }] }, c: { S: 'c' } } },
    d: { S: 'x'.repeat(5_000) },
  })
  const ReturnConsumedCapacity = 'TOTAL' as const
  await calls.get('get what is not there', calls.key('none'))
  await calls.get('get a projection', calls.key('r'), { ProjectionExpression: 'a.b[2], a.b[0], p, nil.x' })
  await calls.get('get a projection by reference', calls.key('r'), {
    ProjectionExpression: '#a.c',
    ExpressionAttributeNames: { '#a': 'a' },
  })
  await calls.get('get paths that overlap', calls.key('r'), { ProjectionExpression: 'a, a.b' })
  await calls.get('get a reserved word', calls.key('r'), { ProjectionExpression: 'status' })
  await calls.get('get 5 KB, consistent', calls.key('r'), { ProjectionExpression: 'p', ReturnConsumedCapacity })
  await calls.get('get 5 KB, eventually', calls.key('r'), {
    ProjectionExpression: 'p',
    ConsistentRead: false,
    ReturnConsumedCapacity,
  })
  await calls.note('units of writes', async () => {
    const units: unknown[] = []
    const { client, TableName } = calls
    const send = async (d: string) => {
      const Item = { ...calls.key('w'), d: { S: d } }
      const input = { TableName, Item, ReturnConsumedCapacity }
      units.push((await client.send(new PutItemCommand(input))).ConsumedCapacity?.CapacityUnits)
    }
    for (const length of [10, 1_015, 1_100, 3_000, 10]) await send('x'.repeat(length))
    return units
  })
}

async function noteQueries(calls: TableCalls): Promise<void> {
  const { client, TableName } = calls
  for (const s of ['-10', '-1.5', '0', '2', '10', '33', '1e2']) {
    await client.send(
      new PutItemCommand({ TableName, Item: { ...calls.key('q', s), half: { N: String(Number(s) / 2) } } }),
    )
  }
  const q: Item = { ':p': { S: 'q' }, ':a': { N: '0' }, ':b': { N: '33' } }
  const only = (...names: string[]): Item =>
    Object.fromEntries(Object.entries(q).filter(([name]) => names.includes(name)))
  await calls.query('query a partition', 'p = :p', only(':p'))
  await calls.query('query backwards', 'p = :p', only(':p'), { ScanIndexForward: false })
  for (const operator of ['=', '<', '<=', '>', '>=']) {
    await calls.query(`query ${operator}`, `p = :p AND s ${operator} :a`, only(':p', ':a'))
  }
  await calls.query('query between', 'p = :p AND s BETWEEN :a AND :b', q)
  await calls.query('query between, backwards', '(p = :p) AND (s BETWEEN :a AND :b)', q, { ScanIndexForward: false })
  await calls.query('query with the sort key first', 's > :a AND p = :p', only(':p', ':a'))
  await calls.query('query a partition that is not there', 'p = :p', { ':p': { S: 'none' } })
  await calls.query('query with a filter', 'p = :p', only(':p', ':a'), { FilterExpression: 'half > :a' })
  await calls.query('query a page', 'p = :p', only(':p'), { Limit: 3 })
  await calls.query('query the next page', 'p = :p', only(':p'), { Limit: 3, ExclusiveStartKey: calls.key('q', '0') })
  await calls.query('query backwards from a key that is gone', 'p = :p', only(':p'), {
    ScanIndexForward: false,
    ExclusiveStartKey: calls.key('q', '1'),
  })
  await calls.query('query all with a limit that is the number', 'p = :p', only(':p'), { Limit: 7 })
  await calls.query('query with a filter counts what it looked at', 'p = :p', only(':p', ':a'), {
    FilterExpression: 'half > :a',
    Limit: 4,
  })
  await calls.query('count', 'p = :p', only(':p'), { Select: 'COUNT' })
  await calls.query('query without the partition key', 's = :a', only(':a'))
  await calls.query('query with OR', 'p = :p OR s = :a', only(':p', ':a'))
  await calls.query('query with <>', 'p = :p AND s <> :a', only(':p', ':a'))
  await calls.query('query with a range of partitions', 'p > :p', only(':p'))
  await calls.query('query with a value of another type', 'p = :a', only(':a'))
  await calls.query('query with a filter on the key', 'p = :p', only(':p', ':a'), { FilterExpression: 's > :a' })
  await calls.query('query with begins_with on a number', 'p = :p AND begins_with(s, :a)', only(':p', ':a'))
  await calls.query('query from a key of another partition', 'p = :p', only(':p'), {
    ExclusiveStartKey: calls.key('other', '0'),
  })
  await calls.query('query with a limit of none', 'p = :p', only(':p'), { Limit: 0 })
  const scanAll = async (more: Partial<ScanCommandInput>) => {
    const found: string[] = []
    let ExclusiveStartKey: Item | undefined
    do {
      const page = await client.send(new ScanCommand({ TableName, ExclusiveStartKey, ...more }))
      found.push(...(page.Items ?? []).map(({ p, s }) => `${p?.S?.slice(0, 10)} ${s?.N}`))
      ExclusiveStartKey = page.LastEvaluatedKey
    } while (ExclusiveStartKey !== undefined)
    return found
  }
  await calls.note('scan', async () => (await scanAll({})).sort())
  await calls.note('scan in pages of two', async () => (await scanAll({ Limit: 2 })).sort())
  await calls.note('scan with a filter', async () => {
    const values = { FilterExpression: 'p = :p', ExpressionAttributeValues: { ':p': { S: 'q' } } }
    return (await scanAll({ Limit: 5, ...values })).sort()
  })
  await calls.note('scan in segments', async () => {
    const parts = await Promise.all([0, 1, 2].map((Segment) => scanAll({ Segment, TotalSegments: 3 })))
    return parts.flat().sort()
  })
  await calls.note('scan a segment that is not there', () => scanAll({ Segment: 3, TotalSegments: 3 }))
}

async function noteBatches(client: DynamoDBClient, TableName: string, note: Note): Promise<void> {
  const key = (s: number): Item => ({ p: { S: 'batch' }, s: { N: String(s) } })
  const write = (requests: { put?: number; delete?: number }[]) =>
    client.send(
      new BatchWriteItemCommand({
        RequestItems: {
          [TableName]: requests.map(({ put, delete: gone }) =>
            gone === undefined
              ? { PutRequest: { Item: { ...key(put ?? 0), n: { N: String(put) } } } }
              : { DeleteRequest: { Key: key(gone) } },
          ),
        },
      }),
    )
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)
  const get = async (keys: Item[], more: object = {}) => {
    const answer = await client.send(
      new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys: keys, ...more } } }),
    )
    const found = answer.Responses?.[TableName] ?? []
    return { found: found.sort((a, b) => Number(a.s?.N) - Number(b.s?.N)), left: answer.UnprocessedKeys }
  }
  await note('write a batch', async () => (await write(numbers(25).map((put) => ({ put })))).UnprocessedItems)
  await note(
    'write and delete',
    async () => (await write([{ put: 30 }, { delete: 1 }, { delete: 99 }])).UnprocessedItems,
  )
  await note('write 26', () => write(numbers(26).map((put) => ({ put }))))
  await note('write one item twice', () => write([{ put: 1 }, { delete: 1 }]))
  await note('write nothing', () => write([]))
  await note('get a batch', () => get([0, 1, 2, 30].map(key)))
  await note('get a batch of parts', () =>
    get([0, 2].map(key), { ProjectionExpression: '#n', ExpressionAttributeNames: { '#n': 's' } }),
  )
  await note('get 100', async () => (await get(numbers(100).map(key))).found.length)
  await note('get 101', () => get(numbers(101).map(key)))
  await note('get one item twice', () => get([1, 1].map(key)))
  await note('get from a table that is not there', () =>
    client.send(new BatchGetItemCommand({ RequestItems: { [`${TableName}-none`]: { Keys: [key(1)] } } })),
  )
}

async function noteTransactions(calls: TableCalls): Promise<void> {
  const { TableName } = calls
  // A token is remembered for ten minutes, by whoever answers.
  const token = TableName.slice(-36)
  const item = (p: string, n: number): Item => ({ ...calls.key(p), n: { N: String(n) } })
  const put = (p: string, n: number) => ({ Put: { TableName, Item: item(p, n) } })
  const check = (p: string, n: number) => ({
    ConditionCheck: {
      TableName,
      Key: calls.key(p),
      ConditionExpression: 'n = :n',
      ExpressionAttributeValues: { ':n': { N: String(n) } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    },
  })
  const increment = (p: string) => ({
    Update: {
      TableName,
      Key: calls.key(p),
      UpdateExpression: 'SET n = n + :one',
      ExpressionAttributeValues: { ':one': { N: '1' } },
    },
  })
  const remove = (p: string) => ({ Delete: { TableName, Key: calls.key(p) } })
  await calls.transact('put three', [put('t1', 1), put('t2', 2), put('t3', 3)])
  await calls.transact('check, update, delete', [check('t1', 1), increment('t2'), remove('t3')])
  for (const p of ['t1', 't2', 't3']) await calls.get(`get ${p} after it`, calls.key(p))
  await calls.transact('a check that fails cancels all', [
    increment('t2'),
    check('t1', 9),
    put('t4', 4),
    check('none', 1),
  ])
  await calls.get('nothing was written', calls.key('t4'))
  await calls.transact('an update that does not fit', [put('t5', 5), increment('none')])
  await calls.transact('two actions on one item', [put('t1', 1), increment('t1')])
  await calls.transact(
    '101 actions',
    Array.from({ length: 101 }, (_, i) => put(`many${i}`, i)),
  )
  await calls.transact('an action that is two', [{ ...put('t6', 1), ...remove('t7') }])
  await calls.transact('no actions', [])
  await calls.transact('with a token', [increment('t2')], token)
  await calls.transact('with the same token', [increment('t2')], token)
  await calls.get('it was applied once', calls.key('t2'))
  await calls.transact('with the same token for something else', [increment('t1')], token)
  const big = (p: string) => ({ Put: { TableName, Item: { ...calls.key(p), d: { S: 'x'.repeat(400_000) } } } })
  await calls.transact(
    'more than 4 MB',
    Array.from({ length: 11 }, (_, i) => big(`big${i}`)),
  )
  const getAll = (keys: string[]) => async () => {
    const TransactItems = keys.map((p) => ({ Get: { TableName, Key: calls.key(p), ProjectionExpression: 'n' } }))
    return (await calls.client.send(new TransactGetItemsCommand({ TransactItems }))).Responses
  }
  await calls.note('get in a transaction', getAll(['t1', 'none', 't2']))
  await calls.note('get one item twice in a transaction', getAll(['t1', 't1']))
}
