/**
 * JSON on the way between stages, for whatever a state may hold.
 *
 * A value that JSON carries is written as JSON. One with a bigint or bytes somewhere inside is tagged: `$`, with which no JSON
 * begins, and JSON in which a bigint is `{"$bigint":"12"}` and bytes are `{"$bytes":"<base64>"}`. An object of the user's that
 * looks like one of these is `{"$object":{...}}` there, so that none is taken for another.
 */
import { describeError, TerminalError } from './errors.ts'
import { isBytes, refuseLossy } from './lossless.ts'

const mark = '$'
const markByte = 0x24
const tagNames: readonly unknown[] = ['$bigint', '$bytes', '$object']

/** Whether a text, or its bytes, is of the tagged kind. */
export const isTagged = (encoded: Uint8Array | string): boolean =>
  (typeof encoded === 'string' ? encoded.charCodeAt(0) : encoded[0]) === markByte

/**
 * Writes a value. Throws a {@link TerminalError} `not-serialisable` that says where it is going (`to`) for what would not come
 * back: NaN, Map, Set, functions, cycles.
 *
 * @example
 * encodeValue({ id: 7 }, 'keyBy "by-id"')  // {"id":7}
 * encodeValue({ id: 7n }, 'keyBy "by-id"') // ${"id":{"$bigint":"7"}}
 */
export function encodeValue(value: unknown, to: string): string {
  const needsTags = refuseLossy(value)
  if (typeof value === 'number') return String(value)
  try {
    const text: string | undefined = needsTags ? mark + tagged(value) : JSON.stringify(value)
    if (text !== undefined) return text
  } catch (error) {
    throw notSerialisable(to, describeError(error).message)
  }
  throw notSerialisable(to, 'its toJSON gives nothing')
}

const notSerialisable = (to: string, why: string) =>
  new TerminalError(`a value on its way to ${to} cannot be written as JSON (${why}): make it plain data before`, {
    code: 'not-serialisable',
  })

function tagged(value: unknown): string {
  const ours = new WeakSet<object>()
  return JSON.stringify(value, function (this: { readonly [name: string]: unknown }, name: string, inner: unknown) {
    // What stands there itself, which a toJSON may have replaced already: that of a Buffer, or one that BigInt was given.
    const original = this[name]
    if (typeof original === 'bigint') return { $bigint: original.toString() }
    if (typeof original !== 'object' || original === null) return inner
    if (isBytes(original)) return { $bytes: Buffer.from(original).toString('base64') }
    if (typeof inner !== 'object' || inner === null || ours.has(this) || tagOf(inner) === undefined) return inner
    const wrapped = { $object: inner }
    ours.add(wrapped)
    return wrapped
  })
}

/** The only name of an object, where that is one of a tag. */
function tagOf(value: object): unknown {
  if (Array.isArray(value)) return undefined
  const [first, second] = Object.keys(value)
  return second === undefined && tagNames.includes(first) ? first : undefined
}

/** Reads what {@link encodeValue} wrote. Throws a SyntaxError for anything else. */
export function decodeValue(text: string): unknown {
  return isTagged(text) ? untagged(JSON.parse(text.slice(mark.length))) : JSON.parse(text)
}

function untagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const tag = tagOf(value)
  if (tag === undefined) return insideUntagged(value)
  const { $bigint, $bytes, $object } = value as { readonly [name: string]: unknown }
  if (tag === '$bigint') return BigInt($bigint as string)
  if (tag === '$bytes') return new Uint8Array(Buffer.from($bytes as string, 'base64'))
  return insideUntagged($object as object)
}

/** In place: the object was made by JSON.parse a moment ago, and its names, `__proto__` among them, are its own. */
function insideUntagged(object: object): object {
  const own = object as { [name: string]: unknown }
  for (const name of Object.keys(own)) own[name] = untagged(own[name])
  return own
}
