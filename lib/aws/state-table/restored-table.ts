/**
 * Makes the table of a keyed stage whole again that DynamoDB restored to a point in time. A restored table is torn: each of its items
 * is as it was at a moment of its own, within seconds of the one that was asked for.
 *
 * 1. A key item holds the state of its key at one position, whole, and says which. What comes back from the log up to that position
 *    is dropped, what lies beyond is applied: so it does not matter that other keys are older or newer.
 * 2. Progress must lie before all of them, or what an older key lacks would never be read again. So it is taken from a table that
 *    was restored to a moment earlier by more than the tear: reading goes on there.
 * 3. A timer whose due entry was torn away would never fire. Neither table is sure to have it, as the entry may be put after the
 *    earlier moment and a second before the later one. So all due entries are made anew, from the timers in the key items.
 * 4. Entries of map states are items of their own, which may be older or newer than their key. Only a key that was not written
 *    between the two moments is sure to be whole; a table with others that have entries is refused before anything is written.
 * 5. There is no way back over a reset (lib/runtime/progress/generation.ts): what the log has of another generation is dropped, or waits for
 *    ever. So both tables must be of one, and of that of now where it is known.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
 */
import {
  type AttributeValue,
  BatchWriteItemCommand,
  type BatchWriteItemCommandOutput,
  ScanCommand,
  type ScanCommandOutput,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { slotOf } from '../../core/slot.ts'
import { firstGeneration, type Generation, generationIn, generationName } from '../../runtime/progress/generation.ts'
import { dueKey, keyItemKey, manifestKey, progressKey } from '../../state/key-encoding.ts'
import { readKeyOwn } from '../../state/key-own.ts'
import type { DueEntry, TimerDomain } from '../../state/state-store.ts'
import { inBatches } from './batches.ts'
import { StateCalls } from './calls.ts'
import { readKeyItem, readManifestItem, readProgressItem, type TableItem, writeDueItem } from './items.ts'

/** What is needed of a `DynamoDBClient`. */
export interface RestoredTablePort {
  send(command: ScanCommand): Promise<ScanCommandOutput>
  send(command: BatchWriteItemCommand): Promise<BatchWriteItemCommandOutput>
}

export interface RestoredTableOptions {
  readonly client: RestoredTablePort
  readonly clock: Clock
  /** The table that was restored to the moment to go back to. It is changed, and nothing else may use it meanwhile. */
  readonly tableName: string
  /** The same table, restored to a moment that is earlier by more than the tear: a minute is plenty. It is only read. */
  readonly earlierTableName: string
  /** The generation that the stage is of now. @default the tables are compared with each other alone */
  readonly generation?: number
  /** Ends the work; what was written stays. Run again, it does the whole of it. @default never */
  readonly signal?: AbortSignal
}

/** What was done. */
export interface MendedTable {
  readonly keys: number
  /** Partitions whose progress was taken from the earlier table. */
  readonly partitions: number
  /** Due entries that the table has now. */
  readonly dueEntries: number
}

/** @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html */
const mostItemsPerWrite = 25
const writesInFlight = 8
const mostKeysTold = 10

/**
 * Makes a restored table fit for its stage to go on with, as docs/operations.md describes. Throws a {@link ConfigurationError} for a
 * table that is no keyed stage's, and for one with keys that cannot be made whole, which it names; nothing is changed then.
 *
 * @example
 * await mendRestoredTable({ client, clock, tableName: 'by-hotel-1359', earlierTableName: 'by-hotel-1358' })
 */
export async function mendRestoredTable(options: RestoredTableOptions): Promise<MendedTable> {
  const { tableName, earlierTableName } = options
  const table = new RestoredTable(options, tableName)
  const earlier = new RestoredTable(options, earlierTableName)
  const found = await table.read()
  const before = await earlier.read()
  const slots = found.owner?.slots
  if (slots === undefined) {
    throw new ConfigurationError(
      `the table "${tableName}" has no manifest with slots, so it is not that of a keyed stage: the table of a stage that only feeds others need not be restored.`,
    )
  }
  refuseAnother(options, found, before)
  refuseReset(options, found, before)
  refuseTorn(tableName, found, before)
  const due = [...found.keys].flatMap(([key, { timers }]) =>
    timers.map(({ domain, timeMs }): DueEntry => ({ slot: slotOf(key, slots), domain, timeMs, key })),
  )
  await table.write(
    found.passing.map((item) => ({ DeleteRequest: { Key: { pk: item.pk, sk: item.sk } as TableItem } })),
  )
  await table.write(due.map((entry) => ({ PutRequest: { Item: writeDueItem(dueKey(entry)) } })))
  // Last, so that a table without progress is one that is not done.
  const progress = before.passing.filter(({ pk }) => pk?.S?.startsWith('progress#'))
  await table.write(progress.map((item) => ({ PutRequest: { Item: item } })))
  const partitions = progress.filter(({ pk }) => !pk?.S?.endsWith(generationName(''))).length
  return { keys: found.keys.size, partitions, dueEntries: due.length }
}

interface FoundKey {
  readonly position: number
  /** The least of each domain. */
  readonly timers: readonly { readonly domain: TimerDomain; readonly timeMs: number }[]
}

/** Whose table it is. */
interface Owner {
  readonly topology: string
  readonly stage: string
  /** Missing where the stage keeps no keys. */
  readonly slots?: number
}

interface FoundItems {
  /** Undefined where there is no manifest. */
  readonly owner: Owner | undefined
  readonly keys: ReadonlyMap<string, FoundKey>
  /** Of each key with entries of map states, the largest position of any. */
  readonly entries: ReadonlyMap<string, number>
  /** Progress and due entries. */
  readonly passing: readonly TableItem[]
}

class RestoredTable {
  readonly #client: RestoredTablePort
  readonly #tableName: string
  readonly #calls: StateCalls
  readonly #signal: AbortSignal

  constructor({ client, clock, signal }: RestoredTableOptions, tableName: string) {
    this.#client = client
    this.#tableName = tableName
    this.#calls = new StateCalls({ stage: 'restored', tableName, clock })
    this.#signal = signal ?? new AbortController().signal
  }

  async read(): Promise<FoundItems> {
    const keys = new Map<string, FoundKey>()
    const entries = new Map<string, number>()
    const passing: TableItem[] = []
    let owner: Owner | undefined
    for await (const item of this.#items()) {
      const pk = item.pkText?.S ?? item.pk?.S ?? ''
      if (pk === manifestKey().pk) owner = readManifestItem(manifestKey(), item) as unknown as Owner
      else if (!pk.startsWith('key#')) passing.push(item)
      else {
        const key = pk.slice('key#'.length)
        if (item.sk?.S === keyItemKey(key).sk) keys.set(key, foundKey(key, item))
        else entries.set(key, Math.max(entries.get(key) ?? 0, Number(item.position?.N)))
      }
    }
    return { owner, keys, entries, passing }
  }

  async *#items(): AsyncGenerator<TableItem> {
    let after: Record<string, AttributeValue> | undefined
    do {
      const page = after === undefined ? {} : { ExclusiveStartKey: after }
      const command = new ScanCommand({ TableName: this.#tableName, ConsistentRead: true, ...page })
      const { Items = [], LastEvaluatedKey } = await this.#calls.read(() => this.#client.send(command), this.#signal)
      yield* Items
      after = LastEvaluatedKey
    } while (after !== undefined)
  }

  write(requests: readonly WriteRequest[]): Promise<void> {
    return inBatches(requests, mostItemsPerWrite, writesInFlight, async (batch) => {
      for (let left = batch, attempt = 1; left.length > 0; attempt++) {
        if (attempt > 1) await this.#calls.rest(attempt, this.#signal)
        const command = new BatchWriteItemCommand({ RequestItems: { [this.#tableName]: left } })
        const { UnprocessedItems } = await this.#calls.writeAgain(() => this.#client.send(command), this.#signal)
        left = UnprocessedItems?.[this.#tableName] ?? []
      }
    })
  }
}

function foundKey(key: string, item: TableItem): FoundKey {
  const { position, own } = readKeyItem(keyItemKey(key), item)
  const timers = Object.entries(readKeyOwn(own).timers ?? {}).flatMap(([domain, byName]) => {
    const times = Object.values(byName)
    return times.length === 0 ? [] : [{ domain: domain as TimerDomain, timeMs: Math.min(...times) }]
  })
  return { position, timers }
}

/** Progress of another stage, or of a later moment, would leave out records without a word. */
function refuseAnother({ tableName, earlierTableName }: RestoredTableOptions, found: FoundItems, before: FoundItems) {
  const [owner, other] = [found.owner, before.owner].map((one) => one && `stage "${one.stage}" of "${one.topology}"`)
  // A table that was restored to a moment before its stage began has no manifest, and no progress.
  if (other !== undefined && other !== owner) {
    throw new ConfigurationError(
      `the table "${earlierTableName}" holds the state of ${other}, and "${tableName}" that of ${owner}: give two restores of one table.`,
    )
  }
  const writes = new Map(found.passing.map((item) => [item.pk?.S, writesOf(item)]))
  const isLater = before.passing.some((item) => writesOf(item) > (writes.get(item.pk?.S) ?? Number.POSITIVE_INFINITY))
  if (!isLater) return
  throw new ConfigurationError(
    `the table "${earlierTableName}" has later progress than "${tableName}", so it was not restored to an earlier moment: are the two mixed up?`,
  )
}

function refuseReset(
  { tableName, earlierTableName, generation }: RestoredTableOptions,
  found: FoundItems,
  before: FoundItems,
) {
  const stage = found.owner?.stage ?? ''
  const [at, earlier] = [found, before].map(({ passing }) => storedGeneration(stage, passing))
  if (at?.isHeld || earlier?.isHeld || at?.generation !== earlier?.generation) {
    throw new ConfigurationError(
      `stage "${stage}" was reset between the moments of "${earlierTableName}" and "${tableName}": give two restores from behind the reset, or reset again from a time that the source still holds.`,
    )
  }
  if (generation === undefined || at?.generation === generation) return
  throw new ConfigurationError(
    `the table "${tableName}" is of generation ${at?.generation}, and stage "${stage}" of ${generation}: it was reset since, and frames of before are dropped. Restore to a moment behind the reset, or reset again from a time that the source still holds.`,
  )
}

function storedGeneration(stage: string, passing: readonly TableItem[]): Generation {
  const key = progressKey(generationName(stage))
  const item = passing.find(({ pk, sk }) => pk?.S === key.pk && sk?.S === key.sk)
  return item === undefined ? firstGeneration : generationIn(readProgressItem(key, item).value, stage)
}

/** How often a progress item was written; that of due entries is none. */
const writesOf = ({ version }: TableItem): number => Number(version?.N ?? 0)

/** A key with entries is whole where it was not written between the moments, and none of its entries is newer than it. */
function refuseTorn(tableName: string, { keys, entries }: FoundItems, before: FoundItems): void {
  const torn = [...entries].flatMap(([key, newest]) => {
    const position = keys.get(key)?.position
    const isQuiet = position === before.keys.get(key)?.position
    // Without a key item they are remains of a life that TTL has ended.
    return isQuiet && (position === undefined || newest <= position) ? [] : [key]
  })
  if (torn.length === 0) return
  const told = torn.slice(0, mostKeysTold).map((key) => JSON.stringify(key))
  throw new ConfigurationError(
    `${torn.length === 1 ? '1 key' : `${torn.length} keys`} of the table "${tableName}" with entries of map states may have been written between the two moments, so whether all is whole cannot be known: ${told.join(', ')}${torn.length > told.length ? ' and more' : ''}. Restore to two moments between which nothing was written to them, or let the stage begin anew from its stream.`,
  )
}
