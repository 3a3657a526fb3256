import { TerminalError } from '../../core/errors.ts'
import { decodeUtf8 } from '../../core/utf8.ts'
import type { Position } from './position.ts'

/** In bytes. */
const shortText = 32

/** In how many places short texts are remembered, a power of two. */
const places = 4_096

/**
 * Short texts of ASCII that were read before: keys come again and again. To find one takes less than to make it, it takes no memory
 * anew, and maps find what is there under the very same text sooner.
 */
export class ShortTexts {
  readonly #texts = new Array<string>(places).fill('')

  /** The text of these bytes; undefined where they are not of ASCII. */
  read(bytes: Buffer, from: number, end: number): string | undefined {
    let hash = end - from
    for (let i = from; i < end; i++) {
      const byte = bytes[i] as number
      if (byte >= 0x80) return undefined
      hash = (Math.imul(hash, 31) + byte) | 0
    }
    const place = (hash ^ (hash >>> 12)) & (places - 1)
    const known = this.#texts[place] as string
    if (isAt(known, bytes, from, end)) return known
    const text = bytes.toString('latin1', from, end)
    this.#texts[place] = text
    return text
  }
}

function isAt(text: string, bytes: Buffer, from: number, end: number): boolean {
  if (text.length !== end - from) return false
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[from + i]) return false
  return true
}

/** Reads what `ByteWriter` wrote. Whatever it did not write is refused with a {@link TerminalError} `frame-corrupt`. */
export class ByteReader {
  readonly #buffer: Buffer
  readonly #shortTexts: ShortTexts | undefined
  #at: number

  constructor(bytes: Uint8Array, from = 0, shortTexts?: ShortTexts | undefined) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = from
    this.#shortTexts = shortTexts
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
    return this.#utf8(this.count()) ?? this.refuse('a text is not UTF-8')
  }

  /** Bytes as the text that they are in UTF-8, which takes less than a view of them; a view where they are none. */
  textOrBytes(): string | Buffer {
    const byteLength = this.count()
    return this.#utf8(byteLength) ?? this.raw(byteLength)
  }

  /** The next bytes as text; undefined, and still to be read, where they are not UTF-8. */
  #utf8(byteLength: number): string | undefined {
    // What shares all with the one before has nothing here.
    if (byteLength === 0) return ''
    const from = this.#at
    const end = from + byteLength
    if (end > this.#buffer.length) this.refuse(`${byteLength} bytes cannot follow`)
    const known = byteLength <= shortText ? this.#shortTexts?.read(this.#buffer, from, end) : undefined
    const text = known ?? decodeUtf8(this.#buffer, from, end)
    if (text !== undefined) this.#at = end
    return text
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
