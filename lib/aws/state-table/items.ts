/**
 * The items of a stage's state table, as docs/state-table.md describes them, and back.
 *
 * 1. A number is N; a bigint is a number set of one element, NS, which no other value uses. So neither comes back as the other.
 * 2. An item tells its format. One of a newer format is retryable: a newer release wrote it, and an older one must not.
 * 3. An item whose full name is kept, because its key was cut, is compared with the name that was asked for.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { RetryableError } from '../../core/errors.ts'
import { dueOfSortKey, type TableKey } from '../../state/key-encoding.ts'
import type { DueEntry, EntryItem, KeyItem, StateValue, StoredProgress } from '../../state/state-store.ts'

/** An item of the table as the SDK reads and writes it. */
export type TableItem = Record<string, AttributeValue>

/** The attribute that the table's time to live is set on: seconds since 1970 UTC. */
export const ttlAttribute = 'ttl'

const format = 1

/** Where an item stands, as requests name it. */
export function keyAttributes({ pk, sk }: TableKey): TableItem {
  return { pk: { S: pk }, sk: { S: sk } }
}

function commonAttributes(key: TableKey, expiresAtSeconds?: number, own?: StateValue): TableItem {
  return {
    ...keyAttributes(key),
    format: { N: String(format) },
    ...(key.pkText === undefined ? {} : { pkText: { S: key.pkText } }),
    ...(key.skText === undefined ? {} : { skText: { S: key.skText } }),
    ...(expiresAtSeconds === undefined ? {} : { [ttlAttribute]: { N: String(expiresAtSeconds) } }),
    ...(own === undefined ? {} : { own: writeValue(own) }),
  }
}

export function writeKeyItem(key: TableKey, { position, states, expiresAtSeconds, own }: KeyItem): TableItem {
  return {
    ...commonAttributes(key, expiresAtSeconds, own),
    position: { N: String(position) },
    states: writeMap(states),
  }
}

export function readKeyItem(key: TableKey, item: TableItem): KeyItem {
  checkWritten(key, item)
  const states = item.states === undefined ? undefined : readValue(item.states)
  if (typeof states !== 'object') throw foreign(item)
  return {
    position: numberOf(item, 'position'),
    states: states as KeyItem['states'],
    expiresAtSeconds: item[ttlAttribute] === undefined ? undefined : numberOf(item, ttlAttribute),
    ...(item.own === undefined ? {} : { own: readValue(item.own) }),
  }
}

export function writeEntryItem(key: TableKey, { position, value, expiresAtSeconds, own }: EntryItem): TableItem {
  return {
    ...commonAttributes(key, expiresAtSeconds, own),
    position: { N: String(position) },
    ...(value === undefined ? {} : { value: writeValue(value) }),
  }
}

export function readEntryItem(key: TableKey, item: TableItem): EntryItem {
  checkWritten(key, item)
  return {
    position: numberOf(item, 'position'),
    value: item.value === undefined ? undefined : readValue(item.value),
    expiresAtSeconds: item[ttlAttribute] === undefined ? undefined : numberOf(item, ttlAttribute),
    ...(item.own === undefined ? {} : { own: readValue(item.own) }),
  }
}

export function writeProgressItem(key: TableKey, { version, value }: StoredProgress): TableItem {
  return { ...commonAttributes(key), version: { N: String(version) }, value: writeValue(value) }
}

export function readProgressItem(key: TableKey, item: TableItem): StoredProgress {
  checkWritten(key, item)
  if (item.value === undefined) throw foreign(item)
  return { version: numberOf(item, 'version'), value: readValue(item.value) }
}

export function writeManifestItem(key: TableKey, value: StateValue): TableItem {
  return { ...commonAttributes(key), value: writeValue(value) }
}

export function readManifestItem(key: TableKey, item: TableItem): StateValue {
  checkWritten(key, item)
  if (item.value === undefined) throw foreign(item)
  return readValue(item.value)
}

/** All that it says stands in its key. */
export function writeDueItem(key: TableKey): TableItem {
  return commonAttributes(key)
}

export function readDueItem(item: TableItem): Pick<DueEntry, 'timeMs' | 'key'> {
  checkFormat(item)
  const due = dueOfSortKey(item.skText?.S ?? item.sk?.S ?? '')
  if (due === undefined) throw foreign(item)
  return due
}

function checkFormat(item: TableItem): void {
  const found = numberOf(item, 'format')
  if (found <= format) return
  throw new RetryableError(
    `the item ${nameOf(item)} has the format ${found}, and this release of Millrace reads up to ${format}: deploy the release that wrote it, or a later one`,
    { code: 'newer-format' },
  )
}

function checkWritten({ pkText, skText }: TableKey, item: TableItem): void {
  checkFormat(item)
  if (item.pkText?.S !== pkText || item.skText?.S !== skText) {
    throw new RetryableError(
      `the item ${nameOf(item)} belongs to another key whose shortened name is the same: the table was written by something else than Millrace`,
      { code: 'foreign-item' },
    )
  }
}

function numberOf(item: TableItem, name: string): number {
  const text = item[name]?.N
  if (text === undefined) throw foreign(item)
  return Number(text)
}

const nameOf = ({ pk, sk }: TableItem): string => JSON.stringify([pk?.S?.slice(0, 100), sk?.S?.slice(0, 100)])

function foreign(item: TableItem): RetryableError {
  return new RetryableError(
    `the item ${nameOf(item)} was not written by Millrace: give the stage a table of its own, and let nothing else write to it`,
    { code: 'foreign-item' },
  )
}

function writeValue(value: StateValue): AttributeValue {
  switch (typeof value) {
    case 'string':
      return { S: value }
    case 'number':
      return { N: String(value) }
    case 'bigint':
      return { NS: [value.toString()] }
    case 'boolean':
      return { BOOL: value }
    default:
      if (value === null) return { NULL: true }
      if (value instanceof Uint8Array) return { B: value }
      return Array.isArray(value) ? { L: value.map(writeValue) } : writeMap(value as KeyItem['states'])
  }
}

function writeMap(map: { readonly [name: string]: StateValue }): AttributeValue {
  const attributes: TableItem = {}
  for (const name in map) attributes[name] = writeValue(map[name] as StateValue)
  return { M: attributes }
}

function readValue(value: AttributeValue): StateValue {
  if (value.S !== undefined) return value.S
  if (value.N !== undefined) return Number(value.N)
  if (value.NS?.[0] !== undefined) return integerOf(value.NS[0])
  if (value.BOOL !== undefined) return value.BOOL
  if (value.NULL !== undefined) return null
  if (value.B !== undefined) return new Uint8Array(value.B)
  if (value.L !== undefined) return value.L.map(readValue)
  if (value.M !== undefined) return readMap(value.M)
  throw new RetryableError(
    `an attribute of the type ${Object.keys(value)[0]} was not written by Millrace: let nothing else write to the table`,
    { code: 'foreign-item' },
  )
}

/** The table keeps no order of names, so they come in theirs, as `checkValue` leaves them. */
function readMap(attributes: TableItem): StateValue {
  const map: { [name: string]: StateValue } = {}
  for (const name of Object.keys(attributes).sort()) map[name] = readValue(attributes[name] as AttributeValue)
  return map
}

/** DynamoDB may answer a large round number in exponent notation. */
function integerOf(text: string): bigint {
  const [digits = '', exponent = '0'] = text.toLowerCase().split('e')
  return BigInt(digits) * 10n ** BigInt(exponent.replace('+', ''))
}
