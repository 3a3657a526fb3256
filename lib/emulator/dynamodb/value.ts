/**
 * Attribute values as the SDK writes them, each of exactly one type.
 *
 * 1. `parseValue` checks and copies what comes in and makes numbers canonical; a value inside the model is never changed, and is
 *    copied on its way out (`copyItem`), so that nobody outside shares bytes or objects with a table.
 * 2. Objects have no prototype: an attribute may be named `constructor` or `__proto__`.
 */
import { invalid, invalidParameter } from './errors.ts'
import { canonicalNumber, compareNumbers, numberBytes } from './number.ts'
import type { AttributeValue, Item } from './shapes.ts'

export type TypeName = 'S' | 'N' | 'B' | 'BOOL' | 'NULL' | 'SS' | 'NS' | 'BS' | 'L' | 'M'
const typeNames: ReadonlySet<string> = new Set(['S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'])

/** DynamoDB's own limit of nesting, the innermost scalar counted: 31 lists or maps around it. */
const DEEPEST = 32
export const LARGEST_ITEM_BYTES = 400 * 1_024

export const emptyRecord = <T>(): Record<string, T> => Object.create(null)

export function isTypeName(name: string): name is TypeName {
  return typeNames.has(name)
}

/** The type of a value that was parsed. */
export function typeOf(value: AttributeValue): TypeName {
  for (const name in value) return name as TypeName
  throw invalid('Supplied AttributeValue is empty, must contain exactly one of the supported datatypes')
}

export function parseItem(input: Item, depth = 0): Record<string, AttributeValue> {
  const item = emptyRecord<AttributeValue>()
  for (const name of Object.keys(input)) {
    if (depth === 0 && name === '') throw invalidParameter('An attribute has an empty name')
    const value = input[name]
    if (value !== undefined) item[wellFormed(name)] = parseValue(value, depth)
  }
  return item
}

/** Checks and copies a value. Throws ValidationException. */
export function parseValue(input: AttributeValue, depth = 0): AttributeValue {
  const [type, ...others] = Object.keys(input).filter((name) => input[name as TypeName] !== undefined)
  if (type === undefined || !isTypeName(type)) {
    throw invalid('Supplied AttributeValue is empty, must contain exactly one of the supported datatypes')
  }
  if (others.length > 0) {
    throw invalid(
      'Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes',
    )
  }
  if (depth >= DEEPEST - 1 && (type === 'L' || type === 'M')) {
    throw invalid(`Nesting Levels have exceeded supported limits: more than ${DEEPEST} levels`)
  }
  if (input.S !== undefined) return { S: wellFormed(input.S) }
  if (input.N !== undefined) return { N: canonicalNumber(input.N) }
  if (input.B !== undefined) return { B: Uint8Array.from(input.B) }
  if (input.BOOL !== undefined) return { BOOL: input.BOOL }
  if (input.NULL !== undefined) return parseNull(input.NULL)
  if (input.L !== undefined) return { L: input.L.map((element) => parseValue(element, depth + 1)) }
  if (input.M !== undefined) return { M: parseItem(input.M, depth + 1) }
  return parseSet(input)
}

/** Half a surrogate pair has no UTF-8, so it could not come back. */
function wellFormed(text: string): string {
  if (text.isWellFormed()) return text
  throw invalidParameter('A string or an attribute name is not valid Unicode: it holds half a surrogate pair')
}

function parseNull(flag: boolean): AttributeValue {
  if (flag) return { NULL: true }
  throw invalidParameter('Null attribute value types must have the value of true')
}

function parseSet(input: AttributeValue): AttributeValue {
  const [type, elements]: ['SS' | 'NS' | 'BS', readonly (string | Uint8Array)[]] =
    input.SS !== undefined
      ? ['SS', input.SS.map(wellFormed)]
      : input.NS !== undefined
        ? ['NS', input.NS.map(canonicalNumber)]
        : ['BS', (input.BS ?? []).map((bytes) => Uint8Array.from(bytes))]
  if (elements.length === 0) throw invalidParameter('An string set  may not be empty'.replace('string', setNoun[type]))
  if (new Set(elements.map(elementKey)).size < elements.length) {
    throw invalidParameter('Input collection contains duplicates.')
  }
  return { [type]: elements }
}

const setNoun = { SS: 'string', NS: 'number', BS: 'binary' }

/** Text that is equal for equal elements of a set. */
export function elementKey(element: string | Uint8Array): string {
  return typeof element === 'string' ? element : Buffer.from(element).toString('latin1')
}

/** The elements of a set, whatever they are; undefined for a value that is no set. */
export function setElements(value: AttributeValue): readonly (string | Uint8Array)[] | undefined {
  return value.SS ?? value.NS ?? value.BS
}

export function copyItem(item: Item): Record<string, AttributeValue> {
  const copy = emptyRecord<AttributeValue>()
  for (const name in item) copy[name] = copyValue(item[name] as AttributeValue)
  return copy
}

export function copyValue(value: AttributeValue): AttributeValue {
  if (value.B !== undefined) return { B: Uint8Array.from(value.B) }
  if (value.M !== undefined) return { M: copyItem(value.M) }
  if (value.L !== undefined) return { L: value.L.map(copyValue) }
  if (value.SS !== undefined) return { SS: [...value.SS] }
  if (value.NS !== undefined) return { NS: [...value.NS] }
  if (value.BS !== undefined) return { BS: value.BS.map((bytes) => Uint8Array.from(bytes)) }
  return { ...value }
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0
}

/** Whether two parsed values are the same; the order of a set does not count. */
export function equalValues(a: AttributeValue, b: AttributeValue): boolean {
  const type = typeOf(a)
  if (type !== typeOf(b)) return false
  if (a.B !== undefined && b.B !== undefined) return equalBytes(a.B, b.B)
  if (a.M !== undefined && b.M !== undefined) return equalItems(a.M, b.M)
  if (a.L !== undefined && b.L !== undefined) {
    const other = b.L
    return a.L.length === other.length && a.L.every((element, i) => equalValues(element, other[i] as AttributeValue))
  }
  const elements = setElements(a)
  if (elements === undefined) return a[type] === b[type]
  const others = new Set(setElements(b)?.map(elementKey))
  return elements.length === others.size && elements.every((element) => others.has(elementKey(element)))
}

export function equalItems(a: Item, b: Item): boolean {
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => {
    const other = Object.hasOwn(b, name) ? b[name] : undefined
    return other !== undefined && equalValues(a[name] as AttributeValue, other)
  })
}

/** Orders two values of one of the types that have an order: text by its UTF-8 bytes, numbers, bytes. Undefined for any others. */
export function compareValues(a: AttributeValue, b: AttributeValue): number | undefined {
  if (a.N !== undefined && b.N !== undefined) return compareNumbers(a.N, b.N)
  if (a.S !== undefined && b.S !== undefined) return compareText(a.S, b.S)
  if (a.B !== undefined && b.B !== undefined) return Buffer.compare(a.B, b.B)
  return undefined
}

/** Orders text by code points, which is the order of its UTF-8 bytes; JavaScript's own order is that of UTF-16. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i += 1) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above all other code units. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

/**
 * The size that DynamoDB counts, in bytes: names and text in UTF-8, a null or boolean 1, a list or map 3 and 1 more per element.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
export function itemBytes(item: Item): number {
  let bytes = 0
  for (const name in item) bytes += Buffer.byteLength(name) + valueBytes(item[name] as AttributeValue)
  return bytes
}

export function valueBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.N !== undefined) return numberBytes(value.N)
  if (value.B !== undefined) return value.B.length
  if (value.L !== undefined) return value.L.reduce((sum, element) => sum + 1 + valueBytes(element), 3)
  if (value.M !== undefined) return 3 + Object.keys(value.M).length + itemBytes(value.M)
  if (value.SS !== undefined) return value.SS.reduce((sum, element) => sum + Buffer.byteLength(element), 0)
  if (value.NS !== undefined) return value.NS.reduce((sum, element) => sum + numberBytes(element), 0)
  if (value.BS !== undefined) return value.BS.reduce((sum, element) => sum + element.length, 0)
  return 1
}
