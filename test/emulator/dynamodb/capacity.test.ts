import fc from 'fast-check'
import type { AttributeValue, Item } from '../../../lib/emulator/dynamodb/index.ts'
import { itemBytes } from '../../../lib/emulator/dynamodb/value.ts'
import { contents, errorOf, key, modelWithTable, number, put, sortedTable, TableName, text } from './model-fixture.ts'

const of = (bytes: number): Item => ({ ...key('k'), d: text('x'.repeat(bytes - 'pkd'.length)) })
const ReturnConsumedCapacity = 'TOTAL' as const

describe('the size of an item', () => {
  it.each<[string, AttributeValue, number]>([
    ['text in UTF-8', text('é🗝️'), 9],
    ['bytes', { B: Buffer.alloc(7) }, 7],
    ['a number of one digit', number(7), 2],
    ['a number of three digits', number(123), 3],
    ['a negative number', number(-123), 4],
    ['zero', number(0), 1],
    ['a boolean', { BOOL: false }, 1],
    ['a null', { NULL: true }, 1],
    ['an empty list', { L: [] }, 3],
    ['a list', { L: [text('ab'), { BOOL: true }] }, 3 + 1 + 2 + 1 + 1],
    ['a map', { M: { ab: text('c') } }, 3 + 1 + 2 + 1],
    ['a set', { SS: ['ab', 'c'] }, 3],
  ])('counts %s', (_, value, bytes) => {
    expect(itemBytes({ name: value })).toBe('name'.length + bytes)
  })

  it('is limited to 400 KB, names included', () => {
    const { model } = modelWithTable()
    put(model, of(409_600))
    expect(errorOf(() => put(model, of(409_601)))).toMatchObject({
      name: 'ValidationException',
      message: 'Item size has exceeded the maximum allowed size',
    })
    const grow = { UpdateExpression: 'SET e = :e', ExpressionAttributeValues: { ':e': text('x') } }
    expect(errorOf(() => model.call('UpdateItem', { TableName, Key: key('k'), ...grow })).message).toBe(
      'Item size to update has exceeded the maximum allowed size',
    )
    expect(contents(model)).toEqual([of(409_600)])
  })
})

describe('the units', () => {
  const bytes = fc.oneof(
    fc.integer({ min: 4, max: 30 }),
    fc.integer({ min: 1_000, max: 9_000 }),
    fc.constantFrom(1_024, 1_025, 4_096, 4_097, 8_192),
  )

  it('of a write are the KB of the larger of the item before and after, at least one', () => {
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 1, maxLength: 6 }), (sizes) => {
        const { model } = modelWithTable()
        let before = 0
        for (const after of sizes) {
          const { ConsumedCapacity } = model.call('PutItem', { TableName, Item: of(after), ReturnConsumedCapacity })
          expect(ConsumedCapacity).toEqual({ TableName, CapacityUnits: Math.ceil(Math.max(before, after) / 1_024) })
          before = after
        }
        const deleted = model.call('DeleteItem', { TableName, Key: key('k'), ReturnConsumedCapacity })
        expect(deleted.ConsumedCapacity?.CapacityUnits).toBe(Math.ceil(before / 1_024))
        const nothing = model.call('DeleteItem', { TableName, Key: key('k'), ReturnConsumedCapacity })
        expect(nothing.ConsumedCapacity?.CapacityUnits).toBe(1)
      }),
    )
  })

  it('of a read are the 4 KB of it, half of them eventually consistent, double in a transaction', () => {
    fc.assert(
      fc.property(bytes, (size) => {
        const { model } = modelWithTable()
        put(model, of(size))
        const units = Math.ceil(size / 4_096)
        const read = (ConsistentRead: boolean) =>
          model.call('GetItem', { TableName, Key: key('k'), ConsistentRead, ReturnConsumedCapacity }).ConsumedCapacity
        expect(read(true)?.CapacityUnits).toBe(units)
        expect(read(false)?.CapacityUnits).toBe(units / 2)
        const { ConsumedCapacity } = model.call('TransactGetItems', {
          TransactItems: [{ Get: { TableName, Key: key('k') } }, { Get: { TableName, Key: key('none') } }],
          ReturnConsumedCapacity,
        })
        const CapacityUnits = 2 * units + 2
        expect(ConsumedCapacity).toEqual([{ TableName, CapacityUnits, ReadCapacityUnits: CapacityUnits }])
      }),
    )
  })

  it('of a query or a scan are those of all it looked at together; of a batch, of each item by itself', () => {
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 1, maxLength: 8 }), (sizes) => {
        const { model } = modelWithTable(sortedTable())
        const items = sizes.map((size, s) => ({ ...key('k', s), d: text('x'.repeat(size)) }))
        items.forEach((item) => {
          put(model, item)
        })
        const all = items.reduce((sum, item) => sum + itemBytes(item), 0)
        const one = items.reduce((sum, item) => sum + Math.ceil(itemBytes(item) / 4_096), 0)
        const values = { ExpressionAttributeValues: { ':p': text('k') } }
        const page = { TableName, ReturnConsumedCapacity, ConsistentRead: true, ...values }
        const queried = model.call('Query', {
          ...page,
          KeyConditionExpression: 'p = :p',
          FilterExpression: 'd = :p',
        })
        expect(queried.ConsumedCapacity?.CapacityUnits).toBe(Math.ceil(all / 4_096))
        const scanned = model.call('Scan', { TableName, ReturnConsumedCapacity })
        expect(scanned.ConsumedCapacity?.CapacityUnits).toBe(Math.ceil(all / 4_096) / 2)
        const { ConsumedCapacity } = model.call('BatchGetItem', {
          RequestItems: { [TableName]: { Keys: items.map((_, s) => key('k', s)), ConsistentRead: true } },
          ReturnConsumedCapacity: 'INDEXES',
        })
        expect(ConsumedCapacity).toEqual([{ TableName, CapacityUnits: one, Table: { CapacityUnits: one } }])
      }),
    )
  })

  it('of a failed condition are those of writing the item that is there, at least one', () => {
    const { model } = modelWithTable()
    const failing = { ConditionExpression: 'attribute_exists(nothing)' }
    const failed = () => {
      const before = model.consumedUnits(TableName).write
      errorOf(() => model.call('PutItem', { TableName, Item: of(9_000), ...failing }))
      return model.consumedUnits(TableName).write - before
    }
    expect(failed()).toBe(1)
    put(model, of(3_000))
    expect(failed()).toBe(3)
  })

  it('of a transaction are double, and used up when it is cancelled', () => {
    const { model } = modelWithTable()
    put(model, of(3_000))
    const used = (write: () => unknown) => {
      const before = model.consumedUnits(TableName).write
      const answer = write()
      return [model.consumedUnits(TableName).write - before, answer]
    }
    const check = (ConditionExpression: string) => ({
      ConditionCheck: { TableName, Key: key('k'), ConditionExpression },
    })
    const Put = { TableName, Item: { ...key('other'), n: number(1) } }
    const done = { TransactItems: [check('attribute_exists(d)'), { Put }], ReturnConsumedCapacity }
    const CapacityUnits = 2 * 3 + 2
    expect(used(() => model.call('TransactWriteItems', done))).toEqual([
      CapacityUnits,
      { ConsumedCapacity: [{ TableName, CapacityUnits, WriteCapacityUnits: CapacityUnits }] },
    ])
    const refused = { TransactItems: [check('attribute_not_exists(d)'), { Put }] }
    expect(used(() => errorOf(() => model.call('TransactWriteItems', refused)).name)).toEqual([
      CapacityUnits,
      'TransactionCanceledException',
    ])
  })

  it('are the same for a write of nothing new', () => {
    const { model } = modelWithTable()
    const write = () => model.call('PutItem', { TableName, Item: of(2_000), ReturnConsumedCapacity }).ConsumedCapacity
    expect([write()?.CapacityUnits, write()?.CapacityUnits]).toEqual([2, 2])
  })
})
