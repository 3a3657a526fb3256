/** S12: the state of a stage is a table that others read, without a copy of their own. */
import fc from 'fast-check'
import { TableWorld } from '../../bin/demos/tables/table-world.ts'
import { accountState, type Booking, bookings, tableFirstApp } from '../../functions/table-first/topology.ts'
import { readState, stateView } from '../../lib/aws/state-table/reader.ts'
import { tableNameOf } from '../../lib/plan/plan.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const startMs = Date.UTC(2026, 2, 1)
const tableName = tableNameOf('table-first', 'by-account')
const view = stateView(tableFirstApp, 'by-account', { account: accountState })
const booking = (account: string, cents: number, category = 'food'): Booking => ({
  ...{ account, cents, category },
  atMs: startMs,
})

/** Follows the stream of the table from its beginning. */
function changesOf({ model }: TableWorld) {
  const { LatestStreamArn: StreamArn = '' } = model.call('DescribeTable', { TableName: tableName }).Table
  const ShardId = model.call('DescribeStream', { StreamArn }).StreamDescription.Shards?.[0]?.ShardId ?? ''
  const start = model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
  const { Records } = model.call('GetRecords', { ShardIterator: start.ShardIterator })
  return Records.flatMap((record) => view.change(record) ?? [])
}

const standing = ({ model }: TableWorld) => ({
  items: model.call('DescribeTable', { TableName: tableName }).Table.ItemCount,
  bytes: model.call('DescribeTable', { TableName: tableName }).Table.TableSizeBytes,
  written: model.consumedUnits(tableName).write,
  tables: model.call('ListTables', {}).TableNames,
})

test('an application without a sink keeps its result in its table', async () => {
  const driver = new TestDriver(tableFirstApp)
  await driver.send(bookings, [booking('a-1', 500), booking('a-1', -200, 'rent'), booking('a-2', 1)])
  expect(await driver.stateOf('by-account', 'a-1')).toMatchObject({
    'account.balanceCents': 300,
    'account.byCategory': { food: 500, rent: -200 },
  })
})

test('S12: lookups and the changelog show the same, and cost no item and no write unit', async () => {
  const some = fc.record({
    account: fc.constantFrom('a-1', 'a-2', 'a-3'),
    cents: fc.integer({ min: -9, max: 9 }),
    category: fc.constantFrom('food', 'rent'),
  })
  const batches = fc.array(fc.array(some, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(batches, async (list) => {
      const world = new TableWorld(tableFirstApp, { nowMs: startMs, withStreams: true })
      for (const batch of list) {
        await world.send(
          bookings,
          batch.map(({ account, cents, category }) => booking(account, cents, category)),
        )
      }
      const alone = standing(world)
      const reader = readState({ client: world.client, tableName, view, clock: world.clock })
      const balances = new Map<string, number>()
      const categories = new Map<string, number>()
      for (const change of changesOf(world)) {
        if (change.kind === 'key') balances.set(String(change.key), change.after?.account.balanceCents ?? 0)
        else categories.set(`${change.key} ${change.entry}`, change.after ?? 0)
      }
      for (const account of new Set(list.flat().map((one) => one.account))) {
        const own = list.flat().filter((one) => one.account === account)
        const sum = own.reduce((total, { cents }) => total + cents, 0)
        const found = (await reader.get(account))?.states.account
        expect([found?.balanceCents, balances.get(account)]).toEqual([sum, sum])
        expect(found?.lines.map(({ cents }) => cents)).toEqual(own.slice(-3).map(({ cents }) => cents))
        for (const [category, cents] of found?.byCategory ?? []) {
          expect(categories.get(`${account} ${category}`)).toBe(cents)
        }
      }
      expect(standing(world)).toEqual(alone)
    }),
    { numRuns: 30 },
  )
})
