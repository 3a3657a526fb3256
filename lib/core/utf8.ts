import { isUtf8 } from 'node:buffer'

/** What stands for bytes that are not UTF-8, and may also be in a text itself. */
const replacement = '\ufffd'

/**
 * Reads bytes, or some of them, as UTF-8; undefined where they are not valid UTF-8: different bytes never become the same text.
 */
export function decodeUtf8(bytes: Uint8Array, from = 0, end = bytes.byteLength): string | undefined {
  const buffer = bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // Node reads the whole of a buffer without a look at what it was asked for.
  const text = end - from === buffer.length ? buffer.toString() : buffer.toString('utf8', from, end)
  return !text.includes(replacement) || isUtf8(buffer.subarray(from, end)) ? text : undefined
}
