/** Values as the JSON that sinks write. */
import { describeError, isTerminal, TerminalError } from '../../core/errors.ts'
import { isBytes, refuseLossy } from '../../core/lossless.ts'

/** Says why an output has no JSON. Throws a {@link TerminalError} (code `not-serialisable`). */
export function notSerialisable(why: string, cause?: unknown): never {
  throw new TerminalError(`the output cannot be written as JSON: ${why}`, { code: 'not-serialisable', cause })
}

/**
 * A value as JSON. JSON.stringify escapes half surrogate pairs, so the text is always well-formed. Throws a
 * {@link TerminalError} (code `not-serialisable`) for what JSON cannot tell, and for a bigint or bytes, which it has no form for: what
 * their text is to be is between the sink and its readers. A `toJSON` of the value's own says it.
 *
 * @example
 * jsonText({ id: 'o-1' }) // '{"id":"o-1"}'
 */
export function jsonText(value: unknown): string {
  const needsCare = refuseLossy(value)
  let text: string | undefined
  try {
    text = needsCare ? plainText(value) : JSON.stringify(value)
  } catch (error) {
    if (isTerminal(error)) throw error
    notSerialisable(describeError(error).message, error)
  }
  return text ?? notSerialisable(`JSON has no form for ${typeof value}`)
}

/** JSON of a value with a bigint or bytes somewhere inside, where something of the value's own writes them. */
function plainText(value: unknown): string | undefined {
  const places = new WeakMap<object, string>()
  return JSON.stringify(value, function (this: { readonly [name: string]: unknown }, name: string, inner: unknown) {
    const holder = places.get(this) ?? ''
    const place = holder === '' || name === '' ? holder + name : `${holder}.${name}`
    const what = place === '' ? 'it' : `"${place}"`
    if (typeof inner === 'bigint') notSerialisable(`${what} is a bigint: map it to text, or to a number that is exact`)
    if (typeof inner !== 'object' || inner === null) return inner
    // What stands there itself: a Buffer's own toJSON makes a list of numbers of it.
    const original = this[name]
    if (typeof original === 'object' && original !== null && isBytes(original)) {
      notSerialisable(`${what} is bytes: map them to text, in base64 for example`)
    }
    places.set(inner, place)
    return inner
  })
}
