/**
 * All that is in a state table, for whoever empties it: docs/state-table.md has the kinds of its items.
 *
 * 1. Progress and the manifest are told of and never deleted: progress is what keeps older attempts from writing.
 * 2. The table is read page by page and deleted page by page, so its size costs time and units, and no memory.
 * 3. Deleting twice changes nothing, so a cut-off deletion is begun again.
 */
import { BatchWriteItemCommand, type DynamoDBClient, ScanCommand, type WriteRequest } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/clock.ts'
import { inBatches } from './batches.ts'
import { StateCalls } from './calls.ts'
import type { TableItem } from './items.ts'

/** What was found in a table, by kind of item. */
export interface TableContents {
  readonly keys: number
  /** Of map states. */
  readonly entries: number
  readonly dueEntries: number
  /** The names under which progress is stored, the generation of the stage among them. */
  readonly progress: readonly string[]
}

export interface StateTableContentsOptions {
  /** A client without retries of its own. */
  readonly client: Pick<DynamoDBClient, 'send'>
  /** The table's name, or its ARN. */
  readonly tableName: string
  readonly stage: string
  readonly clock: Clock
}

/** The most that one request takes. */
const mostDeletes = 25
const mostParallel = 4
const progressPrefix = 'progress#'

const textOf = (item: TableItem, name: string): string => item[name]?.S ?? ''
const progressNameOf = (item: TableItem): string =>
  (textOf(item, 'pkText') || textOf(item, 'pk')).slice(progressPrefix.length)
const isOf = (item: TableItem, prefix: string): boolean => textOf(item, 'pk').startsWith(prefix)

export class StateTableContents {
  readonly #options: StateTableContentsOptions
  readonly #calls: StateCalls

  constructor(options: StateTableContentsOptions) {
    this.#options = options
    this.#calls = new StateCalls(options)
  }

  /** Counts what is there. It reads the whole table. */
  async count(signal: AbortSignal): Promise<TableContents> {
    let [keys, entries, dueEntries] = [0, 0, 0]
    const progress: string[] = []
    for await (const items of this.#pages(signal)) {
      for (const item of items) {
        if (isOf(item, progressPrefix)) progress.push(progressNameOf(item))
        else if (isOf(item, 'due#')) dueEntries++
        else if (isOf(item, 'key#')) {
          if (textOf(item, 'sk') === 'key') keys++
          else entries++
        }
      }
    }
    return { keys, entries, dueEntries, progress }
  }

  /** Deletes every key, entry and due entry; resolves with how many items those were. */
  async empty(signal: AbortSignal): Promise<number> {
    let deleted = 0
    for await (const items of this.#pages(signal)) {
      const doomed = items.filter((item) => isOf(item, 'key#') || isOf(item, 'due#'))
      await inBatches(doomed, mostDeletes, mostParallel, (batch) => this.#delete(batch, signal))
      deleted += doomed.length
    }
    return deleted
  }

  async *#pages(signal: AbortSignal): AsyncGenerator<readonly TableItem[]> {
    const { client, tableName } = this.#options
    let from: TableItem | undefined
    do {
      const scan = new ScanCommand({
        TableName: tableName,
        ConsistentRead: true,
        ProjectionExpression: 'pk, sk, pkText',
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      })
      const page = await this.#calls.read(() => client.send(scan), signal)
      yield page.Items ?? []
      from = page.LastEvaluatedKey
    } while (from !== undefined)
  }

  async #delete(items: readonly TableItem[], signal: AbortSignal): Promise<void> {
    const { client, tableName } = this.#options
    let open: WriteRequest[] = items.map(({ pk, sk }) => ({ DeleteRequest: { Key: { pk, sk } as TableItem } }))
    for (let attempt = 1; open.length > 0; attempt++) {
      const request = new BatchWriteItemCommand({ RequestItems: { [tableName]: open } })
      const answer = await this.#calls.writeAgain(() => client.send(request), signal)
      // Under an ARN, what is left comes back under the table's name.
      open = Object.values(answer.UnprocessedItems ?? {}).flat()
      if (open.length > 0) await this.#calls.rest(attempt, signal)
      if (signal.aborted) throw this.#calls.deadline()
    }
  }
}
