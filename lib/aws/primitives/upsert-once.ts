/**
 * A table row that takes each record of an ordered log once: for Lambda functions that are written by hand.
 *
 *   read the row ──> its position is at or past ours ──> it was there already
 *        │                                                   ^
 *        └──> next(row) ──> put, if the position is still ────┤ another call was faster, or the answer was lost
 *                           the one that was read             │
 *                                 └──> applied                └── the row that is there decides
 *
 * 1. Each write moves the row's position up, and is made on condition that the position is the one that `next` saw. So no
 *    write is lost to another, none is made twice, and the position never falls.
 * 2. A write that went unanswered may have taken effect. The row is read again, and its position says.
 * 3. Throttles and lost connections are tried again with backoff until the signal aborts. After an abort nothing is sent.
 * 4. A failure that needs a person is a RetryableError; what no retry could write is a TerminalError.
 */
import type {
  AttributeValue,
  GetItemCommand,
  GetItemCommandOutput,
  PutItemCommand,
  PutItemCommandInput,
  PutItemCommandOutput,
} from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/clock.ts'
import { RetryableError, TerminalError } from '../../core/errors.ts'
import { refusePromise } from '../../operators/operator.ts'
import { errorOf, passesByItself } from '../aws-failure.ts'
import { attributeBytes, isPlainObject } from '../encoding/attribute-values.ts'
import { attributesOf, rowOf, type TableRow } from '../encoding/row-values.ts'
import { isSortablePosition, sortablePosition } from '../encoding/sortable-position.ts'
import { backoffMs } from '../ordered-delivery.ts'
import { systemClock } from '../system-clock.ts'

/** What is needed of a `DynamoDBClient`. */
export interface UpsertClient {
  send(command: GetItemCommand): Promise<GetItemCommandOutput>
  send(command: PutItemCommand): Promise<PutItemCommandOutput>
}

/** A table whose rows are written by {@link upsertOnce} alone. */
export interface UpsertTable {
  /** A `DynamoDBClient`. Its own retries do no harm: a retry that meets its own success is recognised. */
  readonly client: UpsertClient
  readonly tableName: string
  /** The attribute that holds the row's position. @default 'millrace#position' */
  readonly positionAttribute?: string
  /** Waits between attempts. @default the machine's clock */
  readonly clock?: Pick<Clock, 'sleep'>
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number
}

export interface UpsertOptions {
  /** Ends the attempts, such as the signal that {@link processInOrder} gives to each step. @default never */
  readonly signal?: AbortSignal
}

/** What became of a record. `row` is the row as it is now, without its position. */
export interface UpsertResult<Row extends object> {
  /**
   * `already-there`: the row includes the position, by an earlier call, by another one at the same time, or by a write of
   * this one whose answer was lost. What must happen for each record, such as sending it on, must happen for both answers.
   */
  readonly status: 'applied' | 'already-there'
  readonly row: Row
}

type Attributes = Record<string, AttributeValue>

const defaultPositionAttribute = 'millrace#position'
/** @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-items */
const mostItemBytes = 409_600

/**
 * Applies the record at `position` to the row of `key`, unless the row includes that position already.
 *
 * `next` makes the new row of the present one (undefined where there is none), and may be called again when another
 * writer was faster: it must be synchronous and pure. What it leaves out is removed; the key need not be repeated.
 * Costs one read unit per 4 KB and one write unit per KB.
 *
 * All positions of one key must come from one ordered log, such as the sequence numbers of a Kinesis shard or the offsets
 * of a Kafka partition: they are decimal digits of any length (`'9'` is before `'10'`), or several such numbers with
 * slashes between them, from the most significant to the least, such as a sequence number and the place in an aggregate.
 *
 * Rejects with a {@link TerminalError} (codes `unsupported-value`, `unsupported-position`, `key-differs`,
 * `reserved-attribute`, `oversize`, `asynchronous-step`) for what no retry could write, with a {@link RetryableError}
 * otherwise (`table-deadline`, `table-unusable`), and with whatever `next` throws.
 *
 * @example
 * const table = { client: new DynamoDBClient(), tableName: 'visits' }
 * await upsertOnce(table, { user: 'u1' }, record.kinesis.sequenceNumber, (row?: { visits: number }) => ({
 *   visits: (row?.visits ?? 0) + 1,
 * }))
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithItems.html#WorkingWithItems.ConditionalUpdate
 */
export async function upsertOnce<Row extends object>(
  table: UpsertTable,
  key: TableRow,
  position: string | number | bigint,
  next: (current: Row | undefined) => Row,
  options: UpsertOptions = {},
): Promise<UpsertResult<Row>> {
  const upsert = new Upsert(table, attributesOf(key), sortablePosition(position), next, options.signal)
  return upsert.run()
}

class Upsert<Row extends object> {
  readonly #table: UpsertTable
  readonly #key: Attributes
  readonly #position: string
  readonly #next: (current: Row | undefined) => Row
  readonly #signal: AbortSignal | undefined
  #attempts = 0

  constructor(
    table: UpsertTable,
    key: Attributes,
    position: string,
    next: (current: Row | undefined) => Row,
    signal: AbortSignal | undefined,
  ) {
    this.#table = table
    this.#key = key
    this.#position = position
    this.#next = next
    this.#signal = signal
  }

  async run(): Promise<UpsertResult<Row>> {
    let found = await this.#read()
    for (;;) {
      const stored = found && this.#storedPosition(found)
      if (stored !== undefined && stored >= this.#position) {
        return { status: 'already-there', row: this.#rowOf(found as Attributes) }
      }
      const item = this.#item(this.#next(found && this.#rowOf(found)))
      const written = await this.#write(item, found)
      if (written === 'applied') return { status: 'applied', row: this.#rowOf(item) }
      found = written === 'unanswered' ? await this.#read() : written.found
    }
  }

  get #positionAttribute(): string {
    return this.#table.positionAttribute ?? defaultPositionAttribute
  }

  /** Undefined in a row that was written by somebody else. */
  #storedPosition({ [this.#positionAttribute]: stored }: Attributes): string | undefined {
    if (stored === undefined || isSortablePosition(stored.S)) return stored?.S
    const { tableName } = this.#table
    throw new TerminalError(
      `the attribute "${this.#positionAttribute}" of a row of table "${tableName}" is no position: keep it free for this, or name another attribute (\`positionAttribute\`)`,
      { code: 'unsupported-position' },
    )
  }

  #rowOf({ [this.#positionAttribute]: _, ...attributes }: Attributes): Row {
    return rowOf(attributes) as Row
  }

  /** The new row as it is written. */
  #item(row: unknown): Attributes {
    refusePromise('upsertOnce', row)
    if (!isPlainObject(row)) {
      throw new TerminalError('`next` returned no plain object, so there are no attributes to make a table row of', {
        code: 'unsupported-value',
      })
    }
    if (row[this.#positionAttribute] !== undefined) {
      throw new TerminalError(
        `the row has an attribute "${this.#positionAttribute}", where its position is kept: rename it, or keep the position elsewhere (\`positionAttribute\`)`,
        { code: 'reserved-attribute' },
      )
    }
    const attributes = attributesOf(row)
    for (const [name, value] of Object.entries(this.#key)) {
      if (attributes[name] === undefined || JSON.stringify(attributes[name]) === JSON.stringify(value)) continue
      throw new TerminalError(`the row has another value for its key attribute "${name}": leave it out`, {
        code: 'key-differs',
      })
    }
    const item = { ...attributes, ...this.#key, [this.#positionAttribute]: { S: this.#position } }
    const bytes = Object.entries(item).reduce((sum, [name, v]) => sum + Buffer.byteLength(name) + attributeBytes(v), 0)
    if (bytes <= mostItemBytes) return item
    throw new TerminalError(
      `the row has about ${bytes} bytes, where a table row holds ${mostItemBytes}: keep less in it`,
      {
        code: 'oversize',
      },
    )
  }

  async #read(): Promise<Attributes | undefined> {
    const { GetItemCommand } = await import('@aws-sdk/client-dynamodb')
    const { client, tableName: TableName } = this.#table
    for (;;) {
      this.#demandTime()
      try {
        const { Item } = await client.send(new GetItemCommand({ TableName, Key: this.#key, ConsistentRead: true }))
        return Item
      } catch (thrown) {
        await this.#rest(thrown)
      }
    }
  }

  async #write(item: Attributes, found: Attributes | undefined) {
    const { PutItemCommand } = await import('@aws-sdk/client-dynamodb')
    const { client, tableName: TableName } = this.#table
    const put: PutItemCommandInput = {
      TableName,
      Item: item,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...this.#unchanged(found),
    }
    this.#demandTime()
    try {
      await client.send(new PutItemCommand(put))
      return 'applied'
    } catch (thrown) {
      const { name, Item } = thrown as { readonly name?: unknown; readonly Item?: Attributes }
      if (name === 'ConditionalCheckFailedException') return { found: Item }
      await this.#rest(thrown)
      return 'unanswered'
    }
  }

  /** The condition that the row is the one that was found. A row without a position was written by somebody else. */
  #unchanged(found: Attributes | undefined): Partial<PutItemCommandInput> {
    const [keyAttribute = ''] = Object.keys(this.#key)
    const stored = found?.[this.#positionAttribute]
    if (found === undefined) {
      return { ConditionExpression: 'attribute_not_exists(#key)', ExpressionAttributeNames: { '#key': keyAttribute } }
    }
    if (stored === undefined) {
      return {
        ConditionExpression: 'attribute_exists(#key) AND attribute_not_exists(#position)',
        ExpressionAttributeNames: { '#key': keyAttribute, '#position': this.#positionAttribute },
      }
    }
    return {
      ConditionExpression: '#position = :read AND #position < :ours',
      ExpressionAttributeNames: { '#position': this.#positionAttribute },
      ExpressionAttributeValues: { ':read': stored, ':ours': { S: this.#position } },
    }
  }

  #demandTime(cause?: Error): void {
    if (!this.#signal?.aborted) return
    const { tableName } = this.#table
    throw new RetryableError(
      `table "${tableName}" could not be used before the deadline${cause ? ` (${cause.message})` : ''}`,
      { code: 'table-deadline', cause },
    )
  }

  /** Waits where the call may succeed later, else rejects. */
  async #rest(thrown: unknown): Promise<void> {
    const error = errorOf(thrown)
    const { tableName, clock = systemClock, random = Math.random } = this.#table
    if (!passesByItself(thrown)) {
      throw new RetryableError(
        `table "${tableName}" cannot be used (${error.name}: ${error.message}): check its name, its key attributes and the permissions of the function`,
        { code: 'table-unusable', cause: error },
      )
    }
    this.#attempts += 1
    await clock.sleep(backoffMs(this.#attempts, random), this.#signal)
    this.#demandTime(error)
  }
}
