/**
 * Keeps a table row per key: each output sets the attributes of its row.
 *
 * 1. A row remembers, per upstream partition, the largest position it took (attribute `millrace#<source>/<partition>`).
 *    An update is conditional on a larger one, so that a repeated or an older output changes nothing and counts as
 *    delivered; it may have been our own write whose answer was lost.
 * 2. Updates of one row are never in flight together; those of different rows are.
 * 3. An attribute that is undefined is removed; one that the output does not mention is left as it is.
 * 4. The table's partition key is what the sink's key function says. Where the sink declares none, it is the row's own
 *    attribute of that name. An output for which the two differ is refused, because either choice would lose rows.
 * 5. What the table could never take of a row fails that row alone, not the batch; nothing is converted to fit.
 */
import {
  type AttributeValue,
  UpdateItemCommand,
  type UpdateItemCommandInput,
  type UpdateItemCommandOutput,
} from '@aws-sdk/client-dynamodb'
import { TerminalError } from '../../core/errors.ts'
import type { RecordInfo } from '../../core/record.ts'
import type { KeyType } from '../../plan/stage-bindings.ts'
import { delivered, type Output, type Sink } from '../../runtime/sink.ts'
import { errorOf } from '../aws-failure.ts'
import { attributeBytes, attributeValue, checkAttributeName, isPlainObject } from '../encoding/attribute-values.ts'
import { sortableDigits } from '../encoding/sortable-position.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'

/** What is needed of a `DynamoDBClient`. */
export interface DynamoDBPort {
  send(command: UpdateItemCommand): Promise<UpdateItemCommandOutput>
}

export interface DynamoDBTableSinkOptions extends DeliveryPorts {
  /** A `DynamoDBClient`, such as {@link createDynamoDBClient} makes: without retries of its own. */
  readonly client: DynamoDBPort
  readonly tableName: string
  /**
   * The attribute that is the table's partition key. It takes what the sink's key function says, as text; the row may
   * leave the attribute out or have it with that value. Without a key function it is the row's own.
   */
  readonly partitionKey: string
  /** The type of that attribute. @default not checked here: the table then takes a value of another type for a wrong setting */
  readonly partitionKeyType?: KeyType
  /** The attribute of the row that is the table's sort key. @default none */
  readonly sortKey?: string
  /** As `partitionKeyType`. */
  readonly sortKeyType?: KeyType
  /** Updates in flight at a time, 1 to 50. @default 16 */
  readonly parallelUpdates?: number
}

/** One update on its way to the table. */
export interface RowUpdate {
  /** Tells rows apart. */
  readonly row: string
  readonly input: UpdateItemCommandInput
}

const ownPrefix = 'millrace#'
/** An item's limit is 409,600 bytes; the rest is kept for the positions of upstream partitions. */
const rowLimitBytes = 400 * 1_024 - 8 * 1_024
/** @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-expression-parameters */
const expressionLimitBytes = 4_096
/** @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-partition-sort-keys */
const partitionKeyLimitBytes = 2_048
const sortKeyLimitBytes = 1_024
const keyTypeNames: Readonly<Record<KeyType, string>> = { S: 'text', N: 'a number', B: 'bytes' }

/**
 * The output's place in its upstream partition, as text that sorts by (position, sub-position, index).
 *
 * @example
 * positionText(record, 0) // '002:15/001:0/001:0'
 */
export function positionText(record: RecordInfo, index: number): string {
  return `${sortableDigits(record.position)}/${sortableDigits(String(record.subPosition))}/${sortableDigits(String(index))}`
}

function rowOf(value: unknown): Readonly<Record<string, unknown>> {
  if (isPlainObject(value)) return value
  throw new TerminalError('the output is not a plain object, so it has no attributes to make a table row of', {
    code: 'not-a-row',
  })
}

interface KeyAttribute {
  readonly name: string
  readonly type: KeyType | undefined
  readonly limitBytes: number
}

function keyValue({ name, type, limitBytes }: KeyAttribute, value: unknown): AttributeValue {
  const key = value === undefined ? undefined : attributeValue(value, name)
  if (!(key?.S || key?.N || key?.B?.byteLength)) {
    throw new TerminalError(
      `the output has no value for the key attribute "${name}": it needs text or bytes that are not empty, or a number`,
      { code: 'missing-key' },
    )
  }
  const bytes = attributeBytes(key)
  if (bytes > limitBytes) {
    throw new TerminalError(`the key attribute "${name}" has ${bytes} bytes: DynamoDB takes ${limitBytes} there`, {
      code: 'invalid-key',
    })
  }
  if (type !== undefined && key[type] === undefined) {
    const found = keyTypeNames[key.S === undefined ? (key.N === undefined ? 'B' : 'N') : 'S']
    throw new TerminalError(
      `the key attribute "${name}" is ${found}, and the table has ${keyTypeNames[type]} there: nothing is converted`,
      { code: 'invalid-key' },
    )
  }
  return key
}

/** Invariant 4. */
function partitionKeyOf(row: Readonly<Record<string, unknown>>, name: string, sinkKey: string | undefined): unknown {
  const own = Object.hasOwn(row, name) ? row[name] : undefined
  if (sinkKey === undefined || own === undefined || own === sinkKey) return sinkKey ?? own
  throw new TerminalError(
    `the row's attribute "${name}" is not what the sink's key function says, and both would be the table's partition key: leave the attribute out, make it the same text, or declare the sink without a key to take the attribute's value`,
    { code: 'key-differs' },
  )
}

/** Collects the clauses of one update expression; names and values go in by reference. */
function updateOf(row: Readonly<Record<string, unknown>>, isKey: (name: string) => boolean) {
  const names: Record<string, string> = {}
  const values: Record<string, AttributeValue> = {}
  const set: string[] = []
  const remove: string[] = []
  let bytes = 0
  for (const [name, value] of Object.entries(row)) {
    if (isKey(name)) continue
    if (name.startsWith(ownPrefix)) {
      throw new TerminalError(`the attribute "${name}" begins with "${ownPrefix}", which is Millrace's own`, {
        code: 'reserved-attribute',
      })
    }
    const reference = `#${set.length + remove.length}`
    names[reference] = checkAttributeName(name, 'of the row')
    if (value === undefined) {
      remove.push(reference)
      continue
    }
    const attribute = attributeValue(value, name)
    values[`:${set.length}`] = attribute
    set.push(`${reference}=:${set.length}`)
    bytes += Buffer.byteLength(name) + attributeBytes(attribute)
  }
  return { names, values, set, remove, bytes }
}

function checkSize(bytes: number, expression: string): void {
  if (bytes > rowLimitBytes) {
    throw new TerminalError(`the row has about ${bytes} bytes: a table row of ours holds ${rowLimitBytes}`, {
      code: 'oversize',
    })
  }
  if (expression.length > expressionLimitBytes) {
    throw new TerminalError(
      `the row has too many attributes: its update expression has ${expression.length} bytes of ${expressionLimitBytes}; nest them in a map`,
      { code: 'oversize' },
    )
  }
}

function keyOf(
  row: Readonly<Record<string, unknown>>,
  sinkKey: string | undefined,
  { partitionKey, partitionKeyType, sortKey, sortKeyType }: DynamoDBTableSinkOptions,
): Record<string, AttributeValue> {
  const partition = { name: partitionKey, type: partitionKeyType, limitBytes: partitionKeyLimitBytes }
  const key = { [partitionKey]: keyValue(partition, partitionKeyOf(row, partitionKey, sinkKey)) }
  if (sortKey !== undefined) {
    const sort = { name: sortKey, type: sortKeyType, limitBytes: sortKeyLimitBytes }
    key[sortKey] = keyValue(sort, Object.hasOwn(row, sortKey) ? row[sortKey] : undefined)
  }
  return key
}

function prepareUpdate(output: Output, options: DynamoDBTableSinkOptions): RowUpdate {
  const row = rowOf(output.value)
  const key = keyOf(row, output.key, options)
  const { names, values, set, remove, bytes } = updateOf(row, (name) => Object.hasOwn(key, name))
  const { source, partition } = output.record
  set.push('#position=:position')
  const expression = `SET ${set.join(',')}${remove.length > 0 ? ` REMOVE ${remove.join(',')}` : ''}`
  checkSize(bytes, expression)
  const notTaken = 'attribute_not_exists(#position)'
  const older = '#position<:position'
  return {
    row: JSON.stringify(Object.values(key).map(({ S, N, B }) => S ?? N ?? Buffer.from(B ?? []).toString('base64'))),
    input: {
      TableName: options.tableName,
      Key: key,
      UpdateExpression: expression,
      ConditionExpression: `${notTaken} OR ${older}`,
      ExpressionAttributeNames: { ...names, '#position': `${ownPrefix}${source}/${partition}` },
      ExpressionAttributeValues: { ...values, ':position': { S: positionText(output.record, output.index) } },
    },
  }
}

/**
 * What DynamoDB says of a row that it could never take. Other ValidationExceptions, such as one for key attributes that the
 * table does not have, are of the settings: they would make a dead letter of every record.
 */
const refusals: readonly { readonly message: RegExp; readonly code: string; readonly remedy: string }[] = [
  { message: /item size/i, code: 'oversize', remedy: 'keep less in one row' },
  {
    // Of the table's own key, or of an index's: both are attributes of the row.
    message: /size of hashkey|size of all range keys|type mismatch for .*key|key attribute cannot contain an empty/i,
    code: 'invalid-key',
    remedy: 'give the key attributes of the table and of its indexes values that they take',
  },
]

async function sendUpdate(client: DynamoDBPort, { input }: RowUpdate): Promise<readonly Answer[]> {
  try {
    await client.send(new UpdateItemCommand(input))
  } catch (thrown) {
    const error = errorOf(thrown)
    if (error.name === 'ConditionalCheckFailedException') return [delivered]
    const refusal = refusals.find(({ message }) => message.test(error.message))
    if (error.name !== 'ValidationException' || refusal === undefined) throw thrown
    const { code, remedy } = refusal
    const terminal = new TerminalError(`the table takes no such row (${error.message}): ${remedy}`, {
      code,
      cause: error,
    })
    return [{ status: 'rejected', error: terminal }]
  }
  return [delivered]
}

/**
 * A sink that keeps one table row per key, each output applied once however often it comes. The attributes of an output
 * are the columns of its row.
 *
 * The partition key of a row is what the sink's key function says; without one, it is the row's own attribute.
 *
 * Dead letters by code: `not-a-row`, `missing-key`, `invalid-key`, `key-differs`, `unsupported-value`, `reserved-attribute`, `oversize`. Throttles are
 * retried until the deadline; a missing table or permission returns the records to their source.
 *
 * @example
 * const sink = dynamodbTableSink({ client: createDynamoDBClient(), tableName: 'rates', partitionKey: 'hotelId', clock, logger })
 */
export function dynamodbTableSink(options: DynamoDBTableSinkOptions): Sink<unknown, RowUpdate> {
  const { client, tableName, parallelUpdates = 16 } = options
  const destination: Destination<RowUpdate> = {
    label: `table "${tableName}"`,
    maxItemsPerRequest: 1,
    maxBytesPerRequest: Number.POSITIVE_INFINITY,
    maxRequests: parallelUpdates,
    sizeOf: () => 0,
    orderKeyOf: ({ row }) => row,
    send: async (updates) => (await Promise.all(updates.map((update) => sendUpdate(client, update)))).flat(),
  }
  return {
    prepare: (output) => prepareUpdate(output, options),
    deliver: (updates, { signal }) => deliverInOrder(updates, destination, options, signal),
  }
}
