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

function look(value: object, path: string, depth: number): void {
  if (depth > deepest) return
  let empty = true
  for (const key in value) {
    empty = false
    const inner: unknown = (value as Record<string, unknown>)[key]
    if (typeof inner === 'number') {
      // Infinite numbers and NaN are those whose difference to themselves is not 0.
      if (inner - inner !== 0 && !hasToJson(value)) refuse(String(inner), path === '' ? key : `${path}.${key}`)
    } else if (typeof inner === 'object' && inner !== null) look(inner, path === '' ? key : `${path}.${key}`, depth + 1)
  }
  if (!empty || Array.isArray(value) || hasToJson(value)) return
  const prototype: { readonly constructor?: { readonly name?: string } } | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype.constructor?.name === 'Object') return
  refuse(`a ${prototype.constructor?.name ?? 'object'} without fields of its own`, path)
}

/**
 * Refuses what JSON writes as something else in silence: NaN and infinite numbers become null, a Map or a Set `{}`. Throws
 * a {@link TerminalError} `not-serialisable` that names the place. Fields that are undefined are left out, as in JSON.
 *
 * @example
 * refuseLossy({ seen: new Set() }) // throws: "seen" is a Set without fields of its own
 */
export function refuseLossy(value: unknown): void {
  if (typeof value === 'object' && value !== null) look(value, '', 0)
  else if (typeof value === 'number' && !Number.isFinite(value)) refuse(String(value), '')
  else if (value === undefined || typeof value === 'function' || typeof value === 'symbol')
    refuse(`of type ${typeof value}`, '')
}
