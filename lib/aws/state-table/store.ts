/**
 * The state store of a keyed stage in its DynamoDB table.
 *
 * 1. All reads are strongly consistent. Key items and entries are never read in one call.
 * 2. A commit of a key item alone is one conditional put: one write unit per KB. With entries it is a transaction, in which
 *    the key item's condition guards them all.
 * 3. A condition that fails answers with the item that is there: no further read is needed.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
 */
import {
  BatchGetItemCommand,
  type BatchGetItemCommandOutput,
  type BatchWriteItemCommand,
  type BatchWriteItemCommandOutput,
  GetItemCommand,
  type GetItemCommandOutput,
  PutItemCommand,
  type PutItemCommandInput,
  type PutItemCommandOutput,
  QueryCommand,
  type QueryCommandOutput,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandOutput,
} from '@aws-sdk/client-dynamodb'
import { checkedCommit, checkedManifest, checkedProgress, type StateLimits } from '../../state/commit-rules.ts'
import {
  compareUtf8,
  entryKey,
  entryPrefix,
  keyItemKey,
  manifestKey,
  progressKey,
  type TableKey,
} from '../../state/key-encoding.ts'
import type {
  CommitOutcome,
  DueEntry,
  DuePage,
  EntryItem,
  EntryName,
  KeyCommit,
  KeyItem,
  StateStore,
  StateValue,
  StoredProgress,
  TimerDomain,
} from '../../state/state-store.ts'
import { inBatches } from './batches.ts'
import { isFailedCondition, type StateCallPorts, StateCalls } from './calls.ts'
import { DueTable } from './due.ts'
import {
  keyAttributes,
  readEntryItem,
  readKeyItem,
  readManifestItem,
  readProgressItem,
  type TableItem,
  writeEntryItem,
  writeKeyItem,
  writeManifestItem,
  writeProgressItem,
} from './items.ts'

/** What is needed of a `DynamoDBClient`. */
export interface DynamoDBStatePort {
  send(command: GetItemCommand): Promise<GetItemCommandOutput>
  send(command: BatchGetItemCommand): Promise<BatchGetItemCommandOutput>
  send(command: BatchWriteItemCommand): Promise<BatchWriteItemCommandOutput>
  send(command: QueryCommand): Promise<QueryCommandOutput>
  send(command: PutItemCommand): Promise<PutItemCommandOutput>
  send(command: TransactWriteItemsCommand): Promise<TransactWriteItemsCommandOutput>
}

export interface DynamoDBStateStoreOptions extends StateLimits, StateCallPorts {
  /** A `DynamoDBClient`, such as `createDynamoDBClient` makes: without retries of its own. */
  readonly client: DynamoDBStatePort
  /** Batched reads in flight at a time for one call, 1 to 50. @default 8 */
  readonly parallelReads?: number
  /** Batched writes of due entries in flight at a time for one call, 1 to 50. @default 8 */
  readonly parallelWrites?: number
}

/** @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html */
const mostKeysPerRead = 100

/** Names of reserved words go in by reference. */
const conditions = {
  absent: () => ({ ConditionExpression: 'attribute_not_exists(pk)' }),
  stillHolds: (item: TableItem) => ({
    ConditionExpression: '#read=:read',
    ExpressionAttributeNames: { '#read': 'value' },
    ExpressionAttributeValues: { ':read': item.value as TableItem[string] },
  }),
  stillAt: (attribute: 'position' | 'version', value: number) => ({
    ConditionExpression: '#read=:read',
    ExpressionAttributeNames: { '#read': attribute },
    ExpressionAttributeValues: { ':read': { N: String(value) } },
  }),
}

/** Names an item within the table. */
const placeOf = (pk: string, sk: string): string => `${pk.length}:${pk}${sk}`

/**
 * A {@link StateStore} in a DynamoDB table with the text keys `pk` and `sk`.
 *
 * Rejects with a TerminalError (codes `unsupported-value`, `unsupported-key`, `state-too-large`, `commit-too-large`) for
 * what no retry could write, and with a RetryableError for the rest: `state-deadline` (nothing was written),
 * `state-unanswered` (a write may have taken place), `state-table-unusable`, `foreign-item`, `newer-format`.
 *
 * @example
 * const store = new DynamoDBStateStore({ client: createDynamoDBClient(), tableName: 'by-hotel', stage: 'by-hotel', clock })
 */
export class DynamoDBStateStore implements StateStore {
  readonly #options: DynamoDBStateStoreOptions
  readonly #calls: StateCalls
  readonly #due: DueTable

  constructor(options: DynamoDBStateStoreOptions) {
    this.#options = options
    this.#calls = new StateCalls(options)
    const { client, tableName, parallelWrites = 8 } = options
    this.#due = new DueTable({ client, tableName, calls: this.#calls, parallelWrites })
  }

  async readProgress(partition: string, signal: AbortSignal): Promise<StoredProgress | undefined> {
    const key = progressKey(partition)
    const item = await this.#get(key, signal)
    return item && readProgressItem(key, item)
  }

  async writeProgress(
    partition: string,
    readVersion: number,
    value: StateValue,
    signal: AbortSignal,
  ): Promise<boolean> {
    const key = progressKey(partition)
    const progress = { version: readVersion + 1, value: checkedProgress(partition, value, this.#options) }
    const condition = readVersion === 0 ? conditions.absent() : conditions.stillAt('version', readVersion)
    const failed = await this.#put({ Item: writeProgressItem(key, progress), ...condition }, signal)
    return failed === undefined
  }

  async readKeys(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, KeyItem>> {
    const tableKeys = keys.map(keyItemKey)
    const found = await this.#readItems(tableKeys, signal)
    const items = new Map<string, KeyItem>()
    for (const [i, tableKey] of tableKeys.entries()) {
      const item = found.get(placeOf(tableKey.pk, tableKey.sk))
      if (item !== undefined) items.set(keys[i] as string, readKeyItem(tableKey, item))
    }
    return items
  }

  async readEntries(names: readonly EntryName[], signal: AbortSignal): Promise<readonly (EntryItem | undefined)[]> {
    const tableKeys = names.map(entryKey)
    const found = await this.#readItems(tableKeys, signal)
    return tableKeys.map((tableKey) => {
      const item = found.get(placeOf(tableKey.pk, tableKey.sk))
      return item && readEntryItem(tableKey, item)
    })
  }

  async listEntries(key: string, state: string, signal: AbortSignal): Promise<ReadonlyMap<string, EntryItem>> {
    const { client, tableName } = this.#options
    const prefix = entryPrefix(state)
    const { pk } = keyItemKey(key)
    const listed: [entry: string, item: EntryItem][] = []
    let ExclusiveStartKey: TableItem | undefined
    do {
      const query = new QueryCommand({
        TableName: tableName,
        KeyConditionExpression: 'pk=:pk AND begins_with(sk,:prefix)',
        ExpressionAttributeValues: { ':pk': { S: pk }, ':prefix': { S: prefix } },
        ConsistentRead: true,
        ExclusiveStartKey,
        ...this.#calls.capacityWanted,
      })
      const { Items = [], LastEvaluatedKey } = await this.#calls.read(() => client.send(query), signal)
      for (const item of Items) {
        const entry = (item.skText?.S ?? item.sk?.S ?? '').slice(prefix.length)
        listed.push([entry, readEntryItem(entryKey({ key, state, entry }), item)])
      }
      ExclusiveStartKey = LastEvaluatedKey
    } while (ExclusiveStartKey !== undefined)
    return inOrder(listed)
  }

  async commit(write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome> {
    const { key, readPosition, item, entries } = checkedCommit(write, this.#options)
    const tableKey = keyItemKey(key)
    const condition = readPosition === undefined ? conditions.absent() : conditions.stillAt('position', readPosition)
    const put = { Item: writeKeyItem(tableKey, item), ...condition }
    const others = entries.map(({ state, entry, ...written }) =>
      writeEntryItem(entryKey({ key, state, entry }), { position: item.position, ...written }),
    )
    const failed = await (others.length === 0 ? this.#put(put, signal) : this.#transact(put, others, signal))
    if (failed === undefined) return { status: 'committed' }
    return { status: 'conflict', found: failed.found && readKeyItem(tableKey, failed.found) }
  }

  async readManifest(signal: AbortSignal): Promise<StateValue | undefined> {
    const item = await this.#get(manifestKey(), signal)
    return item && readManifestItem(manifestKey(), item)
  }

  async writeManifest(value: StateValue, signal: AbortSignal): Promise<boolean> {
    const item = writeManifestItem(manifestKey(), checkedManifest(value, this.#options))
    const failed = await this.#put({ Item: item, ...conditions.absent() }, signal)
    return failed === undefined
  }

  async replaceManifest(read: StateValue, value: StateValue, signal: AbortSignal): Promise<boolean> {
    const item = writeManifestItem(manifestKey(), checkedManifest(value, this.#options))
    const before = writeManifestItem(manifestKey(), checkedManifest(read, this.#options))
    const failed = await this.#put({ Item: item, ...conditions.stillHolds(before) }, signal)
    return failed === undefined
  }

  putDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    return this.#due.put(entries, signal)
  }

  readDue(
    slot: number,
    domain: TimerDomain,
    untilMs: number,
    options: { readonly limit: number; readonly after?: DueEntry | undefined },
    signal: AbortSignal,
  ): Promise<DuePage> {
    return this.#due.read({ slot, domain, untilMs, ...options }, signal)
  }

  deleteDue(entries: readonly DueEntry[], signal: AbortSignal): Promise<void> {
    return this.#due.delete(entries, signal)
  }

  async #get(key: TableKey, signal: AbortSignal): Promise<TableItem | undefined> {
    const { client, tableName } = this.#options
    const input = { TableName: tableName, Key: keyAttributes(key), ConsistentRead: true, ...this.#calls.capacityWanted }
    const { Item } = await this.#calls.read(() => client.send(new GetItemCommand(input)), signal)
    return Item
  }

  /** Undefined where the condition held, else the item that is there. */
  async #put(put: Omit<PutItemCommandInput, 'TableName'>, signal: AbortSignal) {
    const { client, tableName } = this.#options
    const input: PutItemCommandInput = {
      TableName: tableName,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...put,
      ...this.#calls.capacityWanted,
    }
    try {
      await this.#calls.write(() => client.send(new PutItemCommand(input)), signal)
      return undefined
    } catch (thrown) {
      if (!isFailedCondition(thrown)) throw thrown
      return { found: (thrown as { Item?: TableItem }).Item }
    }
  }

  async #transact(put: Omit<PutItemCommandInput, 'TableName'>, others: readonly TableItem[], signal: AbortSignal) {
    const { client, tableName: TableName } = this.#options
    const guarded = { TableName, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const, ...put }
    const input = {
      TransactItems: [{ Put: guarded }, ...others.map((Item) => ({ Put: { TableName, Item } }))],
      ...this.#calls.capacityWanted,
    }
    try {
      // Each attempt is a command, and so a transaction token, of its own: what was cancelled is not replayed.
      await this.#calls.write(() => client.send(new TransactWriteItemsCommand(input)), signal)
      return undefined
    } catch (thrown) {
      if (!isFailedCondition(thrown)) throw thrown
      const [reason] = (thrown as { CancellationReasons: readonly { Item?: TableItem }[] }).CancellationReasons
      return { found: reason?.Item }
    }
  }

  /** The items that are there, by place. */
  async #readItems(keys: readonly TableKey[], signal: AbortSignal): Promise<ReadonlyMap<string, TableItem>> {
    const found = new Map<string, TableItem>()
    const distinct = [...new Map(keys.map((key) => [placeOf(key.pk, key.sk), keyAttributes(key)])).values()]
    await inBatches(distinct, mostKeysPerRead, this.#options.parallelReads ?? 8, (batch) =>
      this.#readBatch(batch, found, signal),
    )
    return found
  }

  async #readBatch(batch: TableItem[], found: Map<string, TableItem>, signal: AbortSignal): Promise<void> {
    const { client, tableName } = this.#options
    let left = batch
    for (let fruitless = 0; left.length > 0; ) {
      const RequestItems = { [tableName]: { Keys: left, ConsistentRead: true } }
      const command = () => new BatchGetItemCommand({ RequestItems, ...this.#calls.capacityWanted })
      const { Responses, UnprocessedKeys } = await this.#calls.read(() => client.send(command()), signal)
      for (const item of Responses?.[tableName] ?? []) found.set(placeOf(String(item.pk?.S), String(item.sk?.S)), item)
      const unprocessed = UnprocessedKeys?.[tableName]?.Keys ?? []
      if (unprocessed.length === 0) return
      fruitless = unprocessed.length === left.length ? fruitless + 1 : 1
      left = unprocessed
      await this.#calls.rest(fruitless, signal)
    }
  }
}

/** Tombstones left out, by the bytes of the names: those that are too long for a sort key came in another order. */
function inOrder(listed: readonly [entry: string, item: EntryItem][]): ReadonlyMap<string, EntryItem> {
  const present = listed.filter(([, { value }]) => value !== undefined)
  return new Map(present.sort(([a], [b]) => compareUtf8(a, b)))
}
