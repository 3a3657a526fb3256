/**
 * Formats: how the bytes of a record become a value.
 *
 * A format refuses what it cannot read exactly: invalid UTF-8, integers that a number cannot hold, keys that would reach
 * a prototype. A refusal is a {@link TerminalError}, so the record becomes a dead letter and its neighbours go on.
 */
import { gunzipSync } from 'node:zlib'
import { describeError, TerminalError } from './errors.ts'
import { decodeUtf8 } from './utf8.ts'

/** Turns bytes into a value, or throws a {@link TerminalError} that says why it cannot. */
export interface Format<T> {
  readonly name: string
  decode(bytes: Buffer): T
  /** The same for bytes in base64, as Lambda delivers them, where a format can spare the copy. @default decode() */
  decodeBase64?(base64: string): T
  /** A value as the source would deliver it, for tests that send values. @default JSON */
  encode?(value: T): Buffer
}

export interface JsonOptions {
  /** How the payload is compressed. @default 'none' */
  readonly compression?: 'none' | 'gzip'
  /**
   * What becomes of integers beyond 2^53, which a JavaScript number cannot tell apart: `refuse` makes the record a dead
   * letter, `bigint` reads them (and only them) as BigInt. @default 'refuse'
   */
  readonly largeIntegers?: 'refuse' | 'bigint'
}

/** The most that a compressed payload may unfold to: 64 MiB. */
const uncompressedLimit = 64 * 1024 * 1024

function gunzip(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: uncompressedLimit })
  } catch (error) {
    throw new TerminalError(`the payload (${bytes.length} bytes) is not gzip: ${describeError(error).message}`, {
      code: 'not-gzip',
      cause: error,
    })
  }
}

function readText(bytes: Buffer): string {
  const text = decodeUtf8(bytes)
  if (text !== undefined) return text.startsWith('\ufeff') ? text.slice(1) : text
  const hint =
    bytes[0] === 0x1f && bytes[1] === 0x8b ? '; it begins like gzip: declare json({ compression: "gzip" })' : ''
  throw new TerminalError(`the payload (${bytes.length} bytes) is not valid UTF-8${hint}`, { code: 'not-utf8' })
}

const integer = /^-?[0-9]+$/

/** The digits that a number's text tells, without sign, point, exponent and the zeros at both ends. */
const significantDigits = (text: string): string =>
  text
    .replace(/e.*$/i, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '')

/** True where a number beyond 2^53 was read with another digit than its text has. */
const lostDigits = (value: number, source: string): boolean =>
  !Number.isFinite(value) || significantDigits(String(value)) !== significantDigits(source)

type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown
const parseWithSource = JSON.parse as (text: string, reviver: SourceReviver) => unknown

/** Parses once more, with the digits of every number at hand: the numbers of the first parse have lost some. */
function readLargeIntegers(text: string, mode: 'refuse' | 'bigint'): unknown {
  return parseWithSource(text, (key, value, context) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
    const source = context.source ?? ''
    if (mode === 'bigint' && integer.test(source)) return BigInt(source)
    if (Math.abs(value) <= Number.MAX_SAFE_INTEGER || (!integer.test(source) && !lostDigits(value, source)))
      return value
    throw new TerminalError(
      `the number ${source.slice(0, 40)} in "${key}" is beyond 2^53 and would be read as ${value}: send it as text, or declare json({ largeIntegers: 'bigint' }) where it is whole`,
      { code: 'unsafe-integer' },
    )
  })
}

/** Deeper nesting than any sane payload has; recursion must end before the stack does. */
const deepest = 200

/**
 * Looks through a parsed value for what JSON.parse reads without complaint. True where some number is beyond 2^53;
 * throws for an own key `__proto__`, which a careless copy would turn into a prototype.
 */
function hasLargeNumber(value: object, depth: number): boolean {
  if (depth > deepest) {
    throw new TerminalError(`the payload is nested more than ${deepest} levels deep`, { code: 'too-deep' })
  }
  let large = false
  // The prototypes of parsed objects and arrays have no enumerable keys, so `for in` sees own keys only, and fast.
  for (const key in value) {
    const inner: unknown = (value as Record<string, unknown>)[key]
    if (key === '__proto__') {
      throw new TerminalError('the payload has a key named "__proto__", which is refused', { code: 'prototype-key' })
    }
    if (typeof inner === 'number') large ||= inner > Number.MAX_SAFE_INTEGER || inner < Number.MIN_SAFE_INTEGER
    else if (typeof inner === 'object' && inner !== null && hasLargeNumber(inner, depth + 1)) large = true
  }
  return large
}

/** Decodes one JSON text exactly, or says why not. */
function parseJson(text: string, mode: 'refuse' | 'bigint'): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // V8 quotes the payload in its message, and payloads stay out of logs.
    throw new TerminalError(`the payload (${text.length} characters) is not JSON`, { code: 'not-json' })
  }
  const large = typeof value === 'object' ? value !== null && hasLargeNumber(value, 0) : typeof value === 'number'
  return large ? readLargeIntegers(text, mode) : value
}

/** Up to this many characters of base64, atob is the faster way to a text of ASCII. */
const shortBase64 = 600

/** What a short payload of ASCII says; undefined for any other. */
function readShortAscii(base64: string): string | undefined {
  try {
    const text = atob(base64)
    return Buffer.byteLength(text) === text.length ? text : undefined
  } catch {
    return undefined
  }
}

/** Reads base64 text as UTF-8 through one buffer that is used again and again. */
function base64Reader(): (base64: string) => string {
  let scratch = Buffer.allocUnsafe(4_096)
  return (base64) => {
    const short = base64.length <= shortBase64 ? readShortAscii(base64) : undefined
    if (short !== undefined) return short
    if (base64.length > scratch.length) scratch = Buffer.allocUnsafe(base64.length * 2)
    const length = scratch.write(base64, 0, 'base64')
    const text = scratch.toString('utf8', 0, length)
    // Invalid bytes, and only they, would have become U+FFFD; a payload may also contain that character itself.
    if (text.includes('\ufffd') || text.startsWith('\ufeff')) return readText(Buffer.from(base64, 'base64'))
    return text
  }
}

/**
 * JSON text in UTF-8, with or without a byte-order mark.
 *
 * Dead letters by code: `empty`, `not-gzip`, `not-utf8`, `not-json`, `unsafe-integer`, `prototype-key`, `too-deep`.
 *
 * @example
 * app.source('orders', Order, { format: json({ compression: 'gzip', largeIntegers: 'bigint' }) })
 */
export function json(options: JsonOptions = {}): Format<unknown> {
  const mode = options.largeIntegers ?? 'refuse'
  const read = (text: string) => {
    if (text.length === 0) throw new TerminalError('the payload is empty', { code: 'empty' })
    return parseJson(text, mode)
  }
  if (options.compression === 'gzip') {
    return { name: 'json+gzip', decode: (bytes) => read(bytes.length === 0 ? '' : readText(gunzip(bytes))) }
  }
  const readBase64 = base64Reader()
  return {
    name: 'json',
    decode: (bytes) => read(readText(bytes)),
    decodeBase64: (base64) => read(readBase64(base64)),
  }
}

/** The payload as text. Dead letters by code: `not-utf8`. */
export function text(): Format<string> {
  return { name: 'text', decode: readText }
}

/** The payload's bytes as they are. */
export function bytes(): Format<Uint8Array> {
  return { name: 'bytes', decode: (payload) => payload }
}
