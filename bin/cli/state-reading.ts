/** Reads keys of a stage's state table, bounded: one key with what it keeps, or a page of keys. */
import { QueryCommand, ScanCommand } from '@aws-sdk/client-dynamodb'
import { readEntryItem, type TableItem } from '../../lib/aws/state-table/items.ts'
import { stateView } from '../../lib/aws/state-table/reader.ts'
import { entryKey, keyItemKey } from '../../lib/state/key-encoding.ts'
import type { EntryItem, KeyItem } from '../../lib/state/state-store.ts'
import { type DeclaredStage, readable, type StatePlace } from './state-place.ts'

/** One state of a key as it is shown. */
export interface ShownState {
  /** The name in the table: `<operator>.<state>`, or `<operator>` where that has one. */
  readonly name: string
  /** `value`, `list`, `map` ... as declared; undefined where it is not, and the value is as the table has it. */
  readonly kind: string | undefined
  readonly value: unknown
}

export interface ShownKey {
  /** As the table has it. */
  readonly key: string
  readonly item: KeyItem
  readonly states: readonly ShownState[]
  /** True where there are more entries of map states than were read. */
  readonly hasMoreEntries: boolean
}

type Entries = ReadonlyMap<string, ReadonlyMap<string, EntryItem>>

const mostReads = 10
const answerMs = 60_000

/** What is kept of a key, and at most so many entries of its map states; undefined where nothing is. */
export async function readKey(place: StatePlace, key: string, mostEntries: number): Promise<ShownKey | undefined> {
  const signal = AbortSignal.timeout(answerMs)
  let known: number | undefined
  for (let reads = 1; ; reads += 1) {
    const item = (await place.store.readKeys([key], signal)).get(key)
    if (item === undefined) return undefined
    const { entries, hasMore } = await readEntries(place, key, mostEntries, signal)
    const newest = Math.max(0, ...[...entries.values()].flatMap((map) => [...map.values()].map((e) => e.position)))
    // A newer entry is of a commit between the two reads; where the same item comes twice, TTL took the later one.
    if (newest > item.position && item.position !== known && reads < mostReads) {
      known = item.position
      continue
    }
    return { key, item, states: shownStates(place, key, item, entries), hasMoreEntries: hasMore }
  }
}

async function readEntries(place: StatePlace, key: string, most: number, signal: AbortSignal) {
  const entries = new Map<string, Map<string, EntryItem>>()
  let [count, start] = [0, undefined as TableItem | undefined]
  do {
    const query = new QueryCommand({
      TableName: place.tableName,
      KeyConditionExpression: 'pk=:pk AND begins_with(sk,:map)',
      ExpressionAttributeValues: { ':pk': { S: keyItemKey(key).pk }, ':map': { S: 'map#' } },
      ConsistentRead: true,
      Limit: most - count + 1,
      ExclusiveStartKey: start,
    })
    const { Items = [], LastEvaluatedKey } = await place.client.send(query, { abortSignal: signal })
    for (const item of Items.slice(0, most - count)) {
      const name = entryName(item)
      if (name === undefined) continue
      const read = readEntryItem(entryKey({ key, ...name }), item)
      entries.set(name.state, (entries.get(name.state) ?? new Map<string, EntryItem>()).set(name.entry, read))
    }
    count += Items.length
    start = LastEvaluatedKey
  } while (start !== undefined && count <= most)
  return { entries, hasMore: count > most }
}

/** Of an entry nothing but its name comes behind the second separator, whatever is in it. */
function entryName(item: TableItem): { readonly state: string; readonly entry: string } | undefined {
  const [, escaped, entry] = /^map#([^#]*)#([\s\S]*)$/.exec(item.skText?.S ?? item.sk?.S ?? '') ?? []
  if (escaped === undefined || entry === undefined) return undefined
  return { state: escaped.replaceAll('%23', '#').replaceAll('%25', '%'), entry }
}

/** In the order of declaration as steps see them; then what is not declared, and what operators pack, as it is stored. */
function shownStates({ declared }: StatePlace, key: string, item: KeyItem, entries: Entries): readonly ShownState[] {
  const typed = declared === undefined ? new Map<string, ShownState>() : typedStates(declared, key, item, entries)
  const stored: ShownState[] = []
  for (const [name, value] of Object.entries(item.states)) {
    const kind = declared?.stage.states.get(name)?.kind
    if (!typed.has(name)) stored.push({ name, kind, value })
  }
  for (const [name, map] of entries) {
    const present = [...map].flatMap(([entry, { value }]) => (value === undefined ? [] : [[entry, value] as const]))
    if (!typed.has(name)) stored.push({ name, kind: undefined, value: new Map(present) })
  }
  return [...typed.values(), ...stored]
}

function typedStates({ topology, stage }: DeclaredStage, key: string, item: KeyItem, entries: Entries) {
  const reads = Object.fromEntries([...stage.states].filter(([, { kind }]) => kind !== 'packed'))
  const values = stateView(topology, stage.name, reads).read(key, item, entries) as { readonly [name: string]: unknown }
  return new Map<string, ShownState>(
    Object.entries(reads).map(([name, { kind }]) => [name, { name, kind, value: values[name] }]),
  )
}

export interface ListedKey {
  readonly key: string
  readonly position: number
  readonly expiresAtSeconds: number | undefined
}

export interface KeyPage {
  readonly keys: readonly ListedKey[]
  /** What to go on behind; undefined where these were the last. */
  readonly after: string | undefined
}

/** Sorts behind every item of a key. */
const behindEntries = '~'
/** How many items one request looks at. */
const itemsPerPage = 1_000
/** A page of keys ends here even where few were found among many entries. */
const mostItems = 100_000

/** A page of keys in the order of the table, which is that of a hash. Other items of the table are passed over. */
export async function listKeys(place: StatePlace, limit: number, after: string | undefined): Promise<KeyPage> {
  const signal = AbortSignal.timeout(answerMs)
  const keys: ListedKey[] = []
  let start = after === undefined ? undefined : placeBehind(after)
  for (let seen = 0; ; ) {
    const scan = new ScanCommand({
      TableName: place.tableName,
      ConsistentRead: true,
      Limit: itemsPerPage,
      ExclusiveStartKey: start,
    })
    const { Items = [], LastEvaluatedKey } = await place.client.send(scan, { abortSignal: signal })
    for (const item of Items) {
      const key = keyOf(item)
      if (item.sk?.S !== 'key' || key === undefined) continue
      if (keys.length === limit) return { keys, after: keys.at(-1)?.key }
      keys.push({ key, position: Number(item.position?.N), expiresAtSeconds: item.ttl && Number(item.ttl.N) })
    }
    if (LastEvaluatedKey === undefined) return { keys, after: undefined }
    start = LastEvaluatedKey
    seen += Items.length
    const last = Items.at(-1)
    if (seen >= mostItems && last !== undefined && keyOf(last) !== undefined) return { keys, after: keyOf(last) }
  }
}

function keyOf(item: TableItem): string | undefined {
  const pk = item.pkText?.S ?? item.pk?.S ?? ''
  return pk.startsWith('key#') ? pk.slice('key#'.length) : undefined
}

/** A scan goes on behind a place, whether an item is there or not. */
function placeBehind(key: string): TableItem {
  return { pk: { S: keyItemKey(key).pk }, sk: { S: behindEntries } }
}

/** Runs a read and says what went wrong as a command does. */
export async function reading<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (error) {
    throw readable(error)
  }
}
