/**
 * Every change of the model as data. An operation checks its request, then commits one effect; applying the same effects in the
 * same order to an empty model gives the same tables, streams and sequence numbers, which is how a journal restores them.
 *
 * Effects carry their time, because a restored model must not ask the clock when something happened.
 */
import { invariant } from '../../core/errors.ts'
import { keyOfItem, keyOfRequest } from './keys.ts'
import type { Item, StreamView } from './shapes.ts'
import { TableStream } from './stream.ts'
import { Table, type TableDefinition } from './table.ts'
import { equalItems } from './value.ts'

/** An item put in its place, or the key of one that is gone. */
export type ItemWrite =
  | { readonly table: string; readonly item: Item }
  | { readonly table: string; readonly deleted: Item }

/** A transaction's token and what tells its request from another. */
export interface UsedToken {
  readonly token: string
  readonly fingerprint: string
}

export type DynamoEffect =
  | {
      readonly type: 'table-created'
      readonly table: string
      readonly atMs: number
      readonly definition: TableDefinition
    }
  | { readonly type: 'table-deleted'; readonly table: string; readonly atMs: number }
  | { readonly type: 'ttl-set'; readonly table: string; readonly attribute: string | null }
  | {
      readonly type: 'items-written'
      readonly atMs: number
      readonly writes: readonly ItemWrite[]
      readonly by: 'request' | 'ttl'
      readonly token?: UsedToken
    }

/** What the effects change. */
export interface Contents {
  readonly region: string
  readonly accountId: string
  readonly keepPrevious: boolean
  readonly tables: Map<string, Table>
  readonly streams: Map<string, TableStream>
  /** In the order of their times. */
  readonly tokens: Map<string, { readonly fingerprint: string; readonly atMs: number }>
}

export const TOKEN_LIFE_MS = 600_000

export function applyEffect(contents: Contents, effect: DynamoEffect): void {
  switch (effect.type) {
    case 'table-created':
      createTable(contents, effect.table, effect.atMs, effect.definition)
      return
    case 'table-deleted': {
      const { stream } = tableOf(contents, effect.table)
      if (stream !== undefined) stream.closedAtMs = effect.atMs
      contents.tables.delete(effect.table)
      return
    }
    case 'ttl-set':
      tableOf(contents, effect.table).ttlAttribute = effect.attribute ?? undefined
      return
    case 'items-written':
      for (const write of effect.writes) writeItem(contents, write, effect.atMs, effect.by === 'ttl')
      if (effect.token !== undefined) keepToken(contents, effect.token, effect.atMs)
      return
    default:
      invariant(false, `an effect has the unknown type ${(effect satisfies never as DynamoEffect).type}`)
  }
}

function tableOf(contents: Contents, name: string): Table {
  const table = contents.tables.get(name)
  invariant(table, `an effect names the table ${name}, which does not exist`)
  return table
}

function createTable(contents: Contents, name: string, atMs: number, definition: TableDefinition): void {
  for (const [arn, stream] of contents.streams) if (stream.isGone(atMs)) contents.streams.delete(arn)
  const stream =
    definition.streamView === null ? undefined : newStream(contents, name, atMs, definition, definition.streamView)
  if (stream !== undefined) contents.streams.set(stream.arn, stream)
  const typeOfKey = (keyType: 'HASH' | 'RANGE') => {
    const keyName = definition.keySchema.find(({ KeyType }) => KeyType === keyType)?.AttributeName
    const attribute = definition.attributes.find(({ AttributeName }) => AttributeName === keyName)
    return attribute && { name: attribute.AttributeName, type: attribute.AttributeType }
  }
  const [hash, range] = [typeOfKey('HASH'), typeOfKey('RANGE')]
  invariant(hash, `table ${name} was created without a partition key`)
  const keepPrevious = contents.keepPrevious
  contents.tables.set(
    name,
    new Table({ name, createdAtMs: atMs, definition, keys: { hash, range }, stream, keepPrevious }),
  )
}

function newStream(
  contents: Contents,
  table: string,
  atMs: number,
  definition: TableDefinition,
  view: StreamView,
): TableStream {
  // A table that is made again in the same millisecond has another stream.
  for (let createdAtMs = atMs; ; createdAtMs += 1) {
    const label = new Date(createdAtMs).toISOString().slice(0, -1)
    const arn = `${tableArn(contents, table)}/stream/${label}`
    if (!contents.streams.has(arn)) {
      return new TableStream({ arn, label, table, view, keySchema: definition.keySchema, createdAtMs })
    }
  }
}

export function tableArn(place: Pick<Contents, 'region' | 'accountId'>, table: string): string {
  return `arn:aws:dynamodb:${place.region}:${place.accountId}:table/${table}`
}

function writeItem(contents: Contents, write: ItemWrite, atMs: number, expired: boolean): void {
  const table = tableOf(contents, write.table)
  const after = 'item' in write ? write.item : undefined
  const key = 'item' in write ? keyOfItem(table, write.item) : keyOfRequest(table, write.deleted)
  const before = table.write(key, after)?.item
  if (table.stream === undefined || isSame(before, after)) return
  table.stream.append({ atMs, keys: key.attributes, before, after, expired })
}

/** A write that changes nothing leaves no record in the stream. */
function isSame(before: Item | undefined, after: Item | undefined): boolean {
  return before === undefined || after === undefined ? before === after : equalItems(before, after)
}

function keepToken(contents: Contents, { token, fingerprint }: UsedToken, atMs: number): void {
  for (const [old, use] of contents.tokens) {
    if (use.atMs > atMs - TOKEN_LIFE_MS) break
    contents.tokens.delete(old)
  }
  contents.tokens.set(token, { fingerprint, atMs })
}
