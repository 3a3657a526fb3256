import { inspect } from 'node:util'
import fc from 'fast-check'
import { numberBytes } from '../../lib/emulator/dynamodb/number.ts'
import type { StateValue } from '../../lib/state/state-store.ts'
import { checkValue, deepestNesting, sizeOf } from '../../lib/state/values.ts'

class Money {
  readonly amount = 1
}

class Prices extends Array<number> {}

const nested = (levels: number): unknown => Array.from({ length: levels }).reduce((inner) => [inner], 0)
const cycle: unknown[] = []
cycle.push({ again: cycle })

const leaf = fc.oneof(
  fc.constantFrom<StateValue>(null, true, false, 0, 1n, ''),
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.double({ noNaN: true, min: -1e120, max: 1e120 }).filter((n) => n === 0 || Math.abs(n) > 1e-120),
  fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n }),
  fc.uint8Array({ maxLength: 4 }),
)
const name = fc.string({ minLength: 1, maxLength: 4 }).filter((text) => text !== '__proto__')
const { tree } = fc.letrec<{ tree: StateValue }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 4 }),
  ),
}))

describe('checkValue', () => {
  test('takes whatever the table returns unchanged', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const copy = checkValue(value, 'state')
        // -0 is 0, as JSON and the table have it.
        const withoutNegativeZero = (inner: unknown): unknown => {
          if (Object.is(inner, -0)) return 0
          if (Array.isArray(inner)) return inner.map(withoutNegativeZero)
          if (typeof inner !== 'object' || inner === null || inner instanceof Uint8Array) return inner
          return Object.fromEntries(Object.entries(inner).map(([key, element]) => [key, withoutNegativeZero(element)]))
        }
        expect(copy).toEqual(withoutNegativeZero(value))
        expect(inspect(checkValue(copy, 'state'), { depth: 9 })).toBe(inspect(copy, { depth: 9 }))
      }),
    )
  })

  test('copies, with the names in their order, so that it does not matter how an object was built', () => {
    const built = { b: [1], a: { d: 1, c: 2 }, 10: 1, 9: 1 }
    const copy = checkValue(built, 'state')
    expect(JSON.stringify(copy)).toBe('{"9":1,"10":1,"a":{"c":2,"d":1},"b":[1]}')
    built.b.push(2)
    expect(copy).toMatchObject({ b: [1] })
  })

  test('-0 becomes 0, a Buffer an Uint8Array, an object without prototype a plain one', () => {
    expect(Object.is(checkValue(-0, 'state'), 0)).toBe(true)
    expect(Object.is((checkValue([-0], 'state') as number[])[0], 0)).toBe(true)
    const bytes = Buffer.from('ab')
    const copy = checkValue(bytes, 'state') as Uint8Array
    bytes[0] = 0
    expect(Buffer.isBuffer(copy)).toBe(false)
    expect([...copy]).toEqual([97, 98])
    expect(checkValue(Object.assign(Object.create(null), { a: 1 }), 'state')).toStrictEqual({ a: 1 })
  })

  test('reads a getter once', () => {
    let reads = 0
    const value = {
      get a() {
        reads += 1
        return reads
      },
    }
    expect(checkValue(value, 'state')).toEqual({ a: 1 })
  })

  const wide = Object.assign([1], { extra: 1 })
  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'state is undefined'],
    ['undefined inside', { first: { x: undefined } }, 'state.first.x is undefined'],
    ['undefined in a list', [1, undefined], 'state[1] is undefined'],
    ['a hole', { list: new Array(2) }, 'state.list[0] is undefined'],
    ['names beside elements', { wide }, 'state.wide is a list with names'],
    ['a function', { f: () => 1 }, 'state.f is a function'],
    ['a symbol', [Symbol('s')], 'state[0] is a symbol'],
    ['a symbol as a name', { a: { [Symbol('s')]: 1 } }, 'state.a is an object with a symbol'],
    ['a Date', { first: new Date(0) }, 'state.first is a Date'],
    ['a Map', { seen: new Map() }, 'state.seen is a Map'],
    ['a Set', { seen: new Set() }, 'state.seen is a Set'],
    ['an instance', { price: new Money() }, 'state.price is a Money'],
    ['an instance of a list', new Prices(), 'state is a Prices'],
    ['an object with inherited names', Object.create({ a: 1 }), 'state is a Object'],
    ['an error', [new Error('x')], 'state[0] is a Error'],
    ['a promise', [Promise.resolve(1)], 'state[0] is a Promise'],
    ['a boxed number', [Object(1)], 'state[0] is a Number'],
    ['another typed array', [new Float64Array(1)], 'state[0] is a Float64Array'],
    ['a buffer of bytes', [new ArrayBuffer(1)], 'state[0] is a ArrayBuffer'],
    ['NaN', [Number.NaN], 'state[0] is NaN'],
    ['infinity', [Number.NEGATIVE_INFINITY], 'state[0] is -Infinity'],
    ['a number too large', [1e126], 'state[0] is 1e+126'],
    ['a number too small', [1e-131], 'state[0] is 1e-131'],
    ['39 digits', [10n ** 38n + 1n], 'state[0] is an integer of 39 digits'],
    ['too many zeros', [10n ** 126n], 'state[0] is an integer of 127 digits'],
    ['half a surrogate pair', { a: 'x\ud800' }, 'state.a is text with half'],
    ['a name with half a surrogate pair', { 'x\ud800': 1 }, 'state is text with half'],
    ['an empty name', { a: { '': 1 } }, 'state.a is an object with the name ""'],
    [
      'a name that reaches a prototype',
      JSON.parse('{"a":{"__proto__":1}}'),
      'state.a is an object with the name "__proto__"',
    ],
    ['a cycle', cycle, 'contains itself'],
    [
      'too many levels',
      nested(deepestNesting + 1),
      `state${'[0]'.repeat(deepestNesting)} is nested more than 30 levels`,
    ],
  ])('refuses %s and names where it is', (_, value, message) => {
    expect(() => checkValue(value, 'state')).toThrow(
      expect.objectContaining({
        name: 'TerminalError',
        code: 'unsupported-value',
        message: expect.stringContaining(message),
      }),
    )
    // And what to do instead, whatever it is.
    expect(() => checkValue(value, 'state')).toThrow(/, which the table cannot return unchanged: \w/)
  })

  test('takes as many levels as it says', () => {
    expect(checkValue(nested(deepestNesting), 'state')).toEqual(nested(deepestNesting))
  })

  test('says what to do instead', () => {
    expect(() => checkValue({ first: new Date(0) }, 'hotel')).toThrow(
      'hotel.first is a Date, which the table cannot return unchanged: keep its milliseconds, a number',
    )
  })
})

describe('sizeOf', () => {
  test.each<[StateValue, number]>([
    ['äb', 3],
    [Uint8Array.of(1, 2), 2],
    [true, 1],
    [null, 1],
    [[true, true], 7],
    [{ ab: 'c' }, 7],
    [{}, 3],
  ])('%p counts as %d', (value, bytes) => {
    expect(sizeOf(value)).toBe(bytes)
  })

  test('a number counts at least as much as DynamoDB says, and 21 bytes at most', () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, min: -1e120, max: 1e120 }).filter((n) => n === 0 || Math.abs(n) > 1e-120),
      fc.integer(),
      fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n }),
    )
    fc.assert(
      fc.property(number, (value) => {
        const bytes = numberBytes(String(value))
        expect(sizeOf(value)).toBeGreaterThanOrEqual(bytes)
        expect(sizeOf(value)).toBeLessThanOrEqual(21)
      }),
    )
  })
})
