/**
 * Keeps a table row per key: each output sets the attributes of its row.
 *
 * 1. A row remembers, per upstream partition, the largest position it took (attribute `millrace#<source>/<partition>`).
 *    An update is conditional on a larger one, so that a repeated or an older output changes nothing and counts as
 *    delivered; it may have been our own write whose answer was lost.
 * 2. Updates of one row are never in flight together; those of different rows are.
 * 3. An attribute that is undefined is removed; one that the output does not mention is left as it is.
 */
import {
  type AttributeValue,
  UpdateItemCommand,
  type UpdateItemCommandInput,
  type UpdateItemCommandOutput,
} from '@aws-sdk/client-dynamodb'
import { TerminalError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import { delivered, type Output, type Sink } from '../runtime/sink.ts'
import { attributeBytes, attributeValue, checkAttributeName, isPlainObject } from './attribute-values.ts'
import { errorOf } from './aws-failure.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from './ordered-delivery.ts'

/** What is needed of a `DynamoDBClient`. */
export interface DynamoDBPort {
  send(command: UpdateItemCommand): Promise<UpdateItemCommandOutput>
}

export interface DynamoDBTableSinkOptions extends DeliveryPorts {
  /** A `DynamoDBClient`, such as {@link createDynamoDBClient} makes: without retries of its own. */
  readonly client: DynamoDBPort
  readonly tableName: string
  /** The attribute that is the table's partition key: of the row, else it takes what the sink's key function says. */
  readonly partitionKey: string
  /** The attribute of the row that is the table's sort key. @default none */
  readonly sortKey?: string
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

/** Decimal text, made to sort as its number does: numbers of up to 56 digits are beyond what DynamoDB's N holds. */
function sortable(digits: string): string {
  const canonical = digits.replace(/^0+(?=\d)/, '')
  return `${String(canonical.length).padStart(3, '0')}:${canonical}`
}

/**
 * The output's place in its upstream partition, as text that sorts by (position, sub-position, index).
 *
 * @example
 * positionText(record, 0) // '002:15/001:0/001:0'
 */
export function positionText(record: RecordInfo, index: number): string {
  return `${sortable(record.position)}/${sortable(String(record.subPosition))}/${sortable(String(index))}`
}

function rowOf(value: unknown): Readonly<Record<string, unknown>> {
  if (isPlainObject(value)) return value
  throw new TerminalError('the output is not a plain object, so it has no attributes to make a table row of', {
    code: 'not-a-row',
  })
}

function keyValue(name: string, value: unknown): AttributeValue {
  const key = value === undefined ? undefined : attributeValue(value, name)
  if (key?.S || key?.N || key?.B?.byteLength) return key
  throw new TerminalError(
    `the output has no value for the key attribute "${name}": it needs text or bytes that are not empty, or a number`,
    { code: 'missing-key' },
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

function prepareUpdate(output: Output, { tableName, partitionKey, sortKey }: DynamoDBTableSinkOptions): RowUpdate {
  const row = rowOf(output.value)
  const key: Record<string, AttributeValue> = {
    [partitionKey]: keyValue(partitionKey, row[partitionKey] ?? output.key),
  }
  if (sortKey !== undefined) key[sortKey] = keyValue(sortKey, row[sortKey])

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
      TableName: tableName,
      Key: key,
      UpdateExpression: expression,
      ConditionExpression: `${notTaken} OR ${older}`,
      ExpressionAttributeNames: { ...names, '#position': `${ownPrefix}${source}/${partition}` },
      ExpressionAttributeValues: { ...values, ':position': { S: positionText(output.record, output.index) } },
    },
  }
}

const tooLarge = /item size/i

async function sendUpdate(client: DynamoDBPort, { input }: RowUpdate): Promise<readonly Answer[]> {
  try {
    await client.send(new UpdateItemCommand(input))
  } catch (thrown) {
    const error = errorOf(thrown)
    if (error.name === 'ConditionalCheckFailedException') return [delivered]
    if (error.name !== 'ValidationException' || !tooLarge.test(error.message)) throw thrown
    const oversize = new TerminalError(
      `the row would be larger than the 400 KB of a table item: ${error.message}; keep less in one row`,
      { code: 'oversize', cause: error },
    )
    return [{ status: 'rejected', error: oversize }]
  }
  return [delivered]
}

/**
 * A sink that keeps one table row per key, each output applied once however often it comes. The attributes of an output
 * are the columns of its row.
 *
 * Dead letters by code: `not-a-row`, `missing-key`, `unsupported-value`, `reserved-attribute`, `oversize`. Throttles are
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
