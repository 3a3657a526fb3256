/** What the tables of a run hold, looked at while it goes on. */
import { type AttributeValue, type DynamoDBClient, paginateScan } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../lib/core/clock.ts'
import { describeError } from '../../lib/core/errors.ts'
import type { SinkTables, TableKeys } from '../../lib/local/run/tables.ts'
import type { KeyType } from '../../lib/plan/stage-bindings.ts'
import { usage } from './arguments.ts'

/** A table as the display shows it. */
export interface TableView {
  readonly rows: number
  /** False where the table has more than is looked at. */
  readonly isAll: boolean
  /** A few rows as JSON, of those that are new or have changed. */
  readonly some: readonly string[]
}

export interface DevTablesOptions {
  readonly client: DynamoDBClient
  readonly clock: Clock
  /** Hears of what has changed since the look before; of the first look it does not. */
  readonly onChange: (sink: string, view: TableView) => void
}

const lookEveryMs = 1_000
/** A look takes at most this part of the time. */
const pauseFactor = 10
/** Of at most 1 MB each. */
const mostPages = 10
const fewRows = 3
/** Attributes of our own, which keep positions. */
const ownPrefix = 'millrace#'

/** Looks at each table about once a second. */
export class DevTables {
  readonly #options: DevTablesOptions
  readonly #views = new Map<string, TableView>()
  /** The rows of the last look, by key. */
  readonly #rows = new Map<string, ReadonlyMap<string, string>>()
  readonly #tables: SinkTables
  #nextAtMs = 0
  #problem: string | undefined

  constructor(tables: SinkTables, options: DevTablesOptions) {
    this.#tables = tables
    this.#options = options
  }

  get views(): ReadonlyMap<string, TableView> {
    return this.#views
  }

  /** Why the tables could not be looked at the last time, in a line. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Looks where it is time to, or `now`. Does not reject: the next look may succeed. */
  async look(when: 'due' | 'now' = 'due'): Promise<void> {
    const { clock } = this.#options
    const startedAtMs = clock.nowMs()
    if (when === 'due' && startedAtMs < this.#nextAtMs) return
    this.#problem = undefined
    for (const [sink, keys] of Object.entries(this.#tables)) {
      try {
        await this.#lookAt(sink, keys)
      } catch (error) {
        const { name, message } = describeError(error)
        this.#problem = `table ${sink} cannot be read: ${name}: ${message.split('\n')[0]}`
      }
    }
    const endedAtMs = clock.nowMs()
    this.#nextAtMs = endedAtMs + Math.max(lookEveryMs, pauseFactor * (endedAtMs - startedAtMs))
  }

  async #lookAt(sink: string, keys: TableKeys): Promise<void> {
    const { client, onChange } = this.#options
    const rows = new Map<string, string>()
    let [pages, isAll] = [0, true]
    for await (const { Items = [], LastEvaluatedKey } of paginateScan(
      { client },
      { TableName: sink, ConsistentRead: true },
    )) {
      for (const item of Items) rows.set(keyText(item, keys), rowText(item))
      isAll = LastEvaluatedKey === undefined
      if (++pages === mostPages) break
    }
    const before = this.#rows.get(sink)
    const changed = [...rows].flatMap(([key, text]) => (before?.get(key) === text ? [] : [text]))
    this.#rows.set(sink, rows)
    if (before !== undefined && changed.length === 0 && before.size === rows.size) return
    const view = { rows: rows.size, isAll, some: changed.slice(-fewRows) }
    this.#views.set(sink, view)
    if (before !== undefined) onChange(sink, view)
  }
}

type Row = Readonly<Record<string, AttributeValue>>

const keyText = (row: Row, { partitionKey, sortKey }: TableKeys): string =>
  JSON.stringify([partitionKey, ...(sortKey === undefined ? [] : [sortKey])].map((name) => plain(row[name])))

const rowText = (row: Row): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(row).flatMap(([name, value]) => (name.startsWith(ownPrefix) ? [] : [[name, plain(value)]])),
    ),
  )

/** An attribute as JSON has it; a number that JavaScript cannot hold, and bytes, are text. */
function plain(value: AttributeValue | undefined): unknown {
  if (value === undefined || value.NULL) return null
  if (value.M) return Object.fromEntries(Object.entries(value.M).map(([name, inner]) => [name, plain(inner)]))
  if (value.L) return value.L.map(plain)
  if (value.N !== undefined) return plainNumber(value.N)
  if (value.NS) return value.NS.map(plainNumber)
  if (value.B) return base64(value.B)
  if (value.BS) return value.BS.map(base64)
  return value.S ?? value.BOOL ?? value.SS
}

const plainNumber = (text: string): number | string => (String(Number(text)) === text ? Number(text) : text)
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

/**
 * What `--table` says, such as `totals=customer,windowStartMs:N`. Throws a ConfigurationError (code `usage`) for what cannot be read
 * and for what is no sink.
 */
export function tablesIn(typed: readonly string[], sinks: readonly string[]): SinkTables {
  const tables: Record<string, TableKeys> = {}
  for (const text of typed) {
    const [, sink, partition = '', sort] = /^([^=]+)=([^,]+)(?:,([^,]+))?$/.exec(text) ?? []
    if (sink === undefined) throw usage(`--table ${text} is not SINK=PARTITIONKEY[,SORTKEY].`)
    if (!sinks.includes(sink)) {
      throw usage(`--table ${text}: ${sink} is no sink of the topology: it has ${sinks.join(', ') || 'none'}.`)
    }
    if (Object.hasOwn(tables, sink)) throw usage(`--table is given twice for ${sink}.`)
    const [partitionKey, partitionKeyType] = attributeIn(partition)
    const [sortKey, sortKeyType] = attributeIn(sort ?? '')
    tables[sink] = {
      partitionKey,
      ...(partitionKeyType && { partitionKeyType }),
      ...(sortKey === '' ? {} : { sortKey, ...(sortKeyType && { sortKeyType }) }),
    }
  }
  return tables
}

function attributeIn(text: string): readonly [string, KeyType | undefined] {
  const [, name, type] = /^(.+):([SNB])$/.exec(text) ?? []
  return name === undefined ? [text, undefined] : [name, type as KeyType]
}
