import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { TerminalError } from '../../lib/core/errors.ts'
import { bytes, json, text } from '../../lib/core/format.ts'

const read = (payload: string | Uint8Array, options = {}): unknown =>
  json(options).decode(Buffer.from(payload as string))

/** The code with which a payload is refused; undefined where it is read. Base64 text must be refused alike. */
function refusal(payload: string | Uint8Array, options = {}): string | undefined {
  const attempt = (decode: () => unknown): string | undefined => {
    try {
      decode()
    } catch (error) {
      expect(error).toBeInstanceOf(TerminalError)
      return (error as TerminalError).code
    }
    return undefined
  }
  const format = json(options)
  const payloadBytes = Buffer.from(payload as string)
  const code = attempt(() => format.decode(payloadBytes))
  expect(attempt(() => format.decodeBase64?.(payloadBytes.toString('base64')) ?? format.decode(payloadBytes))).toBe(
    code,
  )
  return code
}

describe('json', () => {
  test('reads what JSON.parse reads, from bytes and from base64 alike', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (source) => {
        const value: unknown = JSON.parse(source)
        fc.pre(!source.includes('__proto__') && !/[0-9]{16}|e\+?[0-9]{3}/.test(source))
        expect(read(source)).toEqual(value)
        expect(json().decodeBase64?.(Buffer.from(source).toString('base64')) ?? value).toEqual(value)
      }),
    )
  })

  test.each([
    ['an empty payload', '', 'empty'],
    ['blanks', '  ', 'not-json'],
    ['cut JSON', '{"v":', 'not-json'],
    ['two values', '{} {}', 'not-json'],
    ['NaN', '{"v":NaN}', 'not-json'],
    ['Infinity', '{"v":-Infinity}', 'not-json'],
    ['undefined', 'undefined', 'not-json'],
    ['a lone byte-order mark', '\ufeff', 'empty'],
    ['two byte-order marks', '\ufeff\ufeff{}', 'not-json'],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), 'not-json'],
    ['the byte ff in a string', Buffer.from('eyJpZCI6Iv8iLCJ2IjoxfQ==', 'base64'), 'not-utf8'],
    ['an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'not-utf8'],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'not-utf8'],
    ['a character that is cut at the end', Buffer.from([0x22, 0xe2, 0x82]), 'not-utf8'],
  ])('refuses %s', (_what, payload, code) => {
    expect(refusal(payload)).toBe(code)
  })

  test('strips one byte-order mark', () => {
    expect(read(Buffer.from('77u/eyJpZCI6ImEiLCJ2IjoxfQ==', 'base64'))).toEqual({ id: 'a', v: 1 })
    expect(json().decodeBase64?.('77u/eyJpZCI6ImEiLCJ2IjoxfQ==')).toEqual({ id: 'a', v: 1 })
  })

  test('keeps U+FFFD where the payload itself contains it', () => {
    expect(json().decodeBase64?.(Buffer.from('"\ufffd"').toString('base64'))).toBe('\ufffd')
  })

  test('keeps lone surrogates that are escaped, and keeps them apart', () => {
    expect(read('"\\ud800"')).toBe('\ud800')
    expect(read('"\\ud801"')).not.toBe(read('"\\ud800"'))
  })

  test('the last of two equal keys counts, as for JSON.parse, large integers included', () => {
    expect(read('{"a":1,"a":2}')).toEqual({ a: 2 })
    expect(read('{"a":1524831183200260097,"a":2}')).toEqual({ a: 2 })
    expect(refusal('{"a":2,"a":1524831183200260097}')).toBe('unsafe-integer')
  })

  test('a refusal shows no payload', () => {
    expect(() => read('{"card":"4111-1111"')).toThrow('the payload (19 characters) is not JSON')
  })

  test('reads a payload of 1 MB, in either form, and a small one after it', () => {
    const format = json()
    const large = JSON.stringify({ v: 'é'.repeat(500_000) })
    expect(format.decode(Buffer.from(large))).toEqual(JSON.parse(large))
    expect(format.decodeBase64?.(Buffer.from(large).toString('base64'))).toEqual(JSON.parse(large))
    expect(format.decodeBase64?.(Buffer.from('{"v":1}').toString('base64'))).toEqual({ v: 1 })
  })

  test.each([
    ['arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['arrays around a large integer', `${'['.repeat(100_000)}1524831183200260097${']'.repeat(100_000)}`],
    ['arrays around an escaped key', `${'['.repeat(100_000)}{"\\u005f_proto__":1}${']'.repeat(100_000)}`],
  ])('refuses %s nested 100,000 levels deep', (_what, payload) => {
    expect(refusal(payload)).toBe('too-deep')
  })
})

describe('numbers that JavaScript cannot hold', () => {
  const exact = [
    '9007199254740991',
    '-9007199254740991',
    '1234567890123456',
    '1e20',
    '1.5e300',
    '0.1234567890123456789',
  ]

  test.each(exact)('%s is read', (source) => {
    expect(read(`{"v":${source}}`)).toEqual({ v: Number(source) })
    expect(read(`[${source}]`, { largeIntegers: 'bigint' })).toEqual([Number(source)])
  })

  test('2^53 itself is refused, because 2^53 + 1 is read as the same number', () => {
    expect(refusal('{"v":9007199254740992}')).toBe('unsafe-integer')
  })

  test.each([
    '{"id":1524831183200260096,"v":1}',
    '{"a":{"b":[1,{"id":1524831183200260097}]}}',
    '[1,-1524831183200260097]',
    '1524831183200260097',
    '{"v":1524831183200260097.0}',
    '{"v":1e400}',
    '{"v":[-1e400]}',
    `{"v":1${'0'.repeat(400)}}`,
  ])('%s is refused, naming neither number nor Infinity in its place', (payload) => {
    expect(refusal(payload)).toBe('unsafe-integer')
  })

  test('they are read as BigInt where the source says so, and only they', () => {
    const large = '{"id":1524831183200260097,"small":7,"in":[-9007199254740992],"text":"1524831183200260097"}'
    expect(read(large, { largeIntegers: 'bigint' })).toEqual({
      id: 1524831183200260097n,
      small: 7,
      in: [-9007199254740992n],
      text: '1524831183200260097',
    })
    expect(refusal('{"v":1e400}', { largeIntegers: 'bigint' })).toBe('unsafe-integer')
    expect(refusal('{"v":1524831183200260097.5}', { largeIntegers: 'bigint' })).toBe('unsafe-integer')
  })

  test('digits in text and in keys are no numbers', () => {
    expect(read('{"1524831183200260097":"1524831183200260097"}')).toEqual({
      '1524831183200260097': '1524831183200260097',
    })
  })

  test('no two different integers are ever read as one', () => {
    const integers = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n })
    fc.assert(
      fc.property(integers, fc.constantFrom('refuse', 'bigint'), (integer, largeIntegers) => {
        const payload = `{"v":${integer}}`
        const safe = BigInt(Number(integer)) === integer && Number.isSafeInteger(Number(integer))
        if (safe) expect(read(payload, { largeIntegers })).toEqual({ v: Number(integer) })
        else if (largeIntegers === 'bigint') expect(read(payload, { largeIntegers })).toEqual({ v: integer })
        else expect(refusal(payload)).toBe('unsafe-integer')
      }),
    )
  })
})

describe('keys that would reach a prototype', () => {
  test.each([
    '{"__proto__":{"admin":true}}',
    '{"a":[{"__proto__":1}]}',
    '{"\\u005f_proto__":{"admin":true}}',
    '{"_\\u005Fproto__":{"admin":true}}',
    '{"\\u005f\\u005f\\u0070\\u0072\\u006f\\u0074\\u006f\\u005f\\u005f":1}',
    '{"__proto__":null,"v":1524831183200260097}',
  ])('%s is refused', (payload) => {
    expect(refusal(payload)).toBe('prototype-key')
  })

  test('the word in a value, and other odd keys, are read', () => {
    expect(read('{"a":"__proto__","b":"\\u005f_proto__"}')).toEqual({ a: '__proto__', b: '__proto__' })
    expect(read('{"constructor":1,"toString":2,"proto__":3}')).toEqual({ constructor: 1, toString: 2, proto__: 3 })
  })
})

describe('gzip', () => {
  const payload = Buffer.from('H4sIAAAAAAAAA6tWykxRslJKVNJRKlOyMqwFAPsGbd8QAAAA', 'base64')

  test('is read where the source says so', () => {
    expect(read(payload, { compression: 'gzip' })).toEqual({ id: 'a', v: 1 })
  })

  test('is refused elsewhere, with a hint', () => {
    expect(refusal(payload)).toBe('not-utf8')
    expect(() => read(payload)).toThrow('json({ compression: "gzip" })')
  })

  test.each([
    ['plain JSON', Buffer.from('{"id":"a"}'), 'not-gzip'],
    ['cut gzip', payload.subarray(0, 20), 'not-gzip'],
    ['a wrong checksum', Buffer.concat([payload.subarray(0, -8), Buffer.alloc(8)]), 'not-gzip'],
    ['gzip of invalid UTF-8', gzipSync(Buffer.from([0x22, 0xff, 0x22])), 'not-utf8'],
    ['gzip of cut JSON', gzipSync('{"a":'), 'not-json'],
    ['an empty payload', Buffer.alloc(0), 'empty'],
  ])('refuses %s', (_what, bytesGiven, code) => {
    expect(refusal(bytesGiven, { compression: 'gzip' })).toBe(code)
  })

  test('a bomb is refused before it unfolds', () => {
    expect(refusal(gzipSync(Buffer.alloc(65 * 1024 * 1024)), { compression: 'gzip' })).toMatch(/^(not-gzip|oversize)$/)
  })
})

test('text() is exact or refused; bytes() are the bytes', () => {
  expect(text().decode(Buffer.from('añ'))).toBe('añ')
  expect(text().decode(Buffer.alloc(0))).toBe('')
  expect(() => text().decode(Buffer.from([0xff]))).toThrow(TerminalError)
  expect(bytes().decode(Buffer.from([0xff, 0]))).toEqual(Buffer.from([0xff, 0]))
})

describe('numbers written with an exponent', () => {
  const read = (text: string) => json().decode(Buffer.from(text)) as { n: number }

  test.each(['1e20', '1.5e300', '1.7976931348623157e308', '-2.5e18'])('%s is read as the float it is', (text) => {
    expect(read(`{"n":${text}}`).n).toBe(Number(text))
  })

  test.each(['9007199254740993e0', '9.007199254740993e15', '1524831183200260097e-0'])(
    '%s is refused: a digit would be lost',
    (text) => {
      expect(() => read(`{"n":${text}}`)).toThrow(expect.objectContaining({ code: 'unsafe-integer' }))
    },
  )
})
