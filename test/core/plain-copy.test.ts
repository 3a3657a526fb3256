import * as fc from 'fast-check'
import { notPlain, plainCopy } from '../../lib/core/plain-copy.ts'

test('a copy is the same, and nothing in it is of the original', () => {
  const objectsIn = (value: unknown): object[] =>
    typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(objectsIn)] : []
  const plain = fc.anything({ withBigInt: true, withNullPrototype: true })
  fc.assert(
    fc.property(plain, fc.uint8Array({ minLength: 1 }), (value, bytes) => {
      const original = { value, bytes, list: [value] }
      const copy = plainCopy(original)
      expect(copy).toEqual(original)
      const originals = new Set(objectsIn(original))
      expect(objectsIn(copy).filter((object) => originals.has(object))).toEqual([])
    }),
  )
})

test('an own property of the name __proto__ stays one', () => {
  const value = JSON.parse('{"a":{"__proto__":{"n":1}}}')
  expect(JSON.stringify(plainCopy(value))).toBe('{"a":{"__proto__":{"n":1}}}')
})

class Money {
  readonly cents = 1
}

test.each([
  ['a date', new Date(0)],
  ['a map', new Map()],
  ['a typed array', new Float64Array(1)],
  ['an instance of a class', new Money()],
  ['an object that has more than its own', Object.create({ toJSON: () => 1 })],
])('%s is not plain, wherever it is', (_what, value) => {
  expect([value, { value }, [[value]]].map((one) => plainCopy(one))).toEqual([notPlain, notPlain, notPlain])
})

test('what contains itself, or is nested without an end, is not copied', () => {
  const loop: { inner?: unknown } = {}
  loop.inner = [loop]
  expect(plainCopy(loop)).toBe(notPlain)
  let deep: unknown = 1
  for (let level = 0; level < 10_000; level++) deep = [deep]
  expect(plainCopy(deep)).toBe(notPlain)
})
