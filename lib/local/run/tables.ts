/** The tables that sinks of a local run are bound to, and those of its keyed stages, on the embedded DynamoDB or any endpoint that speaks its protocol. */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  type KeySchemaElement,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { clientSettings } from '../../aws/clients/settings.ts'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type { Plan } from '../../plan/plan.ts'
import type { KeyType } from '../../plan/stage-bindings.ts'
import { localIdentity } from './streams.ts'

/** The key attributes of a table. */
export interface TableKeys {
  /** It takes the sink's key, where the sink declares one. */
  readonly partitionKey: string
  /** @default what the table has, and text where it is made */
  readonly partitionKeyType?: KeyType
  /** A field of the value. @default none */
  readonly sortKey?: string
  /** As `partitionKeyType`. */
  readonly sortKeyType?: KeyType
}

/** The sinks that are tables, by their names. */
export type SinkTables = Readonly<Record<string, TableKeys>>

/** A table that is ready. */
export interface LocalTable extends TableKeys {
  readonly tableName: string
  readonly partitionKeyType: KeyType
}

/** A DynamoDB client for an endpoint on this machine. */
export function localDynamoDBClient(endpoint: string): DynamoDBClient {
  const { region, accessKeyId, secretAccessKey } = localIdentity
  return new DynamoDBClient({ ...clientSettings({ endpoint, region }), credentials: { accessKeyId, secretAccessKey } })
}

const createTimeoutMs = 60_000
const pollMs = 200

/** Throws a ConfigurationError where one of the tables is for no sink of the topology. */
export function checkTables({ topology, graph }: Plan, tables: SinkTables): void {
  const sinks = graph.sinks.map(({ name }) => name)
  const unknown = Object.keys(tables).find((name) => !sinks.includes(name))
  if (unknown === undefined) return
  throw new ConfigurationError(
    `a table is bound to "${unknown}", which is no sink of topology "${topology}": it has ${sinks.join(', ') || 'none'}.`,
  )
}

/**
 * Finds the table of each bound sink or makes it, under the sink's name.
 *
 * @throws ConfigurationError for a table that is bound to no sink of the topology, and as {@link ensureTable}.
 */
export async function ensureTables(
  planned: Plan,
  client: DynamoDBClient,
  clock: Clock,
  tables: SinkTables,
): Promise<ReadonlyMap<string, LocalTable>> {
  checkTables(planned, tables)
  const ready = new Map<string, LocalTable>()
  for (const [name, keys] of Object.entries(tables)) ready.set(name, await ensureTable(client, clock, name, keys))
  return ready
}

/**
 * Finds a table or makes it, billed per request, and waits until it is active. A table that exists keeps its keys.
 *
 * @throws ConfigurationError where the endpoint cannot be reached, the table has other keys, or it does not become active within a
 * minute.
 * @example
 * const { tableName } = await ensureTable(client, systemClock, 'totals', { partitionKey: 'customer' })
 */
export async function ensureTable(
  client: DynamoDBClient,
  clock: Clock,
  tableName: string,
  keys: TableKeys,
): Promise<LocalTable> {
  const endMs = clock.nowMs() + createTimeoutMs
  try {
    let found = await describe(client, tableName)
    if (found === undefined) await create(client, tableName, keys)
    while (found?.TableStatus !== 'ACTIVE' && found?.TableStatus !== 'UPDATING') {
      if (clock.nowMs() > endMs) throw new Error(`it is still ${found?.TableStatus ?? 'missing'} after a minute`)
      if (found !== undefined) await clock.sleep(pollMs)
      found = await describe(client, tableName)
    }
    return localTable(tableName, keys, found)
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    throw notReady(tableName, error)
  }
}

function notReady(tableName: string, error: unknown): ConfigurationError {
  const { name, message } = describeError(error)
  return new ConfigurationError(
    `The table ${tableName} cannot be made ready: ${name}: ${message.split('\n')[0]}. Check that the endpoint runs and speaks DynamoDB.`,
    { cause: error },
  )
}

/**
 * Finds the table of a keyed stage or makes it, and sees to it that DynamoDB removes what has expired.
 *
 * @throws ConfigurationError as {@link ensureTable}.
 */
export async function ensureStateTable(client: DynamoDBClient, clock: Clock, tableName: string): Promise<void> {
  const keys: TableKeys = { partitionKey: 'pk', partitionKeyType: 'S', sortKey: 'sk', sortKeyType: 'S' }
  await ensureTable(client, clock, tableName, keys)
  try {
    const { TimeToLiveDescription: found } = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }))
    if (found?.AttributeName === 'ttl') return
    const TimeToLiveSpecification = { AttributeName: 'ttl', Enabled: true }
    await client.send(new UpdateTimeToLiveCommand({ TableName: tableName, TimeToLiveSpecification }))
  } catch (error) {
    throw notReady(tableName, error)
  }
}

async function describe(client: DynamoDBClient, tableName: string): Promise<TableDescription | undefined> {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }))
    return Table
  } catch (error) {
    if (describeError(error).name === 'ResourceNotFoundException') return undefined
    throw error
  }
}

async function create(client: DynamoDBClient, tableName: string, keys: TableKeys): Promise<void> {
  const { partitionKey, partitionKeyType = 'S', sortKey, sortKeyType = 'S' } = keys
  const schema: KeySchemaElement[] = [{ AttributeName: partitionKey, KeyType: 'HASH' }]
  const types = [{ AttributeName: partitionKey, AttributeType: partitionKeyType }]
  if (sortKey !== undefined) {
    schema.push({ AttributeName: sortKey, KeyType: 'RANGE' })
    types.push({ AttributeName: sortKey, AttributeType: sortKeyType })
  }
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      KeySchema: schema,
      AttributeDefinitions: types,
      BillingMode: 'PAY_PER_REQUEST',
    }),
  )
}

function localTable(tableName: string, keys: TableKeys, found: TableDescription): LocalTable {
  const attributeOf = (kind: 'HASH' | 'RANGE') =>
    found.KeySchema?.find(({ KeyType }) => KeyType === kind)?.AttributeName
  const typeOf = (name: string | undefined) =>
    found.AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType as KeyType
  const [partitionKey = '', sortKey] = [attributeOf('HASH'), attributeOf('RANGE')]
  const [partitionKeyType, sortKeyType] = [typeOf(partitionKey), typeOf(sortKey)]
  const isAsked =
    partitionKey === keys.partitionKey &&
    sortKey === keys.sortKey &&
    partitionKeyType === (keys.partitionKeyType ?? partitionKeyType) &&
    sortKeyType === (keys.sortKeyType ?? sortKeyType)
  if (!isAsked) {
    const has = [`${partitionKey}:${partitionKeyType}`, ...(sortKey === undefined ? [] : [`${sortKey}:${sortKeyType}`])]
    throw new ConfigurationError(
      `The table ${tableName} exists with the key ${has.join(',')}, which is not the one asked for: ask for that, or delete the table.`,
    )
  }
  return {
    tableName,
    partitionKey,
    partitionKeyType,
    ...(sortKey === undefined ? {} : { sortKey, sortKeyType }),
  }
}
