import { isBytes } from './lossless.ts'

/** Deeper values, and those that contain themselves, are not copied. */
const deepest = 200

/** What {@link plainCopy} answers for a value that is not plain data. */
export const notPlain: unique symbol = Symbol('not plain')

/**
 * A deep copy of plain data, which later changes to the original do not reach: objects without a class, lists, bytes, and what cannot be
 * changed. Answers {@link notPlain} where anything else is in the value. A record or a list costs less than to write it as JSON.
 *
 * @example
 * plainCopy({ n: 1, tags: ['a'] }) // { n: 1, tags: ['a'] }, another object
 * plainCopy({ at: new Date(0) })   // notPlain
 */
export function plainCopy(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > deepest) return notPlain
  if (Array.isArray(value)) return copyOfList(value, depth)
  if (isPlain(value)) return withCopiesInside({ ...value }, depth)
  return isBytes(value) ? new Uint8Array(value) : notPlain
}

function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  // Other realms, such as jest's sandbox, have an `Object` of their own.
  return Object.getPrototypeOf(prototype) === null && prototype.constructor?.name === 'Object'
}

/** By index: names of places would be made for every one of them. */
function copyOfList(list: readonly unknown[], depth: number): unknown[] | typeof notPlain {
  const copy = list.slice()
  for (let i = 0; i < copy.length; i++) {
    const inner = copy[i]
    if (typeof inner !== 'object' || inner === null) continue
    const copied = plainCopy(inner, depth + 1)
    if (copied === notPlain) return notPlain
    copy[i] = copied
  }
  return copy
}

function withCopiesInside<T extends object>(copy: T, depth: number): T | typeof notPlain {
  const own = copy as { [name: string]: unknown }
  for (const name in own) {
    const inner = own[name]
    if (typeof inner !== 'object' || inner === null) continue
    const copied = plainCopy(inner, depth + 1)
    if (copied === notPlain) return notPlain
    own[name] = copied
  }
  return copy
}
