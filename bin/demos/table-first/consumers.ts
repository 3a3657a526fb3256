/**
 * Two consumers of accounts that another application keeps: one looks up, the other follows the changelog. Neither keeps a table, a stream
 * or a copy of its own on AWS; what the follower holds is what it makes of the changes.
 */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { accountState, tableFirstApp } from '../../../functions/table-first/topology.ts'
import { readState, stateView } from '../../../lib/aws/state-table/reader.ts'
import { invariant } from '../../../lib/core/errors.ts'
import type { DynamoModel } from '../../../lib/emulator/dynamodb/index.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'

export const stage = 'by-account'
export const tableName = tableNameOf(tableFirstApp.name, stage)

/** What a consumer knows of an account. */
export interface Account {
  readonly balanceCents: number
  readonly recentCents: readonly number[]
  readonly byCategory: ReadonlyMap<string, number>
}

const view = stateView(tableFirstApp, stage, { account: accountState })

/** Point lookups by the plain client of the AWS SDK. */
export async function lookUp(
  client: DynamoDBClient,
  accounts: readonly string[],
): Promise<ReadonlyMap<string, Account>> {
  const reader = readState({ client, tableName, view })
  const found = new Map<string, Account>()
  for (const name of accounts) {
    const { account } = (await reader.get(name))?.states ?? {}
    if (account === undefined) continue
    const { balanceCents = 0, lines, byCategory } = account
    found.set(name, { balanceCents, recentCents: lines.map(({ cents }) => cents), byCategory })
  }
  return found
}

/** What the changelog comes to, and how many changes it had. */
export interface Followed {
  readonly accounts: ReadonlyMap<string, Account>
  readonly changes: number
}

/** Follows the stream of the table from its beginning, as an event source mapping would. */
export function follow(model: DynamoModel): Followed {
  const items = new Map<string, Pick<Account, 'balanceCents' | 'recentCents'>>()
  const entries = new Map<string, Map<string, number>>()
  let changes = 0
  for (const record of recordsOf(model)) {
    const change = view.change(record)
    if (change === undefined) continue
    changes += 1
    const key = String(change.key)
    if (change.kind === 'key') {
      const { balanceCents = 0, lines = [] } = change.after?.account ?? {}
      if (change.after === undefined) items.delete(key)
      else items.set(key, { balanceCents, recentCents: lines.map(({ cents }) => cents) })
    } else {
      const map = entries.get(key) ?? new Map<string, number>()
      entries.set(key, map)
      if (change.after === undefined) map.delete(change.entry)
      else map.set(change.entry, change.after)
    }
  }
  const accounts = [...items].map(
    ([key, item]) => [key, { ...item, byCategory: entries.get(key) ?? new Map() }] as const,
  )
  return { accounts: new Map(accounts), changes }
}

/** All that the stream of the table holds. */
function recordsOf(model: DynamoModel) {
  const StreamArn = model.call('DescribeTable', { TableName: tableName }).Table.LatestStreamArn
  invariant(StreamArn !== undefined, `the table ${tableName} has no stream`)
  const ShardId = model.call('DescribeStream', { StreamArn }).StreamDescription.Shards?.[0]?.ShardId
  invariant(ShardId !== undefined, `the stream of the table ${tableName} has no shard`)
  const start = model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
  const records = []
  let iterator = start.ShardIterator
  for (;;) {
    const page = model.call('GetRecords', { ShardIterator: iterator })
    if (page.Records.length === 0 || page.NextShardIterator === undefined) return [...records, ...page.Records]
    records.push(...page.Records)
    iterator = page.NextShardIterator
  }
}
