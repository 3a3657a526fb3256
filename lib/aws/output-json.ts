/** Values as the JSON that sinks write. */
import { describeError, TerminalError } from '../core/errors.ts'
import { refuseLossy } from '../core/lossless.ts'

/** Says why an output has no JSON. Throws a {@link TerminalError} (code `not-serialisable`). */
export function notSerialisable(why: string, cause?: unknown): never {
  throw new TerminalError(`the output cannot be written as JSON: ${why}`, { code: 'not-serialisable', cause })
}

/**
 * A value as JSON. JSON.stringify escapes half surrogate pairs, so the text is always well-formed. Throws a
 * {@link TerminalError} (code `not-serialisable`) for what JSON cannot tell.
 *
 * @example
 * jsonText({ id: 'o-1' }) // '{"id":"o-1"}'
 */
export function jsonText(value: unknown): string {
  refuseLossy(value)
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    notSerialisable(describeError(error).message, error)
  }
  return text ?? notSerialisable(`JSON has no form for ${typeof value}`)
}
