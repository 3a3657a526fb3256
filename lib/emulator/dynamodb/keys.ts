/** Key attributes: which an item or a request has, and what DynamoDB takes for one. */
import { invalid, invalidParameter } from './errors.ts'
import type { KeyTypes } from './expressions/key-condition.ts'
import type { AttributeValue, Item } from './shapes.ts'
import type { Key, Table } from './table.ts'
import { emptyRecord, parseValue, typeOf, valueBytes } from './value.ts'

const LARGEST_HASH_BYTES = 2_048
const LARGEST_RANGE_BYTES = 1_024

export function keyNames({ hash, range }: KeyTypes): string[] {
  return range === undefined ? [hash.name] : [hash.name, range.name]
}

/** The key of a whole item that was parsed. */
export function keyOfItem(table: Table, item: Item): Key {
  const { hash, range } = table.keys
  for (const part of range === undefined ? [hash] : [hash, range]) {
    const value = Object.hasOwn(item, part.name) ? item[part.name] : undefined
    if (value === undefined) throw invalidParameter(`Missing the key ${part.name} in the item`)
    if (value[part.type] === undefined) {
      throw invalidParameter(`Type mismatch for key ${part.name} expected: ${part.type} actual: ${typeOf(value)}`)
    }
  }
  return makeKey(table.keys, item)
}

/** The key that a request names: exactly the key attributes. */
export function keyOfRequest(table: Table, input: Item): Key {
  const names = keyNames(table.keys)
  const given = Object.keys(input).filter((name) => input[name] !== undefined)
  const { hash, range } = table.keys
  const matches = (part: { name: string; type: 'S' | 'N' | 'B' } | undefined) =>
    part === undefined || (Object.hasOwn(input, part.name) && input[part.name]?.[part.type] !== undefined)
  if (given.length !== names.length || !matches(hash) || !matches(range)) {
    throw invalid('The provided key element does not match the schema')
  }
  const attributes = emptyRecord<AttributeValue>()
  for (const name of names) attributes[name] = parseValue(input[name] as AttributeValue)
  return makeKey(table.keys, attributes)
}

function makeKey({ hash, range }: KeyTypes, item: Item): Key {
  const attributes = emptyRecord<AttributeValue>()
  const hashValue = item[hash.name] as AttributeValue
  attributes[hash.name] = hashValue
  checkKey(hash.name, hashValue, LARGEST_HASH_BYTES, 'Size of hashkey has exceeded the maximum size limit of2048 bytes')
  const hashText = keyText(hashValue)
  if (range === undefined) return { hash: hashText, sort: undefined, attributes, id: hashText }
  const sort = item[range.name] as AttributeValue
  attributes[range.name] = sort
  checkKey(
    range.name,
    sort,
    LARGEST_RANGE_BYTES,
    'Aggregated size of all range keys has exceeded the size limit of 1024 bytes',
  )
  // The length keeps ('a', 'bc') and ('ab', 'c') apart.
  return { hash: hashText, sort, attributes, id: `${hashText.length}:${hashText}${keyText(sort)}` }
}

function checkKey(name: string, value: AttributeValue, largestBytes: number, tooLarge: string): void {
  if (value.N !== undefined) return
  const bytes = valueBytes(value)
  if (bytes === 0) {
    throw invalid(
      `One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty ${value.S === undefined ? 'binary' : 'string'} value. Key: ${name}`,
    )
  }
  if (bytes > largestBytes) throw invalidParameter(tooLarge)
}

/** Text that is equal for equal values of one type. */
export function keyText(value: AttributeValue): string {
  return value.S ?? value.N ?? Buffer.from(value.B ?? []).toString('latin1')
}
