import fc from 'fast-check'
import { decodeValue, encodeValue, isTagged } from '../../lib/core/tagged-json.ts'

const there = (value: unknown) => encodeValue(value, 'keyBy "by-id"')
const back = (value: unknown) => decodeValue(there(value))

/** What a state may hold, and objects that look like tags. */
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.boolean(),
    fc.constant(null),
    fc.bigInt(),
    fc.uint8Array(),
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(fc.constantFrom('$bigint', '$bytes', '$object'), fc.string()), tie('value'), { maxKeys: 2 }),
  ),
})).value

describe('encodeValue', () => {
  test('brings back whatever a state may hold, objects that look like tags among it', () => {
    fc.assert(fc.property(values, (value) => expect(back(value)).toEqual(value)))
  })

  test('leaves JSON as it is: only a bigint or bytes make a value tagged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(there(value)).toBe(JSON.stringify(value))
      }),
    )
    const tagged = there({ id: 7n, raw: Buffer.from('a'), like: { $bigint: '1' } })
    expect(tagged).toBe(`$${'{"id":{"$bigint":"7"},"raw":{"$bytes":"YQ=="},"like":{"$object":{"$bigint":"1"}}}'}`)
    expect([tagged, Buffer.from(tagged), there(7), there('$')].map(isTagged)).toEqual([true, true, false, false])
  })

  test('a Date stays the text that JSON makes of it, and a toJSON is asked, beside a bigint as without one', () => {
    const value = { at: new Date(0), price: { toJSON: () => ({ cents: 5 }) } }
    expect(back({ ...value, id: 1n })).toEqual({ ...(back(value) as object), id: 1n })
  })

  test('bytes come back as a Uint8Array of their own', () => {
    const bytes = back(Buffer.from([1, 2])) as Uint8Array
    expect(Object.prototype.toString.call(bytes)).toBe('[object Uint8Array]')
    expect(bytes).toEqual(Uint8Array.of(1, 2))
    expect(Buffer.isBuffer(bytes)).toBe(false)
  })

  test.each([
    ['NaN beside a bigint', { id: 1n, rate: Number.NaN }, '"rate" is NaN'],
    ['a Map beside bytes', { raw: new Uint8Array(1), seen: new Map() }, '"seen" is a Map'],
    ['a toJSON that gives nothing', { toJSON: () => undefined }, 'keyBy "by-id"'],
  ])('refuses %s', (_, value, message) => {
    expect(() => there(value)).toThrow(message)
    expect(() => there(value)).toThrow(expect.objectContaining({ code: 'not-serialisable' }))
  })

  test('refuses a cycle, beside a bigint too', () => {
    const cyclic: Record<string, unknown> = { id: 1n }
    cyclic.self = cyclic
    expect(() => there(cyclic)).toThrow(expect.objectContaining({ code: 'not-serialisable' }))
  })
})
