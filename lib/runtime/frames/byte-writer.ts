import { TerminalError } from '../../core/errors.ts'
import type { Position } from './position.ts'

/** Whole times at most this far apart are written as their difference, anything else as a double. */
const largestStep = 2 ** 51

/** Below 128, so that the length takes one byte. */
const shortText = 32

/**
 * Writes numbers, texts, times and positions into a growing buffer. docs/frames.md describes each form; `ByteReader` is
 * its mirror image.
 */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(1_024)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Forgets what was written from `length` on. */
  truncate(length: number): void {
    this.#length = length
  }

  /** The bytes from `from` on, as a view that the next write may change. */
  view(from = 0): Buffer {
    return this.#buffer.subarray(from, this.#length)
  }

  /** A copy of all bytes, which stays as it is, in memory of its own. */
  toBytes(): Buffer {
    const copy = Buffer.allocUnsafeSlow(this.#length)
    copy.set(this.view())
    return copy
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  uint32(value: number): void {
    this.#reserve(4)
    this.#length = this.#buffer.writeUInt32BE(value, this.#length)
  }

  /** A whole number from 0 to 2^53 - 1: seven bits a byte, the lowest first. */
  count(value: number): void {
    this.#reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.#buffer[this.#length++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#buffer[this.#length++] = rest
  }

  bytes(value: Uint8Array): void {
    this.count(value.byteLength)
    this.raw(value)
  }

  raw(value: Uint8Array): void {
    this.#reserve(value.byteLength)
    this.#buffer.set(value, this.#length)
    this.#length += value.byteLength
  }

  /** Text in UTF-8. Half a surrogate pair has no bytes of its own there and is refused with a {@link TerminalError}. */
  text(value: string): void {
    if (value.length <= shortText && this.#shortAscii(value)) return
    if (!value.isWellFormed()) {
      throw new TerminalError('a text of the output has half a surrogate pair, which UTF-8 cannot hold', {
        code: 'not-utf8',
      })
    }
    this.#wellFormed(value)
  }

  /** Text that JSON.stringify made, which writes half a surrogate pair as an escape. */
  json(value: string): void {
    if (value.length > shortText || !this.#shortAscii(value)) this.#wellFormed(value)
  }

  #wellFormed(value: string): void {
    const from = this.#length
    // Most texts are of ASCII: then there are as many bytes as characters, and one call writes them.
    this.count(value.length)
    this.#reserve(value.length * 3)
    const byteLength = this.#buffer.write(value, this.#length)
    this.#length += byteLength
    if (byteLength === value.length) return
    this.#length = from
    this.count(byteLength)
    this.#reserve(byteLength)
    this.#length += this.#buffer.write(value, this.#length)
  }

  /** Writes a short text, from a place on, if it is of ASCII: for these, a call into native code takes longer than the work. */
  #shortAscii(value: string, start = 0): boolean {
    this.#reserve(1 + shortText)
    let at = this.#length + 1
    for (let i = start; i < value.length; i++) {
      const code = value.charCodeAt(i)
      if (code >= 0x80) return false
      this.#buffer[at++] = code
    }
    this.#buffer[this.#length] = value.length - start
    this.#length = at
    return true
  }

  /** A text that begins like the one before: how many characters they share (all, or some of ASCII), and the rest. */
  textAfter(previous: string, value: string): void {
    const most = Math.min(previous.length, value.length)
    let shared = previous === value ? most : 0
    while (shared < most) {
      const code = value.charCodeAt(shared)
      if (code >= 0x80 || code !== previous.charCodeAt(shared)) break
      shared++
    }
    this.count(shared)
    if (value.length - shared <= shortText && this.#shortAscii(value, shared)) return
    this.text(shared === 0 ? value : value.slice(shared))
  }

  /** A time as the step from `base`, a whole number; as a double where it is not whole, infinite or far away. */
  time(base: number, value: number): void {
    const step = value - base
    if (Number.isSafeInteger(value) && Math.abs(step) <= largestStep) {
      this.count((step >= 0 ? step * 2 : step * -2 - 1) + 1)
      return
    }
    this.count(0)
    this.#reserve(8)
    this.#length = this.#buffer.writeDoubleBE(value, this.#length)
  }

  /** All of a position but its number: 0 for the start of a number, odd for the record's own key, even for another. */
  place({ own, keyHash, index }: Position): void {
    if (own) this.count((index + 1) * 2 + 1)
    else if (keyHash === '') this.count(0)
    else {
      this.count((index + 2) * 2)
      this.#reserve(16)
      this.#length += this.#buffer.write(keyHash, this.#length, 'hex')
    }
  }

  #reserve(byteLength: number): void {
    const needed = this.#length + byteLength
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    larger.set(this.view())
    this.#buffer = larger
  }
}
