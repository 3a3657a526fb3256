import fc from 'fast-check'
import { attributeBytes, attributeValue } from '../../../lib/aws/encoding/attribute-values.ts'

const refusalAt = (path: string) =>
  expect.objectContaining({ code: 'unsupported-value', message: expect.stringContaining(`attribute ${path} `) })

class Money {
  readonly amount = 1
}

/** Reads an attribute value back, as any client would. */
function read(value: ReturnType<typeof attributeValue>): unknown {
  if (value.N !== undefined) return value.N
  if (value.L) return value.L.map(read)
  if (value.M) return Object.fromEntries(Object.entries(value.M).map(([name, element]) => [name, read(element)]))
  return value.S ?? value.B ?? value.BOOL ?? null
}

describe('attributeValue', () => {
  test('takes every kind of value that comes back unchanged', () => {
    const value = {
      text: 'ä',
      empty: '',
      whole: 9007199254740991,
      broken: -0.1,
      small: 1e-7,
      large: 10n ** 37n + 1n,
      round: 10n ** 100n,
      yes: true,
      nothing: null,
      bytes: Uint8Array.of(0, 255),
      list: [1, [], {}],
      absent: undefined,
      'a.b': Object.create(null),
    }
    expect(attributeValue(value, 'row')).toEqual({
      M: {
        text: { S: 'ä' },
        empty: { S: '' },
        whole: { N: '9007199254740991' },
        broken: { N: '-0.1' },
        small: { N: '1e-7' },
        large: { N: '10000000000000000000000000000000000001' },
        round: { N: `1${'0'.repeat(100)}` },
        yes: { BOOL: true },
        nothing: { NULL: true },
        bytes: { B: Uint8Array.of(0, 255) },
        list: { L: [{ N: '1' }, { L: [] }, { M: {} }] },
        'a.b': { M: {} },
      },
    })
  })

  test('any JSON comes back as it was', () => {
    const sameNumbers = (value: unknown): unknown => {
      if (typeof value === 'number') return String(value)
      if (Array.isArray(value)) return value.map(sameNumbers)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([name, element]) => [name, sameNumbers(element)]))
    }
    const leaf = fc.oneof(
      fc.boolean(),
      fc.constant(null),
      fc.string({ unit: 'grapheme' }),
      fc.integer(),
      fc.double({ noNaN: true, min: 1e-120, max: 1e120 }),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(
          fc.string({ minLength: 1, maxLength: 5 }).filter((name) => name !== '__proto__'),
          tie('tree'),
          { maxKeys: 3 },
        ),
      ),
    }))
    fc.assert(fc.property(tree, (value) => expect(read(attributeValue(value, 'row'))).toEqual(sameNumbers(value))))
  })

  const cycle: unknown[] = []
  cycle.push(cycle)
  test.each<[string, unknown, string]>([
    ['NaN', { a: Number.NaN }, 'row.a'],
    ['infinity', { a: [1, Number.NEGATIVE_INFINITY] }, 'row.a[1]'],
    ['a number that is too small', { a: 1e-200 }, 'row.a'],
    ['a number that is too large', { a: 1e200 }, 'row.a'],
    ['39 digits', { a: 10n ** 38n + 1n }, 'row.a'],
    ['undefined in a list', { a: [undefined] }, 'row.a[0]'],
    ['a hole in a list', { a: new Array(1) }, 'row.a[0]'],
    ['a function', { a: { b: () => 1 } }, 'row.a.b'],
    ['a symbol', { a: Symbol('s') }, 'row.a'],
    ['a Date', { a: new Date(0) }, 'row.a'],
    ['a Map', { a: new Map() }, 'row.a'],
    ['a Set', { a: new Set() }, 'row.a'],
    ['an instance of a class', { a: new Money() }, 'row.a'],
    ['other typed arrays', { a: new Float64Array(1) }, 'row.a'],
    ['half a surrogate pair', { a: '\ud800' }, 'row.a'],
    ['an attribute without a name', { a: { '': 1 } }, 'row.a'],
    ['a name that reaches a prototype', { a: JSON.parse('{"__proto__":1}') }, 'row.a'],
    ['a cycle', cycle, `row${'[0]'.repeat(31)}`],
  ])('refuses %s and names where it is', (_, value, path) => {
    expect(() => attributeValue(value, 'row')).toThrow(refusalAt(path))
  })
})

describe('attributeBytes', () => {
  test.each<[unknown, number]>([
    ['äb', 3],
    [Uint8Array.of(1, 2), 2],
    [true, 1],
    [null, 1],
    [[true, true], 7],
    [{ ab: 'c' }, 7],
  ])('%p counts as %d', (value, bytes) => {
    expect(attributeBytes(attributeValue(value, 'row'))).toBe(bytes)
  })

  test('a number counts at least as much as DynamoDB says: half a byte per digit and one', () => {
    expect(attributeBytes({ N: '1234567890' })).toBeGreaterThanOrEqual(6)
    expect(attributeBytes({ N: '1'.repeat(38) })).toBeGreaterThanOrEqual(20)
  })
})
