/**
 * Which values a state may hold: those that the table returns unchanged.
 *
 * 1. `checkValue` refuses, by path, whatever would come back as something else or not at all.
 * 2. What it returns is a copy that is exactly what a later read returns: a step sees the same whether its state was
 *    written a moment ago or loaded from the table. So properties stand in the order of their names (the table keeps
 *    none), -0 is 0, and bytes of any kind are a Uint8Array.
 * 3. A number comes back as a number and a bigint as a bigint.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
 */
import { TerminalError } from '../core/errors.ts'
import { isBytes } from '../core/lossless.ts'
import type { StateValue } from './state-store.ts'

/** DynamoDB has 32 levels: the map of states is the outermost, and what the innermost list or map holds the last. */
export const deepestNesting = 30
const mostDigits = 38
const smallestMagnitude = 1e-130
const largestMagnitude = 9.99e125
/** Zeros behind the digits included. */
const longestInteger = 125

const remedies: ReadonlyMap<string, string> = new Map([
  ['undefined', 'leave it out or use null'],
  ['Date', 'keep its milliseconds, a number'],
  ['Map', 'keep an object or a list of pairs, or use a map state'],
  ['Set', 'keep a list'],
  ['ArrayBuffer', 'keep a Uint8Array'],
  ['Promise', 'steps are synchronous'],
  ['function', 'keep data, and the function in the step'],
  ['symbol', 'use text'],
])

/**
 * A deep copy of the value as the table returns it. Throws a {@link TerminalError} (code `unsupported-value`) that names
 * the path of whatever the table cannot return unchanged.
 *
 * @example
 * checkValue({ seats: 2n, day: '2026-01-01' }, 'flight') // { day: '2026-01-01', seats: 2n }
 * checkValue({ first: new Date(0) }, 'flight')           // throws: flight.first is a Date ...
 */
export function checkValue(value: unknown, path: string): StateValue {
  // Most states are numbers and short texts: those need no walk.
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value + 0
  return new CheckedCopy(path).of(value)
}

/** One copy as {@link checkValue} makes it. */
export class CheckedCopy {
  readonly #root: string | { readonly path: string }
  readonly #freezes: boolean
  /** Names and indexes on the way to the value that is looked at. */
  readonly #path: (string | number)[] = []
  /** Whether bytes were found, which cannot be frozen. */
  hasBytes = false

  /** The path may be made only where it is told. With `frozen` lists and objects of the copy cannot be changed. */
  constructor(root: string | { readonly path: string }, frozen?: 'frozen') {
    this.#root = root
    this.#freezes = frozen === 'frozen'
  }

  of(value: unknown): StateValue {
    switch (typeof value) {
      case 'string':
        return this.#text(value)
      case 'number':
        return this.#number(value)
      case 'bigint':
        return this.#integer(value)
      case 'boolean':
        return value
      case 'object':
        return value === null ? null : this.#object(value)
      default:
        return this.#refuse(
          typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`,
          remedies.get(typeof value) ?? 'keep plain data',
        )
    }
  }

  #text(text: string): string {
    if (!text.isWellFormed()) this.#refuse('text with half a surrogate pair', 'keep its bytes')
    return text
  }

  #number(value: number): number {
    const magnitude = Math.abs(value)
    if (!(magnitude <= largestMagnitude)) this.#refuse(String(value), 'use null or text')
    if (magnitude !== 0 && magnitude < smallestMagnitude) this.#refuse(String(value), 'use 0 or text')
    return value + 0
  }

  #integer(value: bigint): bigint {
    const text = value.toString()
    const digits = text.replace('-', '').replace(/0+$/, '').length
    if (digits > mostDigits) this.#refuse(`an integer of ${digits} digits`, `keep text beyond ${mostDigits} digits`)
    if (text.length > longestInteger) this.#refuse(`an integer of ${text.length} digits`, 'keep text')
    return value
  }

  #object(value: object): StateValue {
    if (isBytes(value)) {
      this.hasBytes = true
      return new Uint8Array(value)
    }
    const isList = Array.isArray(value)
    if (prototypesOf(value) > (isList ? 2 : 1)) this.#refuseInstance(value)
    if (this.#path.length >= deepestNesting) {
      this.#refuse(`nested more than ${deepestNesting} levels deep or contains itself`, 'keep it flatter')
    }
    if (isList) return this.#list(value)
    this.#refuseSymbols(value)
    return this.#map(value as Readonly<Record<string, unknown>>)
  }

  #refuseSymbols(value: object): void {
    if (Object.getOwnPropertySymbols(value).length > 0) this.#refuse('an object with a symbol as a name', 'use text')
  }

  #list(list: readonly unknown[]): StateValue {
    // Names of its own are those of its elements and its length; only where there are more it is looked at which.
    const hasMoreNames = Reflect.ownKeys(list).length > list.length + 1
    if (hasMoreNames) this.#refuseSymbols(list)
    const copy: StateValue[] = []
    // A hole reads as undefined, so it is refused by its index.
    for (let i = 0; i < list.length; i += 1) copy.push(this.inside(i, list[i]))
    if (hasMoreNames && Object.keys(list).length > list.length) {
      this.#refuse('a list with names beside its elements', 'keep an object')
    }
    return this.#freezes ? Object.freeze(copy) : copy
  }

  #map(map: Readonly<Record<string, unknown>>): StateValue {
    const copy: Record<string, StateValue> = {}
    for (const name of namesOf(map)) {
      if (name === '' || name === '__proto__') {
        const remedy = 'give it another name, or use a map state, whose entries may have any'
        this.#refuse(`an object with the name ${JSON.stringify(name)}`, remedy)
      }
      this.#text(name)
      copy[name] = this.inside(name, map[name])
    }
    return this.#freezes ? Object.freeze(copy) : copy
  }

  /** The copy of what stands there inside the value. */
  inside(name: string | number, value: unknown): StateValue {
    this.#path.push(name)
    const copy = this.of(value)
    this.#path.pop()
    return copy
  }

  #refuseInstance(value: object): never {
    // The rejection of a promise that nobody awaits would end the process.
    if (value instanceof Promise) value.catch(() => undefined)
    const name = value.constructor?.name || 'nameless class'
    this.#refuse(`a ${name}`, remedies.get(name) ?? 'keep plain objects, without methods')
  }

  #refuse(what: string, remedy: string): never {
    const path = this.#path.map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`)).join('')
    const root = typeof this.#root === 'string' ? this.#root : this.#root.path
    throw new TerminalError(`${root}${path} is ${what}, which the table cannot return unchanged: ${remedy}`, {
      code: 'unsupported-value',
    })
  }
}

/** The object's names in their order: most objects come in it, as they were read or checked before. */
function namesOf(map: object): string[] {
  const names = Object.keys(map)
  for (let i = 1; i < names.length; i += 1) if ((names[i - 1] as string) > (names[i] as string)) return names.sort()
  return names
}

/** How many prototypes are above the value: none or one for a plain object, two for a list, more for instances. */
function prototypesOf(value: object): number {
  let prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === Object.prototype) return 1
  if (prototype === Array.prototype) return 2
  let count = 0
  for (; prototype !== null; prototype = Object.getPrototypeOf(prototype)) count += 1
  return count
}

/** Freezes a checked value, as deep as it goes. True where bytes are in it, which cannot be frozen. */
export function freezeValue(value: StateValue): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (isBytes(value)) return true
  Object.freeze(value)
  let hasBytes = false
  for (const inner of Object.values(value) as StateValue[]) if (freezeValue(inner)) hasBytes = true
  return hasBytes
}

/**
 * The one text of a checked value: equal for equal values, and for no others.
 *
 * @example
 * canonicalText({ seats: 2n, codes: Uint8Array.of(1) }) // '{"codes":bytes:01,"seats":2n}'
 */
export function canonicalText(value: StateValue): string {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isBytes(value)) return `bytes:${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  const names = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}:${canonicalText(inner)}`)
  return `{${names.join()}}`
}

/**
 * What DynamoDB counts for a value that was checked, in bytes: exact, but for numbers, which it overstates a little.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
export function sizeOf(value: StateValue): number {
  switch (typeof value) {
    case 'string':
      return Buffer.byteLength(value)
    case 'number':
    case 'bigint':
      // One byte per two digits, one for the exponent, one for the sign, one where the pairs are not aligned.
      return Math.min(21, Math.ceil(String(value).length / 2) + 2)
    case 'boolean':
      return 1
    default:
      return value === null ? 1 : sizeOfObject(value)
  }
}

function sizeOfObject(value: object): number {
  if (isBytes(value)) return value.byteLength
  if (Array.isArray(value)) {
    let bytes = 3
    for (const element of value) bytes += 1 + sizeOf(element)
    return bytes
  }
  const map = value as { readonly [name: string]: StateValue }
  let bytes = 3
  for (const name of Object.keys(map)) bytes += 1 + Buffer.byteLength(name) + sizeOf(map[name] as StateValue)
  return bytes
}
