import { isAscii, isUtf8 } from 'node:buffer'

/** Reads bytes as UTF-8, or undefined where they are not valid UTF-8: different bytes never become the same text. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const buffer = bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (isAscii(buffer)) return buffer.toString('latin1')
  return isUtf8(buffer) ? buffer.toString('utf8') : undefined
}
