/**
 * Conditions against a naive oracle: a random tree is written as an expression and also evaluated here, over plain JavaScript
 * values, by rules that are written down anew.
 */
import fc from 'fast-check'
import { modelWithTable, number, TableName, text } from './model-fixture.ts'

/** What items of these tests hold: integers, text, sets of text, and a map with a list. */
type Plain = number | string | boolean | ReadonlySet<string> | readonly Plain[] | { readonly [name: string]: Plain }

const attributes = ['a', 'b', 'c', 'm.x', 'm.l[0]', 'm.l[1]', 'absent', 'm.absent']
const scalar = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom('', 'u', 'uv', 'v', 'é', '🗝️'))
const plain: fc.Arbitrary<Plain> = fc.oneof(
  { weight: 3, arbitrary: scalar },
  fc.boolean(),
  fc.uniqueArray(fc.constantFrom('u', 'v', 'uv'), { minLength: 1 }).map((list) => new Set(list)),
  fc.array(scalar, { maxLength: 3 }),
)
const itemOf = fc.record(
  { a: plain, b: plain, c: plain, m: fc.record({ x: plain, l: fc.array(plain, { maxLength: 2 }) }) },
  { requiredKeys: [] },
)

function toValue(value: Plain): object {
  if (typeof value === 'number') return number(value)
  if (typeof value === 'string') return text(value)
  if (typeof value === 'boolean') return { BOOL: value }
  if (value instanceof Set) return { SS: [...value] }
  if (Array.isArray(value)) return { L: value.map(toValue) }
  return { M: Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toValue(member)])) }
}

function lookUp(item: Record<string, Plain>, path: string): Plain | undefined {
  let at: unknown = item
  for (const step of path.replaceAll('[', '.').replaceAll(']', '').split('.')) {
    if (typeof at !== 'object' || at === null || at instanceof Set) return undefined
    at = (at as Record<string, unknown>)[step]
  }
  return at as Plain | undefined
}

const kindOf = (value: Plain): string => (value instanceof Set ? 'set' : Array.isArray(value) ? 'list' : typeof value)

function same(a: Plain, b: Plain): boolean {
  const plainOf = (value: Plain) => JSON.stringify(toValue(value instanceof Set ? new Set([...value].sort()) : value))
  return plainOf(a) === plainOf(b)
}

/** Orders as DynamoDB does: numbers, or text by its UTF-8. */
function less(a: Plain, b: Plain): boolean | undefined {
  if (typeof a === 'number' && typeof b === 'number') return a < b
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0
  return undefined
}

interface Tree {
  readonly source: string
  readonly values: readonly Plain[]
  readonly holds: (item: Record<string, Plain>) => boolean
}

/** `?` stands for the next literal. */
const path = fc.constantFrom(...attributes)
const comparison = fc
  .tuple(path, fc.constantFrom('=', '<>', '<', '<=', '>', '>='), scalar)
  .map(([left, operator, literal]): Tree => {
    const holds = (item: Record<string, Plain>) => {
      const value = lookUp(item, left)
      if (value === undefined) return operator === '<>'
      if (operator === '=') return same(value, literal)
      if (operator === '<>') return !same(value, literal)
      const [under, over] = [less(value, literal), less(literal, value)]
      if (under === undefined || over === undefined) return false
      return { '<': under, '<=': !over, '>': over, '>=': !under }[operator as '<' | '<=' | '>' | '>=']
    }
    return { source: `${left} ${operator} ?`, values: [literal], holds }
  })
const between = fc.tuple(path, fc.integer({ min: -2, max: 0 }), fc.integer({ min: 0, max: 2 })).map(
  ([left, low, high]): Tree => ({
    source: `${left} BETWEEN ? AND ?`,
    values: [low, high],
    holds: (item) => {
      const value = lookUp(item, left)
      return typeof value === 'number' && value >= low && value <= high
    },
  }),
)
const oneOf = fc.tuple(path, fc.array(plain, { minLength: 1, maxLength: 3 })).map(
  ([left, list]): Tree => ({
    source: `${left} IN (${list.map(() => '?').join(', ')})`,
    values: list,
    holds: (item) => {
      const value = lookUp(item, left)
      return value !== undefined && list.some((candidate) => same(candidate, value))
    },
  }),
)
const exists = fc.tuple(path, fc.boolean()).map(
  ([left, expected]): Tree => ({
    source: `attribute_${expected ? '' : 'not_'}exists(${left})`,
    values: [],
    holds: (item) => (lookUp(item, left) !== undefined) === expected,
  }),
)
const begins = fc.tuple(path, fc.constantFrom('', 'u', 'uv', 'é')).map(
  ([left, prefix]): Tree => ({
    source: `begins_with(${left}, ?)`,
    values: [prefix],
    holds: (item) => {
      const value = lookUp(item, left)
      return typeof value === 'string' && value.startsWith(prefix)
    },
  }),
)
const contains = fc.tuple(path, scalar).map(
  ([left, element]): Tree => ({
    source: `contains(${left}, ?)`,
    values: [element],
    holds: (item) => {
      const value = lookUp(item, left)
      if (value instanceof Set) return typeof element === 'string' && value.has(element)
      if (Array.isArray(value)) return value.some((member) => same(member, element))
      return typeof value === 'string' && typeof element === 'string' && value.includes(element)
    },
  }),
)
const typeNames = { number: 'N', string: 'S', boolean: 'BOOL', set: 'SS', list: 'L', object: 'M' }
const type = fc.tuple(path, fc.constantFrom(...Object.entries(typeNames))).map(
  ([left, [kind, name]]): Tree => ({
    source: `attribute_type(${left}, ?)`,
    values: [name],
    holds: (item) => {
      const value = lookUp(item, left)
      return value !== undefined && kindOf(value) === kind
    },
  }),
)
const size = fc.tuple(path, fc.integer({ min: 0, max: 3 })).map(
  ([left, count]): Tree => ({
    source: `size(${left}) = ?`,
    values: [count],
    holds: (item) => {
      const value = lookUp(item, left)
      if (typeof value === 'string' || Array.isArray(value)) return value.length === count
      if (value instanceof Set) return value.size === count
      return typeof value === 'object' && Object.keys(value).length === count
    },
  }),
)

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    comparison,
    between,
    oneOf,
    exists,
    begins,
    contains,
    type,
    size,
    fc.tuple(tie('tree'), fc.constantFrom('AND', 'OR', 'and'), tie('tree')).map(
      ([left, operator, right]): Tree => ({
        source: `(${left.source}) ${operator} (${right.source})`,
        values: [...left.values, ...right.values],
        holds: (item) =>
          operator === 'OR' ? left.holds(item) || right.holds(item) : left.holds(item) && right.holds(item),
      }),
    ),
    tie('tree').map(
      (inner): Tree => ({ source: `NOT (${inner.source})`, values: inner.values, holds: (item) => !inner.holds(item) }),
    ),
  ),
}))

function expressionOf({ source, values }: Tree) {
  let used = 0
  const ConditionExpression = source.replaceAll('?', () => `:v${used++}`)
  const ExpressionAttributeValues = Object.fromEntries(values.map((value, i) => [`:v${i}`, toValue(value)]))
  return { ConditionExpression, ...(values.length === 0 ? {} : { ExpressionAttributeValues }) }
}

it('an item meets exactly the conditions that the oracle says', () => {
  const { model } = modelWithTable()
  const seen = { met: 0, failed: 0 }
  fc.assert(
    fc.property(itemOf, tree, (item, condition) => {
      const attributeValues = (toValue(item as Plain) as { M: Record<string, object> }).M
      model.call('PutItem', { TableName, Item: { p: text('k'), ...attributeValues } })
      const check = () =>
        model.call('TransactWriteItems', {
          TransactItems: [{ ConditionCheck: { TableName, Key: { p: text('k') }, ...expressionOf(condition) } }],
        })
      if (condition.holds(item as Record<string, Plain>)) {
        seen.met += 1
        expect(check).not.toThrow()
      } else {
        seen.failed += 1
        expect(check).toThrow('[ConditionalCheckFailed]')
      }
    }),
    { numRuns: 2_000 },
  )
  expect(Math.min(seen.met, seen.failed)).toBeGreaterThan(200)
})

it('AND binds more strongly than OR, and NOT more strongly than AND', () => {
  const { model } = modelWithTable()
  model.call('PutItem', { TableName, Item: { p: text('k'), yes: number(1) } })
  const holds = (ConditionExpression: string) => {
    try {
      model.call('UpdateItem', { TableName, Key: { p: text('k') }, ConditionExpression })
      return true
    } catch {
      return false
    }
  }
  const [yes, no] = ['attribute_exists(yes)', 'attribute_exists(absent)']
  expect(holds(`${yes} OR ${yes} AND ${no}`)).toBe(true)
  expect(holds(`(${yes} OR ${yes}) AND ${no}`)).toBe(false)
  expect(holds(`NOT ${yes} AND ${no}`)).toBe(false)
  expect(holds(`NOT (${yes} AND ${no})`)).toBe(true)
  expect(holds(`NOT ${no} OR ${no}`)).toBe(true)
})
