/**
 * One table: its items by partition key, and in a partition by sort key.
 *
 * 1. Items in here are parsed (value.ts) and never changed in place: a write puts another item where the old one was.
 * 2. A scan goes by the MD5 of the partition key, so that writes between two of its pages move nothing.
 * 3. Where asked, the version before the last write of each row is kept: it is what a stale read shows.
 */
import { hash as digest } from 'node:crypto'
import type { KeyTypes } from './expressions/key-condition.ts'
import type { AttributeDefinition, AttributeValue, Item, KeySchemaElement, StreamView } from './shapes.ts'
import type { TableStream } from './stream.ts'
import { compareValues, itemBytes } from './value.ts'

export interface TableDefinition {
  readonly attributes: readonly AttributeDefinition[]
  readonly keySchema: readonly KeySchemaElement[]
  /** Null where changes are not streamed. */
  readonly streamView: StreamView | null
}

/** Where a row is: the partition key as text that is equal for equal keys, and the sort key if the table has one. */
export interface Key {
  readonly hash: string
  readonly sort: AttributeValue | undefined
  readonly attributes: Item
  /** Tells the rows of a table apart. */
  readonly id: string
}

export interface Row {
  readonly key: Key
  readonly item: Item
  readonly bytes: number
}

interface Partition {
  /** In the order of their sort keys. */
  readonly rows: Row[]
  readonly scanHash: string
}

export class Table {
  readonly name: string
  readonly createdAtMs: number
  readonly definition: TableDefinition
  readonly keys: KeyTypes
  readonly stream: TableStream | undefined
  /** Holds when an item expires, in seconds since 1970. */
  ttlAttribute: string | undefined
  readonly #partitions = new Map<string, Partition>()
  #scanOrder: readonly Partition[] | undefined
  readonly #previous: Map<string, Row | undefined> | undefined
  #itemCount = 0
  #bytes = 0

  constructor(options: {
    readonly name: string
    readonly createdAtMs: number
    readonly definition: TableDefinition
    readonly keys: KeyTypes
    readonly stream: TableStream | undefined
    readonly keepPrevious: boolean
  }) {
    this.name = options.name
    this.createdAtMs = options.createdAtMs
    this.definition = options.definition
    this.keys = options.keys
    this.stream = options.stream
    this.#previous = options.keepPrevious ? new Map() : undefined
  }

  get itemCount(): number {
    return this.#itemCount
  }

  get bytes(): number {
    return this.#bytes
  }

  get(key: Key): Row | undefined {
    const rows = this.rows(key.hash)
    const row = rows[firstAtOrAfter(rows, key.sort)]
    return row !== undefined && compareSort(row.key.sort, key.sort) === 0 ? row : undefined
  }

  /** The row as it was before its last write; as it is where it was written once or not at all. */
  getPrevious(key: Key): Row | undefined {
    return this.#previous?.has(key.id) ? this.#previous.get(key.id) : this.get(key)
  }

  rows(hash: string): readonly Row[] {
    return this.#partitions.get(hash)?.rows ?? []
  }

  /** Puts an item in its place, or takes away what is there. Returns what was there. */
  write(key: Key, item: Item | undefined): Row | undefined {
    const partition = this.#partitions.get(key.hash) ?? { rows: [], scanHash: digest('md5', key.hash, 'hex') }
    const { rows } = partition
    const at = firstAtOrAfter(rows, key.sort)
    const found = rows[at]
    const old = found !== undefined && compareSort(found.key.sort, key.sort) === 0 ? found : undefined
    const row = item === undefined ? undefined : { key, item, bytes: itemBytes(item) }
    rows.splice(at, old === undefined ? 0 : 1, ...(row === undefined ? [] : [row]))
    this.#count(old, -1)
    this.#count(row, 1)
    this.#keepPartition(key.hash, partition)
    this.#previous?.set(key.id, old)
    return old
  }

  #count(row: Row | undefined, sign: 1 | -1): void {
    if (row === undefined) return
    this.#itemCount += sign
    this.#bytes += sign * row.bytes
  }

  #keepPartition(hash: string, partition: Partition): void {
    const known = this.#partitions.has(hash)
    if (known === partition.rows.length > 0) return
    this.#scanOrder = undefined
    if (known) this.#partitions.delete(hash)
    else this.#partitions.set(hash, partition)
  }

  /** All rows of a segment in the order of a scan, behind `after` where it is given (its row may be gone). */
  *scan(after: Key | undefined, segment = 0, totalSegments = 1): Generator<Row> {
    this.#scanOrder ??= [...this.#partitions.values()].sort(byScanHash)
    const afterHash = after && digest('md5', after.hash, 'hex')
    const partitions = this.#scanOrder
    const from = afterHash === undefined ? 0 : firstIndex(partitions, ({ scanHash }) => scanHash >= afterHash)
    for (let i = from; i < partitions.length; i += 1) {
      const { scanHash, rows } = partitions[i] as Partition
      if (segmentOf(scanHash, totalSegments) !== segment) continue
      const begin = after !== undefined && scanHash === afterHash ? firstAfter(rows, after.sort) : 0
      yield* rows.slice(begin)
    }
  }
}

const byScanHash = (a: Partition, b: Partition): number =>
  a.scanHash < b.scanHash ? -1 : a.scanHash > b.scanHash ? 1 : 0

const segmentOf = (scanHash: string, totalSegments: number): number =>
  Math.floor((Number.parseInt(scanHash.slice(0, 8), 16) * totalSegments) / 2 ** 32)

export function compareSort(a: AttributeValue | undefined, b: AttributeValue | undefined): number {
  return a === undefined || b === undefined ? 0 : (compareValues(a, b) ?? 0)
}

/** The index of the first element that meets a condition that holds for all behind it too. */
export function firstIndex<T>(elements: readonly T[], holds: (element: T) => boolean): number {
  let [low, high] = [0, elements.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(elements[middle] as T)) high = middle
    else low = middle + 1
  }
  return low
}

function firstAtOrAfter(rows: readonly Row[], sort: AttributeValue | undefined): number {
  return firstIndex(rows, ({ key }) => compareSort(key.sort, sort) >= 0)
}

function firstAfter(rows: readonly Row[], sort: AttributeValue | undefined): number {
  return firstIndex(rows, ({ key }) => sort !== undefined && compareSort(key.sort, sort) > 0)
}
