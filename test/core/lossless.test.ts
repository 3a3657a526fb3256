import { refuseLossy } from '../../lib/core/lossless.ts'

class Money {
  readonly cents: number
  constructor(cents: number) {
    this.cents = cents
  }
}

describe('refuseLossy', () => {
  test.each([
    ['a Map', { seen: new Map([[1, 2]]) }, '"seen" is a Map'],
    ['a Set deep inside', { a: [{ b: new Set([1]) }] }, '"a.0.b" is a Set'],
    ['NaN', { rate: Number.NaN }, '"rate" is NaN'],
    ['an infinite number in an array', [1, Number.POSITIVE_INFINITY], '"1" is Infinity'],
    ['NaN itself', Number.NaN, 'it is NaN'],
    ['undefined', undefined, 'it is of type undefined'],
    ['a function', () => 1, 'it is of type function'],
    ['a regular expression', { r: /x/ }, '"r" is a RegExp'],
  ])('refuses %s and names the place', (_, value, message) => {
    expect(() => refuseLossy(value)).toThrow(message)
    expect(() => refuseLossy(value)).toThrow(expect.objectContaining({ code: 'not-serialisable' }))
  })

  test.each([
    ['plain data', { a: 1, b: [null, 'x', { c: false }], d: {}, e: [] }],
    ['fields that are undefined', { a: undefined }],
    ['a Date, which has a form in JSON', { at: new Date(0) }],
    ['an object of a class with fields', { price: new Money(5) }],
    ['an object without prototype', Object.create(null)],
    ['a value that says itself how it is written', { n: { toJSON: () => 1, inner: Number.NaN } }],
    ['a BigInt, which some sinks can write', { n: 5n }],
  ])('lets %s pass', (_, value) => {
    expect(() => refuseLossy(value)).not.toThrow()
  })

  test('ends at a cycle, which the serialiser refuses by itself', () => {
    const cyclic: { self?: unknown } = {}
    cyclic.self = cyclic
    expect(() => refuseLossy(cyclic)).not.toThrow()
  })
})
