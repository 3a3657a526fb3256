/**
 * The requests and answers of DynamoDB and its streams in AWS JSON 1.0.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations.html
 */
import { DynamoError, type DynamoOperationName } from '../../emulator/dynamodb/index.ts'
import { type Field, type Fields, optional, RequestReader, required, toWire } from './aws-json.ts'

/** Looked at only when it is read, as a value may hold values. */
const value: Field = {
  get structure() {
    return attributeValue
  },
}
const item: Field = { mapOf: value }
const attributeValue: Fields = {
  S: optional('string'),
  N: optional('string'),
  B: optional('bytes'),
  BOOL: optional('boolean'),
  NULL: optional('boolean'),
  SS: optional({ listOf: 'string' }),
  NS: optional({ listOf: 'string' }),
  BS: optional({ listOf: 'bytes' }),
  L: optional({ listOf: value }),
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

const reader = new RequestReader('DynamoDB', (name, message) => new DynamoError(name, message))

/** Reads a request's body into what the model takes. Throws SerializationException or ValidationException, naming the field. */
export function decodeRequest(operation: DynamoOperationName, body: Buffer): unknown {
  return reader.read(requests[operation], body)
}

/** Reads an item or a key that was written with `toWire`. */
export function decodeItem(value: unknown): unknown {
  return reader.readField(item, value, 'item')
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
