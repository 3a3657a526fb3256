/**
 * Changes of a DynamoDB table as values.
 *
 * 1. The format reads what DynamoDB Streams delivers and what a table writes to a Kinesis stream, so a source is declared once
 *    and bound to either.
 * 2. A number comes as a number where that is exact, else, where it is whole, as a bigint; a set comes as a Set. What no
 *    value could hold makes the record a dead letter.
 */
import { TerminalError } from './errors.ts'
import { exactNumber } from './exact-number.ts'
import { type Format, json } from './format.ts'

/** One attribute with its type wrapper, as DynamoDB writes it in JSON; binary is base64 text. */
type TypedAttribute = Readonly<Record<string, unknown>>
type TypedAttributes = Readonly<Record<string, TypedAttribute>>

/** What all changes of an item have. */
interface ChangeOf<Key> {
  /** The item's key attributes. */
  readonly key: Key
  /** When DynamoDB took the change in, in ms since 1970 UTC: whole seconds in DynamoDB Streams. */
  readonly changedAtMs: number
  /** The id that DynamoDB gave the change (`eventID`), where the record has one. */
  readonly id?: string
}

/** One change of a table whose stream has both images of an item. */
export type TableChange<Item, Key = Partial<Item>> = ChangeOf<Key> &
  (
    | { readonly type: 'insert'; readonly before?: undefined; readonly after: Item }
    | { readonly type: 'modify'; readonly before: Item; readonly after: Item }
    | {
        readonly type: 'remove'
        readonly before: Item
        readonly after?: undefined
        /** True where the table's TTL removed the item. */
        readonly expired: boolean
      }
  )

/** One change of a table whose stream has not both images. */
export type PartialTableChange<Item, Key = Partial<Item>> = ChangeOf<Key> & {
  readonly type: 'insert' | 'modify' | 'remove'
  readonly before?: Item
  readonly after?: Item
  /** True where the table's TTL removed the item. */
  readonly expired?: boolean
}

/** The part of a stream record that a change is made of. */
export interface ChangeRecord {
  readonly eventID?: string
  readonly eventName: 'INSERT' | 'MODIFY' | 'REMOVE'
  readonly userIdentity?: { readonly type?: string; readonly principalId?: string } | null
  readonly dynamodb: {
    /** Seconds in DynamoDB Streams; milliseconds or microseconds on a Kinesis stream. */
    readonly ApproximateCreationDateTime: number
    readonly Keys: TypedAttributes
    readonly NewImage?: TypedAttributes
    readonly OldImage?: TypedAttributes
  }
}

const types = { INSERT: 'insert', MODIFY: 'modify', REMOVE: 'remove' } as const
const names = { insert: 'INSERT', modify: 'MODIFY', remove: 'REMOVE' } as const
/** What DynamoDB calls itself where TTL removed an item. */
const expiry = { type: 'Service', principalId: 'dynamodb.amazonaws.com' } as const

function refuse(what: string, code: string): never {
  throw new TerminalError(`the change of the table ${what}`, { code })
}

/**
 * The format of a source that reads the changes of a DynamoDB table, from its stream or from the Kinesis stream that it writes to.
 * Both images must be there, as the stream view type NEW_AND_OLD_IMAGES has them; with `images: 'some'` they need not.
 *
 * Dead letters by code: `not-a-change`, `image-missing`, `unsupported-value`, and those of {@link json}.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Record.html
 * @example
 * const changes = app.source('order-changes', tableChanges<Order, { orderId: string }>())
 * changes.filter((change) => change.type === 'insert').map(({ after }) => after).to(newOrders)
 */
export function tableChanges<Item, Key = Partial<Item>>(): Format<TableChange<Item, Key>>
export function tableChanges<Item, Key = Partial<Item>>(options: {
  readonly images: 'some'
}): Format<PartialTableChange<Item, Key>>
export function tableChanges(options: { readonly images?: 'both' | 'some' } = {}): Format<PartialTableChange<unknown>> {
  const text = json()
  const read = (parsed: unknown) => changeOf(parsed, options.images !== 'some')
  return {
    name: 'table-changes',
    decode: (bytes) => read(text.decode(bytes)),
    decodeBase64: (base64) => read(text.decodeBase64?.(base64)),
    encode: (change) => Buffer.from(JSON.stringify(changeRecord(change))),
  }
}

function changeOf(parsed: unknown, needsImages: boolean): PartialTableChange<unknown> {
  const { eventID, eventName, userIdentity, dynamodb } = Object(parsed) as Partial<ChangeRecord>
  const type = eventName && Object.hasOwn(types, eventName) ? types[eventName] : undefined
  if (type === undefined || typeof dynamodb?.Keys !== 'object' || dynamodb.Keys === null) {
    refuse('has no eventName of INSERT, MODIFY or REMOVE, or no key: this is no record of DynamoDB', 'not-a-change')
  }
  const { NewImage, OldImage, Keys } = dynamodb
  if (needsImages && ((type !== 'insert' && !OldImage) || (type !== 'remove' && !NewImage))) {
    refuse(
      `is a ${eventName} without ${NewImage ? 'its old' : 'its new'} image: give the stream the view type NEW_AND_OLD_IMAGES, or declare tableChanges({ images: 'some' })`,
      'image-missing',
    )
  }
  return {
    type,
    key: itemOf(Keys),
    changedAtMs: changedAtMs(dynamodb.ApproximateCreationDateTime),
    ...(eventID === undefined ? {} : { id: eventID }),
    ...(OldImage ? { before: itemOf(OldImage) } : {}),
    ...(NewImage ? { after: itemOf(NewImage) } : {}),
    ...(type === 'remove' ? { expired: userIdentity?.principalId === expiry.principalId } : {}),
  }
}

/** Seconds, milliseconds and microseconds since 1970 differ by so much that their size tells them apart for centuries. */
function changedAtMs(time: unknown): number {
  if (typeof time !== 'number' || !Number.isFinite(time)) refuse('says no time at which it was made', 'not-a-change')
  if (time < 1e11) return Math.round(time * 1_000)
  return time < 1e14 ? time : Math.floor(time / 1_000)
}

const itemOf = (attributes: TypedAttributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).map(([name, attribute]) => [name, plainOf(attribute, name)]))

function plainOf(attribute: TypedAttribute, path: string): unknown {
  const [type, value] = Object.entries(Object(attribute) as TypedAttribute)[0] ?? []
  switch (type) {
    case 'S':
    case 'BOOL':
      return value
    case 'NULL':
      return null
    case 'N':
      return numberOf(value, path)
    case 'B':
      return bytesOf(value)
    case 'L':
      return (value as TypedAttribute[]).map((element, index) => plainOf(element, `${path}[${index}]`))
    case 'M':
      return itemOf(value as TypedAttributes)
    case 'SS':
      return new Set(value as string[])
    case 'NS':
      return new Set((value as string[]).map((number) => numberOf(number, path)))
    case 'BS':
      return new Set((value as string[]).map(bytesOf))
    default:
      return refuse(`has the attribute "${path}" of the type ${type}, which is none of DynamoDB`, 'not-a-change')
  }
}

function numberOf(text: unknown, path: string): number | bigint {
  const number = exactNumber(String(text))
  if (number !== undefined) return number
  return refuse(`has a number in "${path}" with more digits than a JavaScript number`, 'unsupported-value')
}

/** Copied, so that it is no view of a pool that others write to. */
const bytesOf = (base64: unknown): Uint8Array => new Uint8Array(Buffer.from(String(base64), 'base64'))

/** A change as a stream of DynamoDB holds it, for tests. Throws a {@link TerminalError} for what no attribute can hold. */
export function changeRecord({
  type,
  key,
  before,
  after,
  changedAtMs: atMs,
  id,
  ...rest
}: PartialTableChange<unknown, unknown>): ChangeRecord {
  return {
    ...(id === undefined ? {} : { eventID: id }),
    eventName: names[type],
    ...(rest.expired ? { userIdentity: expiry } : {}),
    dynamodb: {
      ApproximateCreationDateTime: atMs / 1_000,
      Keys: typedItem(key),
      ...(after === undefined ? {} : { NewImage: typedItem(after) }),
      ...(before === undefined ? {} : { OldImage: typedItem(before) }),
    },
  }
}

const typedItem = (item: unknown): TypedAttributes =>
  Object.fromEntries(
    Object.entries(Object(item) as object)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typedOf(value, name)]),
  )

const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

function typedOf(value: unknown, path: string): TypedAttribute {
  if (value === null) return { NULL: true }
  if (typeof value === 'string') return { S: value }
  if (typeof value === 'boolean') return { BOOL: value }
  if (typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))) return { N: String(value) }
  if (value instanceof Uint8Array) return { B: base64Of(value) }
  if (value instanceof Set) return typedSet([...value], path)
  if (Array.isArray(value)) return { L: value.map((element, index) => typedOf(element, `${path}[${index}]`)) }
  if (typeof value === 'object') return { M: typedItem(value) }
  return refuse(`has the attribute "${path}" of the type ${typeof value}, which DynamoDB cannot hold`, 'not-a-change')
}

function typedSet(elements: readonly unknown[], path: string): TypedAttribute {
  const [first] = elements
  if (typeof first === 'string') return { SS: elements }
  if (first instanceof Uint8Array) return { BS: elements.map((element) => base64Of(element as Uint8Array)) }
  if (typeof first === 'number' || typeof first === 'bigint') return { NS: elements.map(String) }
  return refuse(`has an empty or a mixed set in "${path}", which DynamoDB cannot hold`, 'not-a-change')
}
