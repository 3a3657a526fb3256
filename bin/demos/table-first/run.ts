/** The demo of table-first state: one application keeps accounts, two others read them from the same table. */
import { isDeepStrictEqual } from 'node:util'
import { CreateTableCommand } from '@aws-sdk/client-dynamodb'
import type { Figure } from '../../../bench/figures.ts'
import { tableFirstApp } from '../../../functions/table-first/topology.ts'
import type { DynamoModel } from '../../../lib/emulator/dynamodb/index.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'
import { KeyedRun } from '../tables/keyed-run.ts'
import { accountsOf, bookingsOf } from './bookings.ts'
import { type Account, follow, lookUp, tableName } from './consumers.ts'

export interface TableFirstSettings {
  readonly bookings: number
  readonly accounts: number
  readonly seed: number
}

/** What the table holds, and what all operations on it have cost so far. */
interface Standing {
  readonly items: number
  readonly written: number
  readonly read: number
}

interface Outcome {
  readonly expected: ReadonlyMap<string, Account>
  readonly looked: ReadonlyMap<string, Account>
  readonly followed: ReadonlyMap<string, Account>
  readonly changes: number
  /** After the application alone, after the lookups, after the changelog. */
  readonly standings: readonly [Standing, Standing, Standing]
}

/** Runs the demo and resolves with its figures. */
export async function runTableFirst({
  bookings: count,
  accounts,
  seed,
}: TableFirstSettings): Promise<readonly Figure[]> {
  console.log(
    [
      `${grouped(count)} bookings of ${grouped(accounts)} accounts, drawn from the seed ${seed}. The application has no sink: its state, the table ${tableName}, is the result.`,
      'Then a second consumer looks up every account with the AWS SDK, and a third follows the stream of the table.',
      '',
    ].join('\n'),
  )
  const run = await KeyedRun.open({
    topology: tableFirstApp,
    entry: 'functions/table-first/handler.ts',
    directory: '.millrace/demo-table-first',
    shards: 2,
  })
  try {
    const outcome = await consume(run, count, accounts, seed)
    console.log(standingLines(outcome).join('\n'))
    return [...figuresOf(outcome), run.deadLetterFigure]
  } finally {
    await run.close()
  }
}

async function consume(run: KeyedRun, count: number, accounts: number, seed: number): Promise<Outcome> {
  await createTableWithStream(run)
  const bookings = bookingsOf(new Random(seed), count, accounts)
  await run.start({ fresh: true })
  await run.send(
    'bookings',
    bookings.map((value) => ({ partitionKey: value.account, value })),
  )
  await run.settle()
  await run.stop()
  const { model } = run.dynamodb
  const expected = accountsOf(bookings)
  const alone = standingOf(model)
  const looked = await lookUp(run.client, [...expected.keys()])
  const withLookups = standingOf(model)
  const { accounts: followed, changes } = follow(model)
  return { expected, looked, followed, changes, standings: [alone, withLookups, standingOf(model)] }
}

/** On AWS: `stages: { 'by-account': { table: { dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES } } }`. */
async function createTableWithStream({ client }: KeyedRun): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      ...stateTable,
      StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
    }),
  )
}

function standingOf(model: DynamoModel): Standing {
  const { read, write } = model.consumedUnits(tableName)
  const items = model.call('DescribeTable', { TableName: tableName }).Table.ItemCount
  return { items, written: write, read }
}

function standingLines({ standings: [alone, looked, followed], expected, changes }: Outcome): readonly string[] {
  const row = (name: string, { items, written, read }: Standing, results: string) => [
    ...[name, grouped(items), grouped(written), grouped(read), results],
  ]
  return table(
    [
      ['after', 'items in the table', 'write units so far', 'read units so far', 'results'],
      row('the application', alone, `${grouped(expected.size)} accounts kept`),
      row('lookups by a second consumer', looked, `${grouped(expected.size)} accounts looked up`),
      row('the changelog, by a third', followed, `${grouped(changes)} changes followed`),
    ],
    [false, true, true, true, false],
  )
}

const differing = (found: ReadonlyMap<string, Account>, expected: ReadonlyMap<string, Account>): number =>
  [...new Set([...found.keys(), ...expected.keys()])].filter(
    (name) => !isDeepStrictEqual(found.get(name), expected.get(name)),
  ).length

function figuresOf({ expected, looked, followed, changes, standings: [alone, withLookups, last] }: Outcome): Figure[] {
  const none = (name: string, value: number, unit: string): Figure => ({
    ...{ name, value, unit, goal: 0 },
    better: 'exactly',
  })
  return [
    { name: 'accounts', value: expected.size, unit: '' },
    { name: 'changes in the changelog', value: changes, unit: '' },
    {
      name: 'read units per lookup',
      value: (withLookups.read - alone.read) / Math.max(1, expected.size),
      unit: 'read units',
    },
    none('accounts that a lookup shows wrongly', differing(looked, expected), 'accounts'),
    none('accounts that the changelog comes to wrongly', differing(followed, expected), 'accounts'),
    none('items that the other consumers added', last.items - alone.items, 'items'),
    none('write units that the other consumers cost', last.written - alone.written, 'write units'),
  ]
}
