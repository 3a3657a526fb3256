import fc from 'fast-check'
import { decodeUtf8 } from '../../lib/core/utf8.ts'

/** What the platform's own strict decoder says; it keeps a byte-order mark where it is told to. */
function strictly(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const anyBytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => new Uint8Array(Buffer.from(text))),
  fc.constantFrom('\ufffd', 'a\ufffdb', '\ufeffa', 'k\u00e4se').map((text) => new Uint8Array(Buffer.from(text))),
)

test('bytes are the text that they are in UTF-8, and no text where they are none', () => {
  fc.assert(
    fc.property(anyBytes, (bytes) => expect(decodeUtf8(bytes)).toBe(strictly(bytes))),
    { numRuns: 1_000 },
  )
})

test('a part of the bytes is read as if it stood alone', () => {
  fc.assert(
    fc.property(anyBytes, fc.nat({ max: 40 }), fc.nat({ max: 40 }), (bytes, a, b) => {
      const [from, end] = [Math.min(a, b, bytes.length), Math.min(Math.max(a, b), bytes.length)]
      expect(decodeUtf8(bytes, from, end)).toBe(strictly(bytes.subarray(from, end)))
    }),
    { numRuns: 1_000 },
  )
})
