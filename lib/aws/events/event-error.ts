import { MillraceError } from '../../core/errors.ts'

/**
 * An event that is not what Lambda sends for its source: nothing in it can be acknowledged or reported by name, so the
 * invocation fails as a whole. Codes: `malformed-event`, `several-shards`, `unknown-event`, `redrive-of-keyed-stage`.
 */
export class EventError extends MillraceError {
  override readonly name: string = 'EventError'
}
