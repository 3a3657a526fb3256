import { DeleteItemCommand, DeleteTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { DevTables, type TableView, tablesIn } from '../../../bin/cli/dev-tables.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ensureTable } from '../../../lib/local/run/tables.ts'
import { type EmbeddedTables, startTables } from '../embedded-tables.ts'

const keys = { partitionKey: 'id' }
let embedded: EmbeddedTables
let client: EmbeddedTables['client']
let nowMs: number
let changes: TableView[]
let tables: DevTables

beforeEach(async () => {
  embedded = await startTables()
  client = embedded.client
  await ensureTable(client, systemClock, 'totals', keys)
  nowMs = 1_000
  changes = []
  const clock = { nowMs: () => nowMs, sleep: async () => undefined }
  tables = new DevTables({ totals: keys }, { client, clock, onChange: (_sink, view) => changes.push(view) })
})
afterEach(() => embedded.close())

const put = (id: string, text = 'x', more: PutItemCommand['input']['Item'] = {}) =>
  client.send(new PutItemCommand({ TableName: 'totals', Item: { id: { S: id }, text: { S: text }, ...more } }))

test('the first look is silent, then each change is heard of: new rows, other values, fewer rows', async () => {
  await put('a')
  await tables.look('now')
  expect(changes).toEqual([])
  expect(tables.views.get('totals')).toEqual({ rows: 1, isAll: true, some: ['{"id":"a","text":"x"}'] })
  await put('b', 'y')
  await tables.look('now')
  await tables.look('now')
  await put('a', 'z')
  await tables.look('now')
  await client.send(new DeleteItemCommand({ TableName: 'totals', Key: { id: { S: 'b' } } }))
  await tables.look('now')
  expect(changes).toEqual([
    { rows: 2, isAll: true, some: ['{"id":"b","text":"y"}'] },
    { rows: 2, isAll: true, some: ['{"id":"a","text":"z"}'] },
    { rows: 1, isAll: true, some: [] },
  ])
})

test('it looks once a second', async () => {
  await tables.look()
  await put('a')
  nowMs += 999
  await tables.look()
  expect(changes).toEqual([])
  nowMs += 1
  await tables.look()
  expect(changes).toHaveLength(1)
})

test('at most three rows are shown, as JSON, without the positions that Millrace keeps; what JSON cannot hold is text', async () => {
  await tables.look('now')
  await put('a', 'x', {
    'millrace#visits/shard': { S: '1' },
    big: { N: '12345678901234567890' },
    small: { N: '1.5' },
    list: { L: [{ BOOL: false }, { NULL: true }] },
    map: { M: { bytes: { B: Buffer.from('hi') } } },
  })
  await tables.look('now')
  const { text, ...row } = JSON.parse(changes[0]?.some[0] ?? '{}')
  expect(row).toEqual({
    id: 'a',
    big: '12345678901234567890',
    small: 1.5,
    list: [false, null],
    map: { bytes: 'aGk=' },
  })
  for (const id of ['b', 'c', 'd', 'e']) await put(id)
  await tables.look('now')
  expect(changes.at(-1)).toMatchObject({ rows: 5 })
  expect(changes.at(-1)?.some).toHaveLength(3)
})

test('of a large table only a part is looked at, and it says so', async () => {
  for (let row = 0; row < 31; row += 1) await put(String(row), 'x'.repeat(390_000))
  await tables.look('now')
  const view = tables.views.get('totals')
  expect(view?.isAll).toBe(false)
  expect(view?.rows).toBeLessThan(31)
})

test('a table that cannot be read is said, and no longer once it can', async () => {
  await client.send(new DeleteTableCommand({ TableName: 'totals' }))
  await tables.look('now')
  expect(tables.problem).toMatch(/^table totals cannot be read: ResourceNotFoundException: [^\n]+$/)
  await ensureTable(client, systemClock, 'totals', keys)
  await tables.look('now')
  expect(tables.problem).toBeUndefined()
})

test('--table says keys and their types', () => {
  expect(tablesIn(['totals=id', 'rates=hotel:S,day:N'], ['totals', 'rates'])).toEqual({
    totals: { partitionKey: 'id' },
    rates: { partitionKey: 'hotel', partitionKeyType: 'S', sortKey: 'day', sortKeyType: 'N' },
  })
  for (const typed of ['totals', 'totals=', '=id', 'totals=id,', 'totals=id,day,hour']) {
    expect(() => tablesIn([typed], ['totals'])).toThrow(`--table ${typed} is not SINK=PARTITIONKEY[,SORTKEY].`)
  }
})
