import { createDynamoModel, type Item } from '../../../lib/emulator/dynamodb/index.ts'
import {
  contents,
  errorOf,
  get,
  hashTable,
  key,
  modelWithTable,
  number,
  put,
  sortedTable,
  TableName,
  testClock,
  text,
} from './model-fixture.ts'

describe('an item', () => {
  it('comes back as it was put, of every type, and shares nothing with what was put or what comes back', () => {
    const { model } = modelWithTable()
    const bytes = Buffer.from([1, 2, 255])
    const list = [text('a'), { M: { deep: { B: bytes } } }]
    const item: Item = {
      ...key('k'),
      empty: text(''),
      bytes: { B: bytes },
      flag: { BOOL: false },
      nothing: { NULL: true },
      numbers: { NS: ['1', '-2.5'] },
      binaries: { BS: [Uint8Array.of(1), Uint8Array.of(2)] },
      list: { L: list },
    }
    put(model, item)
    const expected = structuredClone(get(model, key('k')))
    bytes.fill(0)
    list.length = 0
    const shown = get(model, key('k')) as { bytes: { B: Uint8Array }; list: { L: unknown[] } }
    shown.bytes.B.fill(7)
    shown.list.L.length = 0
    expect(get(model, key('k'))).toEqual(expected)
    expect(expected).toMatchObject({ list: { L: [text('a'), { M: { deep: { B: Uint8Array.of(1, 2, 255) } } }] } })
  })

  it('is found by a key of any text, number or bytes, however it is written', () => {
    for (const p of ['é', 'e\u0301', '🗝️', ' ', '\0', '__proto__', 'constructor', 'x'.repeat(2_048)]) {
      const { model } = modelWithTable()
      put(model, { ...key(p), n: number(1) })
      expect(contents(model)).toEqual([{ ...key(p), n: number(1) }])
      expect(get(model, key(`${p}x`.slice(-2_048)))).toEqual(p.length < 2_048 ? undefined : expect.anything())
    }
    const { model } = modelWithTable(sortedTable())
    put(model, { ...key('k'), s: number('1.50'), v: number(1) })
    expect(get(model, { ...key('k'), s: number('150e-2') })).toMatchObject({ s: number('1.5'), v: number(1) })
  })

  it('of one partition key and another sort key is another, wherever the two are cut', () => {
    const { model } = modelWithTable(sortedTable('S'))
    const keys: Item[] = [
      { p: text('a'), s: text('bc') },
      { p: text('ab'), s: text('c') },
      { p: text('1:a'), s: text('b') },
    ]
    model.call('BatchWriteItem', { RequestItems: { [TableName]: keys.map((Item) => ({ PutRequest: { Item } })) } })
    expect(contents(model)).toHaveLength(3)
  })

  it.each<[string, Item, string]>([
    ['has no key', { n: number(1) }, 'Missing the key p in the item'],
    ['has a key of another type', { p: number(1) }, 'Type mismatch for key p expected: S actual: N'],
    ['has an empty key', key(''), 'cannot contain an empty string value. Key: p'],
    ['has a key of 2,049 bytes', key(`${'é'.repeat(1_024)}x`), 'maximum size limit of2048 bytes'],
    ['has an attribute without a type', { ...key('k'), a: {} }, 'exactly one of the supported datatypes'],
    ['has an attribute of two types', { ...key('k'), a: { S: 'a', N: '1' } }, 'more than one datatypes set'],
    ['has an empty set', { ...key('k'), a: { NS: [] } }, 'An number set  may not be empty'],
    ['has a set with equal elements', { ...key('k'), a: { NS: ['1', '1.0'] } }, 'contains duplicates'],
    ['has a number that is none', { ...key('k'), a: number('x') }, 'cannot be converted to a numeric value: x'],
    ['has half a surrogate pair', { ...key('k'), a: text('\ud800') }, 'half a surrogate pair'],
    ['has 33 levels', { ...key('k'), a: nested(33) }, 'Nesting Levels have exceeded'],
  ])('that %s is refused', (_, item, message) => {
    const { model } = modelWithTable()
    const error = errorOf(() => put(model, item))
    expect(error.name).toBe('ValidationException')
    expect(error.message).toContain(message)
    expect(contents(model)).toEqual([])
  })

  it('may have 32 levels', () => {
    const { model } = modelWithTable()
    put(model, { ...key('k'), a: nested(32) })
    expect(get(model, key('k'))).toEqual({ ...key('k'), a: nested(32) })
  })

  it('is shown to whose condition it failed, if asked, and stays as it was', () => {
    const { model } = modelWithTable()
    put(model, { ...key('k'), v: number(2) })
    const condition = {
      ConditionExpression: 'attribute_not_exists(p) OR v < :v',
      ExpressionAttributeValues: { ':v': number(2) },
    }
    const failed = (ReturnValuesOnConditionCheckFailure?: 'ALL_OLD') =>
      errorOf(() =>
        model.call('PutItem', {
          TableName,
          Item: { ...key('k'), v: number(9) },
          ...condition,
          ReturnValuesOnConditionCheckFailure,
        }),
      )
    expect(failed('ALL_OLD')).toMatchObject({
      name: 'ConditionalCheckFailedException',
      message: 'The conditional request failed',
      Item: { ...key('k'), v: number(2) },
    })
    expect(failed().Item).toBeUndefined()
    expect(get(model, key('k'))).toEqual({ ...key('k'), v: number(2) })
  })
})

/** A value of so many levels. */
function nested(levels: number): Item[string] {
  return levels === 1 ? text('leaf') : { L: [nested(levels - 1)] }
}

describe('a table', () => {
  it('is described, listed in pages and gone after it is deleted', () => {
    const model = createDynamoModel({ clock: testClock(), region: 'eu-west-1' })
    for (const name of ['ccc', 'aaa', 'bbb']) model.call('CreateTable', { ...hashTable, TableName: name })
    const first = model.call('ListTables', { Limit: 2 })
    expect(first).toEqual({ TableNames: ['aaa', 'bbb'], LastEvaluatedTableName: 'bbb' })
    expect(model.call('ListTables', { ExclusiveStartTableName: first.LastEvaluatedTableName })).toEqual({
      TableNames: ['ccc'],
    })
    model.call('PutItem', { TableName: 'bbb', Item: key('four') })
    expect(model.call('DescribeTable', { TableName: 'bbb' }).Table).toMatchObject({
      TableArn: 'arn:aws:dynamodb:eu-west-1:000000000000:table/bbb',
      TableStatus: 'ACTIVE',
      ItemCount: 1,
      TableSizeBytes: 5,
      KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
    })
    model.call('DeleteTable', { TableName: 'bbb' })
    expect(errorOf(() => model.call('DescribeTable', { TableName: 'bbb' }))).toMatchObject({
      name: 'ResourceNotFoundException',
      message: 'Requested resource not found: Table: bbb not found',
    })
    model.call('CreateTable', { ...hashTable, TableName: 'bbb' })
    expect(contents(model, 'bbb')).toEqual([])
  })

  it.each([
    ['exists', hashTable, 'ResourceInUseException', 'Table already exists: table'],
    ['has a name that is none', { ...hashTable, TableName: 'a/b' }, 'ValidationException', 'regular expression'],
    ['is provisioned', { ...hashTable, BillingMode: 'PROVISIONED' }, 'ValidationException', 'on-demand tables only'],
    [
      'has a key that is not defined',
      { ...sortedTable(), AttributeDefinitions: hashTable.AttributeDefinitions },
      'ValidationException',
      'not defined in AttributeDefinitions. Keys: [p, s]',
    ],
    [
      'has more definitions than keys',
      { ...sortedTable(), KeySchema: hashTable.KeySchema },
      'ValidationException',
      'does not exactly match',
    ],
    [
      'has a stream without a view',
      { ...hashTable, TableName: 'new', StreamSpecification: { StreamEnabled: true } },
      'ValidationException',
      'StreamViewType is required',
    ],
  ])('that %s is refused', (_, input, name, message) => {
    const { model } = modelWithTable()
    const error = errorOf(() => model.call('CreateTable', input))
    expect([error.name, error.message]).toEqual([name, expect.stringContaining(message)])
  })

  it('has operations of the model only', () => {
    const { model } = modelWithTable()
    expect(errorOf(() => model.call('ExecuteStatement' as 'GetItem', {} as never))).toMatchObject({
      name: 'UnknownOperationException',
      message: expect.stringContaining("no operation 'ExecuteStatement'. It has: BatchGetItem, "),
    })
  })
})
