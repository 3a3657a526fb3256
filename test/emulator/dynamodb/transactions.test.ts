import type { TransactWriteItem } from '../../../lib/emulator/dynamodb/index.ts'
import {
  changes,
  contents,
  errorOf,
  get,
  hashTable,
  key,
  modelWithTable,
  number,
  put,
  streamed,
  streamOf,
  TableName,
  text,
} from './model-fixture.ts'

const increment = (p: string): TransactWriteItem => ({
  Update: {
    TableName,
    Key: key(p),
    UpdateExpression: 'SET n = n + :one',
    ExpressionAttributeValues: { ':one': number(1) },
  },
})
const putOf = (p: string, n: number): TransactWriteItem => ({ Put: { TableName, Item: { ...key(p), n: number(n) } } })

describe('a transaction', () => {
  it('does all of its actions, each a record of the stream', () => {
    const { model } = modelWithTable(streamed(hashTable))
    put(model, { ...key('a'), n: number(1) })
    put(model, { ...key('b'), n: number(1) })
    model.call('TransactWriteItems', {
      TransactItems: [
        increment('a'),
        { Delete: { TableName, Key: key('b') } },
        putOf('c', 3),
        { ConditionCheck: { TableName, Key: key('d'), ConditionExpression: 'attribute_not_exists(p)' } },
      ],
    })
    expect([get(model, key('a'))?.n, get(model, key('b')), get(model, key('c'))?.n]).toEqual([
      number(2),
      undefined,
      number(3),
    ])
    expect(
      changes(model)
        .slice(2)
        .map(({ eventName }) => eventName),
    ).toEqual(['MODIFY', 'REMOVE', 'INSERT'])
    expect(streamOf(model).StreamDescription.StreamStatus).toBe('ENABLED')
  })

  it('does nothing where one does not fit, and says of each whether it was to blame', () => {
    const { model } = modelWithTable()
    put(model, { ...key('a'), n: number(1) })
    const failing = { ConditionExpression: 'n > :n', ExpressionAttributeValues: { ':n': number(5) } }
    const error = errorOf(() =>
      model.call('TransactWriteItems', {
        TransactItems: [
          putOf('new', 1),
          { Delete: { TableName, Key: key('a'), ...failing, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } },
          { ConditionCheck: { TableName, Key: key('b'), ...failing, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } },
          increment('nothing'),
        ],
      }),
    )
    expect(error).toMatchObject({
      name: 'TransactionCanceledException',
      message:
        'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError]',
      CancellationReasons: [
        { Code: 'None' },
        {
          Code: 'ConditionalCheckFailed',
          Message: 'The conditional request failed',
          Item: { ...key('a'), n: number(1) },
        },
        { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed' },
        { Code: 'ValidationError', Message: expect.stringContaining('does not exist in the item') },
      ],
    })
    expect(contents(model)).toEqual([{ ...key('a'), n: number(1) }])
  })

  it('checks against the items as they were, whatever its other actions do', () => {
    const { model } = modelWithTable()
    const absent = (p: string): TransactWriteItem => ({
      Put: { TableName, Item: key(p), ConditionExpression: 'attribute_not_exists(p)' },
    })
    model.call('TransactWriteItems', { TransactItems: [absent('a'), absent('b')] })
    expect(
      errorOf(() => model.call('TransactWriteItems', { TransactItems: [absent('c'), absent('b')] })).message,
    ).toContain('[None, ConditionalCheckFailed]')
    expect(get(model, key('c'))).toBeUndefined()
  })

  it('with a token is done once within ten minutes, and a repetition is charged as a read', () => {
    const { model, clock } = modelWithTable()
    put(model, { ...key('a'), n: number(0) })
    const send = () =>
      model.call('TransactWriteItems', {
        TransactItems: [increment('a')],
        ClientRequestToken: 'token',
        ReturnConsumedCapacity: 'TOTAL',
      }).ConsumedCapacity
    const units = { TableName, CapacityUnits: 2 }
    expect(send()).toEqual([{ ...units, WriteCapacityUnits: 2 }])
    clock.advance(599_999)
    expect(send()).toEqual([{ ...units, ReadCapacityUnits: 2 }])
    expect(get(model, key('a'))?.n).toEqual(number(1))
    const other = { TransactItems: [increment('b')], ClientRequestToken: 'token' }
    expect(errorOf(() => model.call('TransactWriteItems', other)).name).toBe('IdempotentParameterMismatchException')
    clock.advance(1)
    send()
    expect(get(model, key('a'))?.n).toEqual(number(2))
  })

  it('that was cancelled leaves its token free', () => {
    const { model } = modelWithTable()
    const input = { TransactItems: [increment('a')], ClientRequestToken: 'token' }
    expect(errorOf(() => model.call('TransactWriteItems', input)).name).toBe('TransactionCanceledException')
    put(model, { ...key('a'), n: number(0) })
    model.call('TransactWriteItems', input)
    expect(get(model, key('a'))?.n).toEqual(number(1))
  })

  it.each<[string, TransactWriteItem[], string]>([
    ['no actions', [], 'greater than or equal to 1'],
    ['101 actions', Array.from({ length: 101 }, (_, i) => putOf(`k${i}`, i)), 'less than or equal to 100'],
    ['two actions on one item', [putOf('a', 1), increment('a')], 'multiple operations on one item'],
    ['an action that is two', [{ ...putOf('a', 1), ...increment('b') }], 'can only contain one of'],
    ['an action that is none', [{}], 'can only contain one of'],
    [
      'more than 4 MB',
      Array.from({ length: 11 }, (_, i) => ({
        Put: { TableName, Item: { ...key(`k${i}`), d: text('x'.repeat(400_000)) } },
      })),
      'cannot exceed 4 MB',
    ],
  ])('with %s is refused', (_, TransactItems, message) => {
    const { model } = modelWithTable()
    const error = errorOf(() => model.call('TransactWriteItems', { TransactItems }))
    expect([error.name, error.message]).toEqual(['ValidationException', expect.stringContaining(message)])
    expect(contents(model)).toEqual([])
  })

  it('reads items together, absent ones too', () => {
    const { model } = modelWithTable()
    put(model, { ...key('a'), n: number(1), o: text('o') })
    const { Responses } = model.call('TransactGetItems', {
      TransactItems: [
        { Get: { TableName, Key: key('none') } },
        { Get: { TableName, Key: key('a'), ProjectionExpression: 'n' } },
      ],
    })
    expect(Responses).toEqual([{}, { Item: { n: number(1) } }])
  })
})
