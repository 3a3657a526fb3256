import type { DynamoFaults } from '../../../lib/emulator/dynamodb/index.ts'
import {
  contents,
  errorOf,
  get,
  hashTable,
  key,
  modelWithTable,
  number,
  put,
  TableName,
  text,
} from './model-fixture.ts'

const keys = (count: number) => Array.from({ length: count }, (_, i) => key(`k${i}`))
const puts = (count: number) => keys(count).map((Item) => ({ PutRequest: { Item } }))

describe('a batch', () => {
  it('is read from several tables, without the items that are not there', () => {
    const { model } = modelWithTable()
    model.call('CreateTable', { ...hashTable, TableName: 'other' })
    put(model, { ...key('a'), n: number(1), m: number(2) })
    model.call('PutItem', { TableName: 'other', Item: key('b') })
    const { Responses, UnprocessedKeys } = model.call('BatchGetItem', {
      RequestItems: {
        [TableName]: { Keys: [key('a'), key('b')], ProjectionExpression: 'm' },
        other: { Keys: [key('b')] },
      },
    })
    expect(Responses).toEqual({ [TableName]: [{ m: number(2) }], other: [key('b')] })
    expect(UnprocessedKeys).toEqual({})
  })

  it('of more than 16 MB leaves keys unprocessed, and asking again for those gets the rest', () => {
    const { model } = modelWithTable()
    const all = keys(60)
    for (const item of all) put(model, { ...item, d: text('x'.repeat(400_000)) })
    const seen: (string | undefined)[] = []
    let RequestItems: Parameters<typeof model.call<'BatchGetItem'>>[1]['RequestItems'] = {
      [TableName]: { Keys: all, ConsistentRead: true },
    }
    const counts: number[] = []
    while (Object.keys(RequestItems).length > 0) {
      const answer = model.call('BatchGetItem', { RequestItems })
      const items = answer.Responses[TableName] ?? []
      counts.push(items.length)
      seen.push(...items.map(({ p }) => p?.S))
      RequestItems = answer.UnprocessedKeys
      expect(RequestItems[TableName]?.ConsistentRead ?? true).toBe(true)
    }
    expect(counts).toEqual([41, 19])
    expect(seen.sort()).toEqual(all.map(({ p }) => p?.S).sort())
  })

  it('is written without regard to what is there', () => {
    const { model } = modelWithTable()
    put(model, { ...key('k1'), old: number(1) })
    model.call('BatchWriteItem', {
      RequestItems: { [TableName]: [...puts(3), { DeleteRequest: { Key: key('gone') } }] },
    })
    expect(contents(model)).toHaveLength(3)
    expect(get(model, key('k1'))).toEqual(key('k1'))
  })

  it('is refused as a whole where one of it is wrong', () => {
    const { model } = modelWithTable()
    const write = (requests: object[]) =>
      errorOf(() => model.call('BatchWriteItem', { RequestItems: { [TableName]: requests } })).message
    expect(write(puts(26))).toContain('less than or equal to 25')
    expect(write([])).toContain('greater than or equal to 1')
    expect(write([...puts(2), { DeleteRequest: { Key: key('k1') } }])).toContain('contains duplicates')
    expect(write([...puts(1), { PutRequest: { Item: { n: number(1) } } }])).toContain('Missing the key p')
    expect(write([...puts(1), { PutRequest: { Item: key('x') }, DeleteRequest: { Key: key('y') } }])).toContain(
      'one put or one delete',
    )
    expect(contents(model)).toEqual([])
    const read = (count: number) =>
      errorOf(() => model.call('BatchGetItem', { RequestItems: { [TableName]: { Keys: keys(count) } } })).message
    expect(read(101)).toContain('less than or equal to 100')
  })
})

describe('an operation that its owner wants to fail', () => {
  it('is throttled before it has any effect, and in a batch for the rows concerned', () => {
    const refused = new Set(['k1'])
    const refuse: DynamoFaults['refuse'] = ({ key: row }) => (refused.has(row?.p?.S ?? '') ? 'throttle' : undefined)
    const { model } = modelWithTable(hashTable, { faults: { refuse } })
    expect(errorOf(() => put(model, key('k1'))).name).toBe('ProvisionedThroughputExceededException')
    const { UnprocessedItems } = model.call('BatchWriteItem', { RequestItems: { [TableName]: puts(3) } })
    expect(UnprocessedItems).toEqual({ [TableName]: [{ PutRequest: { Item: key('k1') } }] })
    const { Responses, UnprocessedKeys } = model.call('BatchGetItem', {
      RequestItems: { [TableName]: { Keys: keys(3) } },
    })
    expect(Responses[TableName]?.map(({ p }) => p?.S).sort()).toEqual(['k0', 'k2'])
    expect(UnprocessedKeys).toEqual({ [TableName]: { Keys: [key('k1')] } })
    const alone = { RequestItems: { [TableName]: { Keys: [key('k1')] } } }
    expect(errorOf(() => model.call('BatchGetItem', alone)).name).toBe('ProvisionedThroughputExceededException')
    refused.clear()
    expect(get(model, key('k1'))).toBeUndefined()
    expect(contents(model)).toHaveLength(2)
  })

  it('meets a transaction under way', () => {
    const { model } = modelWithTable(hashTable, {
      faults: { refuse: ({ key: row }) => (row?.p?.S === 'busy' ? 'conflict' : undefined) },
    })
    expect(errorOf(() => put(model, key('busy'))).name).toBe('TransactionConflictException')
    const TransactItems = ['free', 'busy'].map((p) => ({ Put: { TableName, Item: key(p) } }))
    expect(errorOf(() => model.call('TransactWriteItems', { TransactItems })).CancellationReasons).toEqual([
      { Code: 'None' },
      { Code: 'TransactionConflict', Message: expect.any(String) },
    ])
    expect(contents(model)).toEqual([])
  })

  it('reads the version before the last where it is stale, but never with ConsistentRead', () => {
    const { model } = modelWithTable(hashTable, { faults: { isStale: () => true } })
    const read = (ConsistentRead: boolean) =>
      model.call('GetItem', { TableName, Key: key('k'), ConsistentRead }).Item?.n?.N
    const both = () => [read(false), read(true)]
    for (const n of [1, 2]) put(model, { ...key('k'), n: number(n) })
    expect(both()).toEqual(['1', '2'])
    model.call('DeleteItem', { TableName, Key: key('k') })
    expect(both()).toEqual(['2', undefined])
    put(model, { ...key('k'), n: number(3) })
    expect(both()).toEqual([undefined, '3'])
    expect(model.call('Scan', { TableName }).Count).toBe(0)
    expect(model.call('Scan', { TableName, ConsistentRead: true }).Count).toBe(1)
  })
})
