/**
 * From JavaScript values to DynamoDB attribute values, exactly: what would come back as something else is refused.
 *
 * Numbers that are finite, BigInt up to 38 digits, text, booleans, null, Uint8Array, lists and plain objects are taken.
 * A property that is undefined is left out, as JSON does.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { TerminalError } from '../../core/errors.ts'

/** DynamoDB takes 31 lists and maps around a value, as measured on AWS; it also ends a cycle. */
const deepest = 31
const mostDigits = 38
const smallestMagnitude = 1e-130
const largestMagnitude = 9.99e125

function refuse(path: string, what: string): never {
  throw new TerminalError(`the attribute ${path} ${what}, which DynamoDB cannot hold exactly`, {
    code: 'unsupported-value',
  })
}

function numberText(value: number, path: string): string {
  if (!Number.isFinite(value)) refuse(path, `is ${value}`)
  const magnitude = Math.abs(value)
  if (magnitude !== 0 && (magnitude < smallestMagnitude || magnitude > largestMagnitude)) refuse(path, `is ${value}`)
  return String(value)
}

function bigIntText(value: bigint, path: string): string {
  const text = value.toString()
  const digits = text.replace('-', '').replace(/0+$/, '').length
  if (digits > mostDigits || text.length > 125) refuse(path, `is an integer of ${digits} digits`)
  return text
}

function wellFormed(text: string, path: string): string {
  if (!text.isWellFormed()) refuse(path, 'holds half a surrogate pair')
  return text
}

/** True for object literals, JSON and objects without a prototype; false for Date, Map and instances of classes. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function objectValue(value: object, path: string, depth: number): AttributeValue {
  if (value instanceof Uint8Array) return { B: value }
  if (depth >= deepest) refuse(path, `is nested more than ${deepest} levels deep or contains itself`)
  if (Array.isArray(value)) {
    return { L: Array.from(value, (element, index) => attributeValue(element, `${path}[${index}]`, depth + 1)) }
  }
  if (!isPlainObject(value)) refuse(path, `is an instance of ${value.constructor?.name ?? 'a class'}`)
  const entries = Object.entries(value).filter(([, property]) => property !== undefined)
  return {
    M: Object.fromEntries(
      entries.map(([name, property]) => [
        checkAttributeName(name, path),
        attributeValue(property, `${path}.${name}`, depth + 1),
      ]),
    ),
  }
}

/** Refuses names that DynamoDB does not take or that an object of the SDK could not carry. */
export function checkAttributeName(name: string, path: string): string {
  if (name === '' || name === '__proto__') refuse(path, `has an attribute named ${JSON.stringify(name)}`)
  return wellFormed(name, path)
}

/**
 * The value as DynamoDB holds it. Throws a {@link TerminalError} (code `unsupported-value`) that names the path of
 * whatever could not be read back unchanged.
 *
 * @example
 * attributeValue({ seats: 2n }, 'booking') // { M: { seats: { N: '2' } } }
 */
export function attributeValue(value: unknown, path: string, depth = 0): AttributeValue {
  switch (typeof value) {
    case 'string':
      return { S: wellFormed(value, path) }
    case 'number':
      return { N: numberText(value, path) }
    case 'bigint':
      return { N: bigIntText(value, path) }
    case 'boolean':
      return { BOOL: value }
    case 'object':
      return value === null ? { NULL: true } : objectValue(value, path, depth)
    default:
      return refuse(path, `is ${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`}`)
  }
}

/** An upper estimate of what DynamoDB counts for the value, in bytes. */
export function attributeBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.N !== undefined) return Math.min(21, Math.ceil(value.N.length / 2) + 2)
  if (value.B !== undefined) return value.B.byteLength
  if (value.L !== undefined) return value.L.reduce((sum, element) => sum + 1 + attributeBytes(element), 3)
  if (value.M !== undefined) {
    return Object.entries(value.M).reduce(
      (sum, [name, element]) => sum + 1 + Buffer.byteLength(name) + attributeBytes(element),
      3,
    )
  }
  return 1
}
