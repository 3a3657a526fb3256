/**
 * AWS JSON, as the embedded services speak it: bytes are base64, times are seconds with a fraction.
 *
 * 1. A request reaches the model only with the fields that the model has, each of the right type; any other field is refused by
 *    name, because ignoring it (IndexName, say, or DryRun) would do what the caller did not ask for.
 * 2. Bodies appear in no error message.
 * 3. Maps, whose names are those of users, have no prototype: an attribute may be named `__proto__`.
 *
 * @see https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html
 */

/** What a member of a request holds. */
export type Field =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'bytes'
  | 'time'
  | { readonly structure: Fields }
  | { readonly listOf: Field }
  | { readonly mapOf: Field }

/** The members of a structure, by name. */
export interface Fields {
  readonly [name: string]: { readonly type: Field; readonly required: boolean }
}

export const required = (type: Field) => ({ type, required: true })
export const optional = (type: Field) => ({ type, required: false })

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Makes the error of a service that refuses a request. */
type Refusal = (name: 'SerializationException' | 'ValidationException', message: string) => Error

/** Reads the requests of one service. */
export class RequestReader {
  readonly #service: string
  readonly #error: Refusal

  constructor(service: string, error: Refusal) {
    this.#service = service
    this.#error = error
  }

  /** Reads a body into what the model takes. Throws SerializationException or ValidationException, naming the field. */
  read(fields: Fields, body: Buffer): Record<string, unknown> {
    return this.#structure(fields, this.#parse(body), '')
  }

  /** Reads one value; `path` names it in what is thrown. */
  readField(type: Field, value: unknown, path: string): unknown {
    switch (type) {
      case 'string':
        if (typeof value === 'string') return value
        throw this.#wrongType(path, 'a string')
      case 'integer':
        if (Number.isSafeInteger(value)) return value
        throw this.#wrongType(path, 'an integer')
      case 'boolean':
        if (typeof value === 'boolean') return value
        throw this.#wrongType(path, 'true or false')
      case 'time':
        if (typeof value === 'number' && Math.abs(value) <= 8.64e12) return new Date(Math.round(value * 1_000))
        throw this.#wrongType(path, 'a time in seconds since 1970')
      case 'bytes':
        return this.#bytes(value, path)
      default:
        if ('structure' in type) return this.#structure(type.structure, value, `${path}.`)
        return 'listOf' in type ? this.#list(type.listOf, value, path) : this.#map(type.mapOf, value, path)
    }
  }

  #parse(body: Buffer): unknown {
    try {
      return body.length === 0 ? {} : JSON.parse(body.toString())
    } catch {
      throw this.#error('SerializationException', `The body of ${body.length} bytes is not JSON.`)
    }
  }

  #structure(fields: Fields, value: unknown, path: string): Record<string, unknown> {
    if (!isObject(value)) throw this.#wrongType(path || 'the body', 'an object')
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(fields, name)) {
        throw this.#error(
          'ValidationException',
          `The embedded ${this.#service} does not know the field '${path}${name}' here. It takes: ${Object.keys(fields).join(', ')}.`,
        )
      }
    }
    const members: Record<string, unknown> = {}
    for (const name in fields) {
      const { type, required } = fields[name] as Fields[string]
      const member = value[name]
      if (member !== undefined && member !== null) members[name] = this.readField(type, member, path + name)
      else if (required) {
        throw this.#error(
          'ValidationException',
          `1 validation error detected: Value null at '${path}${name}' failed to satisfy constraint: Member must not be null`,
        )
      }
    }
    return members
  }

  #list(element: Field, value: unknown, path: string): unknown[] {
    if (!Array.isArray(value)) throw this.#wrongType(path, 'a list')
    return value.map((member, i) => this.readField(element, member, `${path}.${i + 1}`))
  }

  #map(element: Field, value: unknown, path: string): Record<string, unknown> {
    if (!isObject(value)) throw this.#wrongType(path, 'an object')
    const members: Record<string, unknown> = Object.create(null)
    for (const name of Object.keys(value)) members[name] = this.readField(element, value[name], `${path}.${name}`)
    return members
  }

  #bytes(value: unknown, path: string): Buffer {
    if (typeof value === 'string') {
      const bytes = Buffer.from(value, 'base64')
      const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
      if (value.length % 4 === 0 && bytes.length === (value.length / 4) * 3 - padding) return bytes
    }
    throw this.#wrongType(path, 'base64')
  }

  #wrongType(path: string, expected: string): Error {
    return this.#error('SerializationException', `'${path}' must be ${expected}.`)
  }
}

/** Turns bytes and times, anywhere in a value, into what JSON can hold. */
export function toWire(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  }
  if (value instanceof Date) return value.getTime() / 1_000
  if (Array.isArray(value)) return value.map(toWire)
  if (!isObject(value)) return value
  const members: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(value)) members[name] = toWire(value[name])
  return members
}
