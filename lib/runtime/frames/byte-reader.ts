import { TerminalError } from '../../core/errors.ts'
import { decodeUtf8 } from '../../core/utf8.ts'
import type { Position } from './position.ts'

/** In bytes. */
const shortText = 32

/** Reads what `ByteWriter` wrote. Whatever it did not write is refused with a {@link TerminalError} `frame-corrupt`. */
export class ByteReader {
  readonly #buffer: Buffer
  #at: number

  constructor(bytes: Uint8Array, from = 0) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = from
  }

  /** Says what is wrong with the bytes, and where; never what they hold. */
  refuse(what: string): never {
    throw new TerminalError(`a frame of ${this.#buffer.length} bytes is corrupt: at byte ${this.#at} ${what}`, {
      code: 'frame-corrupt',
    })
  }

  /** Refuses bytes behind what should be the last one. */
  end(): void {
    if (this.#at !== this.#buffer.length) this.refuse('it should have ended')
  }

  byte(): number {
    return this.#buffer[this.#at++] ?? this.refuse('a byte is missing')
  }

  count(): number {
    let value = this.byte()
    if (value < 0x80) return value
    value -= 0x80
    for (let scale = 0x80; ; scale *= 0x80) {
      const next = this.byte()
      value += (next % 0x80) * scale
      if (!Number.isSafeInteger(value) || scale > 2 ** 49) this.refuse('a number is too large')
      if (next < 0x80) return value
    }
  }

  /** How many things follow. Each takes a byte at least, so a corrupt number reserves no memory to speak of. */
  size(): number {
    const size = this.count()
    if (size > this.#buffer.length - this.#at) this.refuse(`${size} things cannot follow`)
    return size
  }

  /** A view of the bytes, not a copy. */
  raw(byteLength: number): Buffer {
    const end = this.#at + byteLength
    if (end > this.#buffer.length) this.refuse(`${byteLength} bytes cannot follow`)
    const bytes = this.#buffer.subarray(this.#at, end)
    this.#at = end
    return bytes
  }

  bytes(): Buffer {
    return this.raw(this.count())
  }

  text(): string {
    const byteLength = this.count()
    if (byteLength === 0) return ''
    if (byteLength <= shortText) {
      const short = this.#shortAscii(byteLength)
      if (short !== undefined) return short
    }
    return decodeUtf8(this.raw(byteLength)) ?? this.refuse('a text is not UTF-8')
  }

  /** A short text where it is of ASCII: most are, and a view of their bytes would take longer than to look at them. */
  #shortAscii(byteLength: number): string | undefined {
    const from = this.#at
    const end = from + byteLength
    if (end > this.#buffer.length) this.refuse(`${byteLength} bytes cannot follow`)
    for (let i = from; i < end; i++) if ((this.#buffer[i] as number) >= 0x80) return undefined
    this.#at = end
    return this.#buffer.toString('latin1', from, end)
  }

  textAfter(previous: string): string {
    const shared = this.count()
    if (shared > previous.length) this.refuse('a text shares more than there is')
    const rest = this.text()
    if (rest === '' && shared === previous.length) return previous
    return shared === 0 ? rest : previous.slice(0, shared) + rest
  }

  time(base: number): number {
    const code = this.count()
    if (code === 0) return this.raw(8).readDoubleBE()
    const folded = code - 1
    return base + (folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2)
  }

  /** A position at a number that was read already. */
  place(number: number): Position {
    const code = this.count()
    if (code === 0) return { number, own: false, keyHash: '', index: -1 }
    if (code % 2 === 1) return { number, own: true, keyHash: '', index: (code - 1) / 2 - 1 }
    return { number, own: false, index: code / 2 - 2, keyHash: this.raw(16).toString('hex') }
  }
}
