/**
 * AWS JSON 1.0 as DynamoDB and its streams speak it: bytes are base64, times are seconds with a fraction, the operation is in a header.
 *
 * 1. A request reaches the model only with the fields that the model has, each of the right type; any other field is refused by
 *    name, because ignoring it (IndexName, say) would do what the caller did not ask for.
 * 2. Bodies appear in no error message.
 * 3. Objects that carry names of users have no prototype: an attribute may be named `__proto__`.
 *
 * @see https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html
 */
import { DynamoError, type DynamoOperationName } from '../emulator/dynamodb/index.ts'

type Field =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'bytes'
  | 'value'
  | { readonly structure: Fields }
  | { readonly listOf: Field }
  | { readonly mapOf: Field }
interface Fields {
  readonly [name: string]: { readonly type: Field; readonly required: boolean }
}

const required = (type: Field) => ({ type, required: true })
const optional = (type: Field) => ({ type, required: false })

const item: Field = { mapOf: 'value' }
const attributeValue: Fields = {
  S: optional('string'),
  N: optional('string'),
  B: optional('bytes'),
  BOOL: optional('boolean'),
  NULL: optional('boolean'),
  SS: optional({ listOf: 'string' }),
  NS: optional({ listOf: 'string' }),
  BS: optional({ listOf: 'bytes' }),
  L: optional({ listOf: 'value' }),
  M: optional(item),
}

const TableName = required('string')
const capacity = { ReturnConsumedCapacity: optional('string') }
const names = { ExpressionAttributeNames: optional({ mapOf: 'string' }) }
const projection = { ProjectionExpression: optional('string'), ...names }
const condition = {
  ConditionExpression: optional('string'),
  ...names,
  ExpressionAttributeValues: optional(item),
  ReturnValuesOnConditionCheckFailure: optional('string'),
}
const putAction: Fields = { TableName, Item: required(item), ...condition }
const deleteAction: Fields = { TableName, Key: required(item), ...condition }
const updateAction: Fields = { ...deleteAction, UpdateExpression: optional('string') }
const written = { ReturnValues: optional('string'), ...capacity }
const getAction: Fields = { TableName, Key: required(item), ...projection }
const page: Fields = {
  TableName,
  ConsistentRead: optional('boolean'),
  ExclusiveStartKey: optional(item),
  ExpressionAttributeValues: optional(item),
  FilterExpression: optional('string'),
  Limit: optional('integer'),
  Select: optional('string'),
  ...projection,
  ...capacity,
}
const keysAndAttributes: Fields = {
  Keys: required({ listOf: item }),
  ConsistentRead: optional('boolean'),
  ...projection,
}
const writeRequest: Fields = {
  PutRequest: optional({ structure: { Item: required(item) } }),
  DeleteRequest: optional({ structure: { Key: required(item) } }),
}
const transactWriteItem: Fields = {
  ConditionCheck: optional({ structure: { ...deleteAction, ConditionExpression: required('string') } }),
  Put: optional({ structure: putAction }),
  Delete: optional({ structure: deleteAction }),
  Update: optional({ structure: { ...updateAction, UpdateExpression: required('string') } }),
}

const requests: Record<DynamoOperationName, Fields> = {
  BatchGetItem: { RequestItems: required({ mapOf: { structure: keysAndAttributes } }), ...capacity },
  BatchWriteItem: { RequestItems: required({ mapOf: { listOf: { structure: writeRequest } } }), ...capacity },
  CreateTable: {
    TableName,
    AttributeDefinitions: required({
      listOf: { structure: { AttributeName: required('string'), AttributeType: required('string') } },
    }),
    KeySchema: required({ listOf: { structure: { AttributeName: required('string'), KeyType: required('string') } } }),
    BillingMode: optional('string'),
    StreamSpecification: optional({
      structure: { StreamEnabled: required('boolean'), StreamViewType: optional('string') },
    }),
  },
  DeleteItem: { ...deleteAction, ...written },
  DeleteTable: { TableName },
  DescribeStream: {
    StreamArn: required('string'),
    Limit: optional('integer'),
    ExclusiveStartShardId: optional('string'),
  },
  DescribeTable: { TableName },
  DescribeTimeToLive: { TableName },
  GetItem: { ...getAction, ConsistentRead: optional('boolean'), ...capacity },
  GetRecords: { ShardIterator: required('string'), Limit: optional('integer') },
  GetShardIterator: {
    StreamArn: required('string'),
    ShardId: required('string'),
    ShardIteratorType: required('string'),
    SequenceNumber: optional('string'),
  },
  ListStreams: {
    TableName: optional('string'),
    Limit: optional('integer'),
    ExclusiveStartStreamArn: optional('string'),
  },
  ListTables: { ExclusiveStartTableName: optional('string'), Limit: optional('integer') },
  PutItem: { ...putAction, ...written },
  Query: { ...page, KeyConditionExpression: required('string'), ScanIndexForward: optional('boolean') },
  Scan: { ...page, Segment: optional('integer'), TotalSegments: optional('integer') },
  TransactGetItems: {
    TransactItems: required({ listOf: { structure: { Get: required({ structure: getAction }) } } }),
    ...capacity,
  },
  TransactWriteItems: {
    TransactItems: required({ listOf: { structure: transactWriteItem } }),
    ClientRequestToken: optional('string'),
    ...capacity,
  },
  UpdateItem: { ...updateAction, ...written },
  UpdateTimeToLive: {
    TableName,
    TimeToLiveSpecification: required({
      structure: { AttributeName: required('string'), Enabled: required('boolean') },
    }),
  },
}

/** Reads a request's body into what the model takes. Throws SerializationException or ValidationException, naming the field. */
export function decodeRequest(operation: DynamoOperationName, body: Buffer): unknown {
  return decodeStructure(requests[operation], parseJson(body), '')
}

/** Reads an item or a key that was written with {@link toWire}. */
export function decodeItem(value: unknown): unknown {
  return decodeField(item, value, 'item')
}

function parseJson(body: Buffer): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString())
  } catch {
    throw new DynamoError('SerializationException', `The body of ${body.length} bytes is not JSON.`)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function decodeStructure(fields: Fields, value: unknown, path: string): Record<string, unknown> {
  if (!isObject(value)) throw wrongType(path || 'the body', 'an object')
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(fields, name)) {
      throw new DynamoError(
        'ValidationException',
        `The embedded DynamoDB does not know the field '${path}${name}' here. It takes: ${Object.keys(fields).join(', ')}.`,
      )
    }
  }
  const decoded: Record<string, unknown> = {}
  for (const name in fields) {
    const { type, required } = fields[name] as Fields[string]
    const member = value[name]
    if (member !== undefined && member !== null) decoded[name] = decodeField(type, member, path + name)
    else if (required) {
      throw new DynamoError(
        'ValidationException',
        `1 validation error detected: Value null at '${path}${name}' failed to satisfy constraint: Member must not be null`,
      )
    }
  }
  return decoded
}

function decodeField(type: Field, value: unknown, path: string): unknown {
  switch (type) {
    case 'string':
      if (typeof value === 'string') return value
      throw wrongType(path, 'a string')
    case 'integer':
      if (Number.isSafeInteger(value)) return value
      throw wrongType(path, 'an integer')
    case 'boolean':
      if (typeof value === 'boolean') return value
      throw wrongType(path, 'true or false')
    case 'bytes':
      return decodeBase64(value, path)
    case 'value':
      return decodeStructure(attributeValue, value, `${path}.`)
    default:
      if ('structure' in type) return decodeStructure(type.structure, value, `${path}.`)
      return 'listOf' in type ? decodeList(type.listOf, value, path) : decodeMap(type.mapOf, value, path)
  }
}

function decodeList(element: Field, value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw wrongType(path, 'a list')
  return value.map((member, i) => decodeField(element, member, `${path}.${i + 1}`))
}

function decodeMap(element: Field, value: unknown, path: string): Record<string, unknown> {
  if (!isObject(value)) throw wrongType(path, 'an object')
  const decoded: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(value)) decoded[name] = decodeField(element, value[name], `${path}.${name}`)
  return decoded
}

function decodeBase64(value: unknown, path: string): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64')
    const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
    if (value.length % 4 === 0 && bytes.length === (value.length / 4) * 3 - padding) return bytes
  }
  throw wrongType(path, 'base64')
}

function wrongType(path: string, expected: string): DynamoError {
  return new DynamoError('SerializationException', `'${path}' must be ${expected}.`)
}

/** Turns bytes and times, anywhere in a value, into what JSON can hold. */
export function toWire(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  }
  if (value instanceof Date) return value.getTime() / 1_000
  if (Array.isArray(value)) return value.map(toWire)
  if (!isObject(value)) return value
  const members: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(value)) members[name] = toWire(value[name])
  return members
}

const prefixes: Readonly<Record<string, string>> = {
  SerializationException: 'com.amazon.coral.service#',
  UnknownOperationException: 'com.amazon.coral.service#',
  ValidationException: 'com.amazon.coral.validate#',
}

/** The body of a refusal. AWS writes the message of a cancelled transaction with a capital letter. */
export function encodeError({ name, message, Item, CancellationReasons }: DynamoError): string {
  const __type = (prefixes[name] ?? 'com.amazonaws.dynamodb.v20120810#') + name
  if (CancellationReasons === undefined) return JSON.stringify({ __type, message, Item: toWire(Item) })
  return JSON.stringify({ __type, Message: message, CancellationReasons: toWire(CancellationReasons) })
}
