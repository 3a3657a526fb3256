/**
 * The due entries of a stage in its DynamoDB table: an item each, without a condition.
 *
 * 1. Writes go in batches of 25, of which a few are in flight at a time. What was left unprocessed is sent again after a rest,
 *    and so is a batch whose answer was lost: to put or delete an entry a second time changes nothing.
 * 2. Reads are strongly consistent. A page is small at first and grows with what is due, so that a slot of which little is due
 *    costs about a read unit, however many entries wait behind.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
 */
import {
  BatchWriteItemCommand,
  type BatchWriteItemCommandOutput,
  QueryCommand,
  type QueryCommandOutput,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb'
import { checkedDueQuery, type DueQuery } from '../../state/commit-rules.ts'
import { dueKey, duePartition, duePrefix, type TableKey } from '../../state/key-encoding.ts'
import type { DueEntry, DuePage } from '../../state/state-store.ts'
import { inBatches } from './batches.ts'
import type { StateCalls } from './calls.ts'
import { keyAttributes, readDueItem, type TableItem, writeDueItem } from './items.ts'

/** What is needed of a `DynamoDBClient`. */
export interface DynamoDBDuePort {
  send(command: BatchWriteItemCommand): Promise<BatchWriteItemCommandOutput>
  send(command: QueryCommand): Promise<QueryCommandOutput>
}

export interface DueTableOptions {
  readonly client: DynamoDBDuePort
  readonly tableName: string
  readonly calls: StateCalls
  /** Batches in flight at a time for one call. */
  readonly parallelWrites: number
}

const mostItemsPerWrite = 25
/** About 4 KB, a read unit, of entries with keys of up to a hundred bytes. */
const firstPageItems = 16
const pageGrowth = 4

export class DueTable {
  readonly #options: DueTableOptions

  constructor(options: DueTableOptions) {
    this.#options = options
  }

  put(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    return this.#write(entries, (key) => ({ PutRequest: { Item: writeDueItem(key) } }), signal)
  }

  delete(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    return this.#write(entries, (key) => ({ DeleteRequest: { Key: keyAttributes(key) } }), signal)
  }

  async read(query: DueQuery, signal: AbortSignal): Promise<DuePage> {
    const { slot, domain, untilMs, limit, after } = checkedDueQuery(query)
    const entries: DueEntry[] = []
    let start = after && keyAttributes(dueKey(after))
    for (let pageItems = firstPageItems; ; pageItems *= pageGrowth) {
      // One beyond the limit tells whether these are all.
      const wanted = Math.min(pageItems, limit + 1 - entries.length)
      const { items, next } = await this.#page(query, wanted, start, signal)
      for (const item of items) {
        const { timeMs, key } = readDueItem(item)
        if (timeMs > untilMs) return { entries, nextMs: timeMs, isComplete: true }
        if (entries.length === limit) return { entries, nextMs: undefined, isComplete: false }
        entries.push({ slot, domain, timeMs, key })
      }
      if (next === undefined) return { entries, nextMs: undefined, isComplete: true }
      start = next
    }
  }

  async #page({ slot, domain }: DueQuery, Limit: number, start: TableItem | undefined, signal: AbortSignal) {
    const { client, tableName, calls } = this.#options
    const command = new QueryCommand({
      TableName: tableName,
      KeyConditionExpression: 'pk=:pk AND begins_with(sk,:domain)',
      ExpressionAttributeValues: { ':pk': { S: duePartition(slot) }, ':domain': { S: duePrefix(domain) } },
      ConsistentRead: true,
      Limit,
      ...(start && { ExclusiveStartKey: start }),
      ...calls.capacityWanted,
    })
    const { Items = [], LastEvaluatedKey } = await calls.read(() => client.send(command), signal)
    return { items: Items as readonly TableItem[], next: LastEvaluatedKey as TableItem | undefined }
  }

  async #write(
    entries: readonly DueEntry[],
    requestOf: (key: TableKey) => WriteRequest,
    signal: AbortSignal,
  ): Promise<void> {
    // A batch must not name an item twice.
    const keys = new Map(entries.map((entry) => dueKey(entry)).map((key) => [`${key.pk} ${key.sk}`, key]))
    const requests = [...keys.values()].map(requestOf)
    await inBatches(requests, mostItemsPerWrite, this.#options.parallelWrites, (batch) =>
      this.#writeBatch(batch, signal),
    )
  }

  async #writeBatch(batch: WriteRequest[], signal: AbortSignal): Promise<void> {
    const { client, tableName, calls } = this.#options
    let left = batch
    for (let fruitless = 0; ; ) {
      const RequestItems = { [tableName]: left }
      const command = () => new BatchWriteItemCommand({ RequestItems, ...calls.capacityWanted })
      const { UnprocessedItems } = await calls.writeAgain(() => client.send(command()), signal)
      const unprocessed = UnprocessedItems?.[tableName] ?? []
      if (unprocessed.length === 0) return
      fruitless = unprocessed.length === left.length ? fruitless + 1 : 1
      left = unprocessed
      await calls.rest(fruitless, signal)
    }
  }
}
