import fc from 'fast-check'
import { createDynamoModel, type DynamoModel, type Item } from '../../../lib/emulator/dynamodb/index.ts'
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
  START_MS,
  sortedTable,
  streamed,
  streamOf,
  TableName,
  testClock,
  text,
} from './model-fixture.ts'

const HOUR_MS = 3_600_000

describe('the stream of a table', () => {
  it('has a record of every change with its images, in order', () => {
    const { model, clock } = modelWithTable(streamed(sortedTable()))
    put(model, { ...key('k', 1), n: number(1) })
    clock.advance(1_500)
    put(model, { ...key('k', 1), n: number(2) })
    model.call('DeleteItem', { TableName, Key: key('k', 1) })
    const records = changes(model)
    const images = records.map(({ eventName, dynamodb: { OldImage, NewImage } }) => [
      eventName,
      OldImage?.n,
      NewImage?.n,
    ])
    expect(images).toEqual([
      ['INSERT', undefined, number(1)],
      ['MODIFY', number(1), number(2)],
      ['REMOVE', number(2), undefined],
    ])
    expect(records[1]).toMatchObject({
      eventVersion: '1.1',
      eventSource: 'aws:dynamodb',
      awsRegion: 'us-east-1',
      dynamodb: {
        ApproximateCreationDateTime: new Date(START_MS + 1_000),
        Keys: key('k', 1),
        SizeBytes: 5 + 8 + 8,
        StreamViewType: 'NEW_AND_OLD_IMAGES',
      },
    })
    const numbers = records.map(({ dynamodb }) => BigInt(dynamodb.SequenceNumber))
    expect(numbers[0]).toBeLessThan(numbers[1] ?? 0n)
    expect(numbers[1]).toBeLessThan(numbers[2] ?? 0n)
    expect(new Set(records.map(({ eventID }) => eventID)).size).toBe(3)
  })

  it('tells the whole content of the table to whoever follows it', () => {
    const write = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 2 }), fc.boolean())
    fc.assert(
      fc.property(fc.array(write, { maxLength: 40 }), fc.integer({ min: 1, max: 7 }), (writes, Limit) => {
        const { model } = modelWithTable(streamed(hashTable))
        for (const [p, n, isPut] of writes) {
          if (isPut) put(model, { ...key(`k${p}`), n: number(n) })
          else model.call('DeleteItem', { TableName, Key: key(`k${p}`) })
        }
        const replica = new Map<string, Item>()
        for (const { dynamodb } of changes(model, TableName, Limit)) {
          const { Keys, OldImage, NewImage } = dynamodb
          expect(OldImage).toEqual(replica.get(Keys.p?.S ?? ''))
          // A write that changes nothing leaves no record.
          expect(NewImage).not.toEqual(OldImage)
          if (NewImage === undefined) replica.delete(Keys.p?.S ?? '')
          else replica.set(Keys.p?.S ?? '', NewImage)
        }
        expect([...replica.values()].sort(byKey)).toEqual(contents(model).sort(byKey))
      }),
    )
  })

  it('has no record of a write that changes nothing, though a set be in another order', () => {
    const { model } = modelWithTable(streamed(hashTable))
    put(model, { ...key('k'), t: { SS: ['a', 'b'] }, n: number('1.0') })
    put(model, { ...key('k'), t: { SS: ['b', 'a'] }, n: number('1') })
    model.call('DeleteItem', { TableName, Key: key('none') })
    expect(changes(model)).toHaveLength(1)
  })

  it.each([
    ['KEYS_ONLY', []],
    ['NEW_IMAGE', ['NewImage']],
    ['OLD_IMAGE', ['OldImage']],
    ['NEW_AND_OLD_IMAGES', ['NewImage', 'OldImage']],
  ] as const)('shows as much as %s', (StreamViewType, images) => {
    const { model } = modelWithTable({ ...hashTable, StreamSpecification: { StreamEnabled: true, StreamViewType } })
    for (const n of [1, 2]) put(model, { ...key('k'), n: number(n) })
    const fields = Object.keys(changes(model)[1]?.dynamodb ?? {})
    expect(fields.filter((name) => name.endsWith('Image')).sort()).toEqual(images)
  })

  it('keeps a record for 24 hours', () => {
    const { model, clock } = modelWithTable(streamed(hashTable))
    const { StreamArn, ShardId } = streamOf(model)
    put(model, key('old'))
    const at = changes(model)[0]?.dynamodb.SequenceNumber
    clock.advance(24 * HOUR_MS)
    put(model, key('new'))
    expect(changes(model)).toHaveLength(2)
    clock.advance(1)
    expect(changes(model).map(({ dynamodb }) => dynamodb.Keys)).toEqual([key('new')])
    const input = { StreamArn, ShardId, ShardIteratorType: 'AT_SEQUENCE_NUMBER', SequenceNumber: at } as const
    expect(errorOf(() => model.call('GetShardIterator', input)).name).toBe('TrimmedDataAccessException')
  })

  it('goes on in the same numbers while what is old is forgotten', () => {
    const { model, clock } = modelWithTable(streamed(hashTable))
    const { StreamArn, ShardId } = streamOf(model)
    const type = 'TRIM_HORIZON'
    let { ShardIterator } = model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: type })
    const followed: string[] = []
    for (let step = 0; step < 400; step += 1) {
      put(model, { ...key('k'), n: number(step) })
      const { Records, NextShardIterator } = model.call('GetRecords', { ShardIterator })
      followed.push(...Records.map(({ dynamodb }) => dynamodb.SequenceNumber))
      ShardIterator = NextShardIterator ?? ''
      clock.advance(HOUR_MS / 4)
    }
    expect(followed).toHaveLength(400)
    expect(followed).toEqual([...new Set(followed)].sort())
    expect(changes(model).map(({ dynamodb }) => dynamodb.SequenceNumber)).toEqual(followed.slice(-96))
  })

  it('is read from any place, with iterators that live for 15 minutes', () => {
    const { model, clock } = modelWithTable(streamed(hashTable))
    const { StreamArn, ShardId } = streamOf(model)
    for (const p of ['a', 'b', 'c']) put(model, key(p))
    const second = changes(model)[1]?.dynamodb.SequenceNumber
    const from = (ShardIteratorType: 'LATEST' | 'AT_SEQUENCE_NUMBER' | 'AFTER_SEQUENCE_NUMBER' | 'TRIM_HORIZON') =>
      model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType, SequenceNumber: second }).ShardIterator
    const read = (ShardIterator: string) =>
      model
        .call('GetRecords', { ShardIterator })
        .Records.map(({ dynamodb }) => dynamodb.Keys.p?.S)
        .join('')
    const latest = from('LATEST')
    expect([
      read(from('TRIM_HORIZON')),
      read(from('AT_SEQUENCE_NUMBER')),
      read(from('AFTER_SEQUENCE_NUMBER')),
      read(latest),
    ]).toEqual(['abc', 'bc', 'c', ''])
    put(model, key('d'))
    expect(read(latest)).toBe('d')
    clock.advance(900_000)
    expect(read(latest)).toBe('d')
    clock.advance(1)
    expect(errorOf(() => read(latest)).name).toBe('ExpiredIteratorException')
    expect(errorOf(() => read('nonsense')).name).toBe('ValidationException')
  })

  it('outlives its table for 24 hours, closed, and is not that of the next table of the name', () => {
    const { model, clock } = modelWithTable(streamed(hashTable))
    put(model, key('k'))
    const { StreamArn, ShardId } = streamOf(model)
    model.call('DeleteTable', { TableName })
    model.call('CreateTable', streamed(hashTable))
    expect(model.call('ListStreams', { TableName }).Streams).toHaveLength(2)
    expect(model.call('DescribeTable', { TableName }).Table.LatestStreamArn).not.toBe(StreamArn)
    const { ShardIterator } = model.call('GetShardIterator', { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
    const { Records, NextShardIterator } = model.call('GetRecords', { ShardIterator })
    expect([Records.length, NextShardIterator]).toEqual([1, undefined])
    expect(model.call('DescribeStream', { StreamArn }).StreamDescription.StreamStatus).toBe('DISABLED')
    clock.advance(24 * HOUR_MS + 1)
    expect(errorOf(() => model.call('DescribeStream', { StreamArn })).name).toBe('ResourceNotFoundException')
    expect(model.call('ListStreams', { TableName }).Streams).toHaveLength(1)
  })
})

describe('TTL', () => {
  const setUp = () => {
    const world = modelWithTable(streamed(hashTable))
    const TimeToLiveSpecification = { AttributeName: 'expires', Enabled: true }
    world.model.call('UpdateTimeToLive', { TableName, TimeToLiveSpecification })
    return world
  }
  const inSeconds = (seconds: number) => number(START_MS / 1_000 + seconds)

  it('deletes what has expired when it is swept, and not before', () => {
    const { model, clock } = setUp()
    put(model, { ...key('soon'), expires: inSeconds(10) })
    put(model, { ...key('later'), expires: inSeconds(20) })
    put(model, { ...key('text'), expires: text('1') })
    put(model, { ...key('long ago'), expires: inSeconds(-6 * 365 * 86_400) })
    put(model, key('never'))
    clock.advance(10_000)
    expect(model.sweepExpired()).toBe(0)
    clock.advance(1)
    expect(get(model, key('soon'))).toBeDefined()
    const units = model.consumedUnits(TableName)
    expect(model.sweepExpired()).toBe(1)
    expect(model.consumedUnits(TableName)).toEqual(units)
    expect(get(model, key('soon'))).toBeUndefined()
    expect(contents(model)).toHaveLength(4)
    expect(changes(model).at(-1)).toMatchObject({
      eventName: 'REMOVE',
      userIdentity: { Type: 'Service', PrincipalId: 'dynamodb.amazonaws.com' },
      dynamodb: { Keys: key('soon') },
    })
    expect(changes(model)[0]).not.toHaveProperty('userIdentity')
  })

  it('is described, and stops when it is disabled', () => {
    const { model, clock } = setUp()
    put(model, { ...key('k'), expires: inSeconds(1) })
    const describe = () => model.call('DescribeTimeToLive', { TableName }).TimeToLiveDescription
    expect(describe()).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'expires' })
    const set = (AttributeName: string, Enabled: boolean) =>
      model.call('UpdateTimeToLive', { TableName, TimeToLiveSpecification: { AttributeName, Enabled } })
    expect(errorOf(() => set('expires', true)).message).toBe('TimeToLive is already enabled')
    expect(errorOf(() => set('other', false)).message).toContain('current AttributeName is expires')
    set('expires', false)
    expect(describe()).toEqual({ TimeToLiveStatus: 'DISABLED' })
    clock.advance(HOUR_MS)
    expect(model.sweepExpired()).toBe(0)
  })
})

const byKey = (a: Item, b: Item): number => ((a.p?.S ?? '') < (b.p?.S ?? '') ? -1 : 1)

describe('the effects of a model', () => {
  it('give the same tables, streams and tokens when they are applied to an empty one', () => {
    const call = fc.oneof(
      fc.tuple(fc.constant('put'), fc.nat(4), fc.nat(3)),
      fc.tuple(fc.constantFrom('delete', 'add', 'transact', 'sweep', 'table'), fc.nat(4), fc.nat(3)),
    )
    fc.assert(
      fc.property(fc.array(call, { maxLength: 40 }), (calls) => {
        const { model, clock, effects } = modelWithTable(streamed(hashTable))
        const TimeToLiveSpecification = { AttributeName: 'expires', Enabled: true }
        model.call('UpdateTimeToLive', { TableName, TimeToLiveSpecification })
        for (const [kind, p, n] of calls) {
          clock.advance(1_000)
          perform(model, kind, `k${p}`, n)
        }
        const restored = createDynamoModel({ clock })
        for (const effect of structuredClone(effects)) restored.restore(effect)
        expect(show(restored)).toEqual(show(model))
        const again = { TransactItems: [{ Put: { TableName, Item: key('again') } }], ClientRequestToken: 'token' }
        const outcome = (of: DynamoModel) => {
          try {
            of.call('TransactWriteItems', again)
            return 'done'
          } catch (error) {
            return (error as Error).name
          }
        }
        expect(outcome(restored)).toBe(outcome(model))
      }),
    )
  })

  function perform(model: DynamoModel, kind: string, p: string, n: number): void {
    const expires = number(START_MS / 1_000 + 10 * n)
    if (kind === 'put') put(model, { ...key(p), n: number(n), expires })
    else if (kind === 'delete') model.call('DeleteItem', { TableName, Key: key(p) })
    else if (kind === 'sweep') model.sweepExpired()
    else if (kind === 'add') {
      const values = { ExpressionAttributeValues: { ':n': number(n) } }
      model.call('UpdateItem', { TableName, Key: key(p), UpdateExpression: 'ADD n :n', ...values })
    } else if (kind === 'transact' && n === 0) {
      const TransactItems = [{ Put: { TableName, Item: key('token') } }]
      model.call('TransactWriteItems', { TransactItems, ClientRequestToken: 'token' })
    } else if (kind === 'table' && n === 0) {
      model.call('DeleteTable', { TableName })
      model.call('CreateTable', streamed(hashTable))
    }
  }

  const show = (model: DynamoModel) => ({
    items: contents(model),
    table: model.call('DescribeTable', { TableName }).Table,
    streams: model.call('ListStreams', {}).Streams,
    ttl: model.call('DescribeTimeToLive', { TableName }),
    changes: changes(model),
  })

  it('come from a clock alone: two models that are called alike are alike', () => {
    const [one, other] = [modelWithTable(streamed(hashTable)), modelWithTable(streamed(hashTable))]
    for (const { model } of [one, other]) put(model, { ...key('k'), b: { B: Buffer.from('b') } })
    expect(show(one.model)).toEqual(show(other.model))
    expect(one.effects).toEqual(other.effects)
    expect(testClock().nowMs()).toBe(START_MS)
  })
})
