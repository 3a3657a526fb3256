import fc from 'fast-check'
import type { AttributeValue, Item, QueryInput } from '../../../lib/emulator/dynamodb/index.ts'
import { contents, errorOf, key, modelWithTable, number, put, sortedTable, TableName, text } from './model-fixture.ts'

const sortKeys = {
  S: fc.constantFrom('a', 'ab', 'b', 'é', '\uffff', '🗝️', 'a\0', 'z').map(text),
  N: fc.oneof(fc.integer({ min: -20, max: 20 }), fc.constantFrom('1e2', '-0.5', '12345678901234567890.5')).map(number),
  B: fc.uint8Array({ minLength: 1, maxLength: 3 }).map((B): AttributeValue => ({ B })),
}

/** Orders keys of one type by rules of its own: UTF-8, numbers (exact enough for these), bytes. */
function compare(a: AttributeValue, b: AttributeValue): number {
  if (a.N !== undefined) return Number(a.N) - Number(b.N)
  return Buffer.compare(Buffer.from(a.S ?? a.B ?? ''), Buffer.from(b.S ?? b.B ?? ''))
}

const operators: Record<string, (value: AttributeValue, low: AttributeValue, high: AttributeValue) => boolean> = {
  's = :a': (s, a) => compare(s, a) === 0,
  's < :a': (s, a) => compare(s, a) < 0,
  's <= :a': (s, a) => compare(s, a) <= 0,
  's > :a': (s, a) => compare(s, a) > 0,
  's >= :a': (s, a) => compare(s, a) >= 0,
  's BETWEEN :a AND :b': (s, a, b) => compare(s, a) >= 0 && compare(s, b) <= 0,
  'begins_with(s, :a)': (s, a) => {
    const [whole, prefix] = [s, a].map(({ S, B }) => Buffer.from(S ?? B ?? '')) as [Buffer, Buffer]
    return whole.subarray(0, prefix.length).equals(prefix)
  },
}

const query = fc.constantFrom('S' as const, 'N' as const, 'B' as const).chain((type) =>
  fc.record({
    type: fc.constant(type),
    keys: fc.array(sortKeys[type], { maxLength: 20 }),
    bounds: fc.tuple(sortKeys[type], sortKeys[type]).map((pair) => [...pair].sort(compare) as typeof pair),
    operator: fc.constantFrom(...Object.keys(operators).filter((name) => type !== 'N' || !name.startsWith('begins'))),
    forward: fc.boolean(),
    limit: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
  }),
)

it('a query finds what its condition says, in order, however it is cut into pages', () => {
  fc.assert(
    fc.property(query, ({ type, keys, bounds: [low, high], operator, forward, limit }) => {
      const { model } = modelWithTable(sortedTable(type))
      for (const s of keys) for (const p of ['k', 'other']) put(model, { p: text(p), s })
      const values: Record<string, AttributeValue> = { ':p': text('k'), ':a': low }
      if (operator.includes(':b')) values[':b'] = high
      const found: AttributeValue[] = []
      let ExclusiveStartKey: Item | undefined
      do {
        const page = model.call('Query', {
          TableName,
          KeyConditionExpression: `p = :p AND ${operator}`,
          ExpressionAttributeValues: values,
          ScanIndexForward: forward,
          Limit: limit,
          ExclusiveStartKey,
        })
        found.push(...(page.Items ?? []).map(({ s }) => s as AttributeValue))
        ExclusiveStartKey = page.LastEvaluatedKey
      } while (ExclusiveStartKey !== undefined)
      const stored = contents(model)
        .filter(({ p }) => p?.S === 'k')
        .map(({ s }) => s as AttributeValue)
      const expected = stored.filter((s) => operators[operator]?.(s, low, high)).sort(compare)
      expect(found).toEqual(forward ? expected : expected.reverse())
    }),
  )
})

it('a scan shows every item that stays throughout it once, whatever is written between its pages', () => {
  const write = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.boolean())
  fc.assert(
    fc.property(
      fc.array(write, { maxLength: 30 }),
      fc.array(write, { maxLength: 20 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      (before, meanwhile, Limit, TotalSegments) => {
        const { model } = modelWithTable(sortedTable())
        const change = ([n, isPut]: [number, boolean]) => {
          const Key = key(`k${n % 7}`, n)
          if (isPut) put(model, Key)
          else model.call('DeleteItem', { TableName, Key })
        }
        before.forEach(change)
        const touched = new Set(meanwhile.map(([n]) => n))
        const stays = contents(model)
          .map(({ s }) => Number(s?.N))
          .filter((n) => !touched.has(n))
        const writes = meanwhile.values()
        const seen: number[] = []
        for (let Segment = 0; Segment < TotalSegments; Segment += 1) {
          let ExclusiveStartKey: Item | undefined
          do {
            const page = model.call('Scan', { TableName, Limit, Segment, TotalSegments, ExclusiveStartKey })
            seen.push(...(page.Items ?? []).map(({ s }) => Number(s?.N)))
            ExclusiveStartKey = page.LastEvaluatedKey
            const next = writes.next()
            if (!next.done) change(next.value)
          } while (ExclusiveStartKey !== undefined)
        }
        const seenAndStaying = seen.filter((n) => !touched.has(n))
        expect(seenAndStaying.sort((a, b) => a - b)).toEqual(stays.sort((a, b) => a - b))
      },
    ),
  )
})

it('a page ends after 1 MB of what was looked at, filtered out or not', () => {
  const { model } = modelWithTable(sortedTable())
  for (let s = 0; s < 9; s += 1) put(model, { ...key('k', s), d: text('x'.repeat(300_000)) })
  const input: QueryInput = {
    TableName,
    KeyConditionExpression: 'p = :p',
    FilterExpression: 'd = :p',
    ExpressionAttributeValues: { ':p': text('k') },
    ReturnConsumedCapacity: 'TOTAL',
    ConsistentRead: true,
  }
  const first = model.call('Query', input)
  expect(first).toMatchObject({ Items: [], Count: 0, ScannedCount: 4, LastEvaluatedKey: key('k', 3) })
  expect(first.ConsumedCapacity?.CapacityUnits).toBe(Math.ceil((4 * 300_005) / 4_096))
  const second = model.call('Query', { ...input, ExclusiveStartKey: first.LastEvaluatedKey })
  const third = model.call('Query', { ...input, ExclusiveStartKey: second.LastEvaluatedKey })
  expect([second.ScannedCount, third.ScannedCount, third.LastEvaluatedKey]).toEqual([4, 1, undefined])
})

it('an item of a table without sort keys is a page of its own', () => {
  const { model } = modelWithTable()
  put(model, key('k'))
  const input = {
    TableName,
    KeyConditionExpression: 'p = :p',
    ExpressionAttributeValues: { ':p': text('k') },
    Limit: 1,
  }
  const { Items, LastEvaluatedKey } = model.call('Query', input)
  expect([Items, LastEvaluatedKey]).toEqual([[key('k')], key('k')])
  expect(model.call('Query', { ...input, ExclusiveStartKey: LastEvaluatedKey })).toMatchObject({ Items: [], Count: 0 })
})

it('a projection shows the parts that were asked for, a count shows none', () => {
  const { model } = modelWithTable(sortedTable())
  put(model, { ...key('k', 1), m: { M: { a: number(1), l: { L: [number(0), number(1), number(2)] } } }, o: text('o') })
  const input = { TableName, KeyConditionExpression: 'p = :p', ExpressionAttributeValues: { ':p': text('k') } }
  const parts = model.call('Query', { ...input, ProjectionExpression: 'm.l[2], m.l[0], s, absent.x' })
  expect(parts.Items).toEqual([{ s: number(1), m: { M: { l: { L: [number(0), number(2)] } } } }])
  expect(model.call('Query', { ...input, Select: 'COUNT' })).toEqual({ Count: 1, ScannedCount: 1 })
})

it.each([
  ['s = :p', 'Query condition missed key schema element: p'],
  ['p = :p OR s = :n', 'Query key condition not supported'],
  ['p > :p', 'Query key condition not supported'],
  ['p = :p AND s <> :n', 'Query key condition not supported'],
  ['p = :p AND attribute_exists(s)', 'Query key condition not supported'],
  ['p = :n', 'Condition parameter type does not match schema type'],
  ['p = :p AND o = :n', 'Query condition missed key schema element: s'],
])('a query by %s is refused', (KeyConditionExpression, message) => {
  const { model } = modelWithTable(sortedTable())
  const values: Item = { ':p': text('k'), ':n': number(1) }
  const ExpressionAttributeValues = Object.fromEntries(
    Object.entries(values).filter(([name]) => KeyConditionExpression.includes(name)),
  )
  const error = errorOf(() => model.call('Query', { TableName, KeyConditionExpression, ExpressionAttributeValues }))
  expect(error.name).toBe('ValidationException')
  expect(error.message).toContain(message)
})
