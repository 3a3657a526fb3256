import { TerminalError } from './errors.ts'

/** Deeper values are left to the serialiser, which ends at cycles by itself. */
const deepest = 200

function refuse(what: string, path: string): never {
  throw new TerminalError(
    `the output cannot be written unchanged: ${path === '' ? 'it' : `"${path}"`} is ${what}, which JSON would write as something else without a word: turn it into text, a number or plain data`,
    { code: 'not-serialisable' },
  )
}

const hasToJson = (value: object): boolean => typeof (value as { toJSON?: unknown }).toJSON === 'function'

/** True in every realm, as in jest's sandbox; a Buffer counts. */
export const isBytes = (value: object): value is Uint8Array =>
  ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]'

/** Whether a bigint or bytes are in the value. */
function look(value: object, path: string, depth: number): boolean {
  if (depth > deepest) return false
  let empty = true
  let hasMore = false
  for (const key in value) {
    // Bytes have their indexes as names, and are asked for only where they may be: this walk is in the way of every record.
    if (empty && key === '0' && ArrayBuffer.isView(value)) {
      return isBytes(value) || refuse(`a ${value.constructor.name}`, path)
    }
    empty = false
    const inner: unknown = (value as Record<string, unknown>)[key]
    if (typeof inner === 'number') {
      // Infinite numbers and NaN are those whose difference to themselves is not 0.
      if (inner - inner !== 0 && !hasToJson(value)) refuse(String(inner), path === '' ? key : `${path}.${key}`)
    } else if (typeof inner === 'object' && inner !== null) {
      if (look(inner, path === '' ? key : `${path}.${key}`, depth + 1)) hasMore = true
    } else if (typeof inner === 'bigint') hasMore = true
  }
  if (!empty || Array.isArray(value)) return hasMore
  if (isBytes(value)) return true
  if (hasToJson(value)) return hasMore
  const prototype: { readonly constructor?: { readonly name?: string } } | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype.constructor?.name === 'Object') return false
  refuse(`a ${prototype.constructor?.name ?? 'object'} without fields of its own`, path)
}

/**
 * Refuses what JSON writes as something else in silence: NaN and infinite numbers become null, a Map or a Set `{}`, a Float64Array an
 * object of its indexes. Throws a {@link TerminalError} `not-serialisable` that names the place. Fields that are undefined are left out, as in JSON.
 *
 * True where a bigint or bytes are in the value: JSON has no form for them, and what is to carry them needs one of its own.
 *
 * @example
 * refuseLossy({ seen: new Set() }) // throws: "seen" is a Set without fields of its own
 */
export function refuseLossy(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return look(value, '', 0)
  if (typeof value === 'number' && !Number.isFinite(value)) refuse(String(value), '')
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol')
    refuse(`of type ${typeof value}`, '')
  return typeof value === 'bigint'
}
