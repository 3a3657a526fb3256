/** Operations on tables. A table is ACTIVE at once after it is created, and gone at once after it is deleted. */
import { hash } from 'node:crypto'
import { tableArn } from './effects.ts'
import { DynamoError, invalid, invalidParameter } from './errors.ts'
import type {
  CreateTableInput,
  ListTablesInput,
  ListTablesOutput,
  TableDescription,
  TableReference,
  TimeToLiveSpecification,
  UpdateTimeToLiveInput,
} from './shapes.ts'
import type { Table } from './table.ts'
import { compareText } from './value.ts'
import { checkChoice, checkRange, checkTableName, findTable, type World } from './world.ts'

const MOST_TABLES_LISTED = 100
const streamViews = ['KEYS_ONLY', 'NEW_IMAGE', 'OLD_IMAGE', 'NEW_AND_OLD_IMAGES'] as const

export function createTable(world: World, input: CreateTableInput): { TableDescription: TableDescription } {
  checkTableName(input.TableName)
  checkBilling(input)
  checkKeySchema(input)
  const streamView = streamViewOf(input)
  if (world.tables.has(input.TableName)) {
    throw new DynamoError('ResourceInUseException', `Table already exists: ${input.TableName}`)
  }
  const definition = {
    attributes: input.AttributeDefinitions.map(({ AttributeName, AttributeType }) => ({
      AttributeName,
      AttributeType,
    })),
    keySchema: input.KeySchema.map(({ AttributeName, KeyType }) => ({ AttributeName, KeyType })),
    streamView,
  }
  world.commit({ type: 'table-created', table: input.TableName, atMs: world.nowMs(), definition })
  return { TableDescription: describe(world, findTable(world, input.TableName)) }
}

function checkBilling({ BillingMode }: CreateTableInput): void {
  if (BillingMode !== 'PAY_PER_REQUEST') {
    throw invalid(
      `The embedded DynamoDB has on-demand tables only: create them with BillingMode PAY_PER_REQUEST, not ${BillingMode}.`,
    )
  }
}

function checkKeySchema({ KeySchema, AttributeDefinitions }: CreateTableInput): void {
  const [hashKey, rangeKey, ...others] = KeySchema
  if (
    hashKey?.KeyType !== 'HASH' ||
    (rangeKey !== undefined && rangeKey.KeyType !== 'RANGE') ||
    others.length > 0 ||
    hashKey.AttributeName === rangeKey?.AttributeName
  ) {
    throw invalid('Invalid KeySchema: a table has one HASH key and, behind it, at most one RANGE key of another name')
  }
  for (const { AttributeType } of AttributeDefinitions) {
    checkChoice('attributeDefinitions.attributeType', AttributeType, ['B', 'N', 'S'])
  }
  const defined = AttributeDefinitions.map(({ AttributeName }) => AttributeName)
  const wanted = KeySchema.map(({ AttributeName }) => AttributeName)
  if (wanted.some((name) => !defined.includes(name))) {
    throw invalidParameter(
      `Some index key attributes are not defined in AttributeDefinitions. Keys: [${wanted.join(', ')}], AttributeDefinitions: [${defined.join(', ')}]`,
    )
  }
  if (defined.length !== wanted.length) {
    throw invalidParameter(
      'Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions',
    )
  }
}

function streamViewOf({ StreamSpecification: specification }: CreateTableInput) {
  if (specification === undefined || !specification.StreamEnabled) {
    if (specification?.StreamViewType === undefined) return null
    throw invalid('One or more parameter values were invalid: StreamViewType cannot be set when StreamEnabled is false')
  }
  checkChoice('streamSpecification.streamViewType', specification.StreamViewType, streamViews)
  if (specification.StreamViewType !== undefined) return specification.StreamViewType
  throw invalidParameter('StreamViewType is required when StreamEnabled is true')
}

export function deleteTable(world: World, { TableName }: TableReference): { TableDescription: TableDescription } {
  const TableDescription = describe(world, findTable(world, TableName), 'DELETING')
  world.commit({ type: 'table-deleted', table: TableName, atMs: world.nowMs() })
  return { TableDescription }
}

export function describeTable(world: World, { TableName }: TableReference): { Table: TableDescription } {
  return { Table: describe(world, findTable(world, TableName)) }
}

function describe(
  world: World,
  { name, definition, createdAtMs, itemCount, bytes, stream }: Table,
  TableStatus: 'ACTIVE' | 'DELETING' = 'ACTIVE',
): TableDescription {
  const TableArn = tableArn(world, name)
  return {
    TableName: name,
    TableArn,
    TableId: hash('sha256', `${TableArn} ${createdAtMs}`, 'hex').replace(
      /^(.{8})(.{4})(.{4})(.{4})(.{12}).*/,
      '$1-$2-$3-$4-$5',
    ),
    TableStatus,
    AttributeDefinitions: definition.attributes,
    KeySchema: definition.keySchema,
    CreationDateTime: new Date(createdAtMs),
    ItemCount: itemCount,
    TableSizeBytes: bytes,
    BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' },
    ...(stream === undefined
      ? {}
      : {
          StreamSpecification: { StreamEnabled: true, StreamViewType: stream.view },
          LatestStreamArn: stream.arn,
          LatestStreamLabel: stream.label,
        }),
  }
}

export function listTables(world: World, { ExclusiveStartTableName: after, Limit }: ListTablesInput): ListTablesOutput {
  checkRange('limit', Limit, 1, MOST_TABLES_LISTED)
  const names = [...world.tables.keys()]
    .sort(compareText)
    .filter((name) => after === undefined || compareText(name, after) > 0)
  const TableNames = names.slice(0, Limit ?? MOST_TABLES_LISTED)
  const last = TableNames.at(-1)
  return {
    TableNames,
    ...(TableNames.length < names.length && last !== undefined ? { LastEvaluatedTableName: last } : {}),
  }
}

export function updateTimeToLive(
  world: World,
  { TableName, TimeToLiveSpecification: specification }: UpdateTimeToLiveInput,
): { TimeToLiveSpecification: TimeToLiveSpecification } {
  const { ttlAttribute } = findTable(world, TableName)
  const { AttributeName, Enabled } = specification
  if (Enabled === (ttlAttribute !== undefined)) {
    throw invalid(`TimeToLive is already ${Enabled ? 'enabled' : 'disabled'}`)
  }
  if (ttlAttribute !== undefined && ttlAttribute !== AttributeName) {
    throw invalid(`TimeToLive is active on a different AttributeName: current AttributeName is ${ttlAttribute}`)
  }
  world.commit({ type: 'ttl-set', table: TableName, attribute: Enabled ? AttributeName : null })
  return { TimeToLiveSpecification: { AttributeName, Enabled } }
}

export function describeTimeToLive(world: World, { TableName }: TableReference) {
  const { ttlAttribute } = findTable(world, TableName)
  return {
    TimeToLiveDescription:
      ttlAttribute === undefined
        ? { TimeToLiveStatus: 'DISABLED' as const }
        : { TimeToLiveStatus: 'ENABLED' as const, AttributeName: ttlAttribute },
  }
}
