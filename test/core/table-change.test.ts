import fc from 'fast-check'
import { changeRecord, type PartialTableChange, type TableChange, tableChanges } from '../../lib/core/table-change.ts'

interface Order {
  readonly id: string
  readonly total: number | bigint
}

const format = tableChanges<Order, { id: string }>()
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))
const record = (changes: object = {}, dynamodb: object = {}) =>
  bytes({
    eventName: 'INSERT',
    dynamodb: {
      ApproximateCreationDateTime: 1_767_225_600,
      Keys: { id: { S: 'o-1' } },
      NewImage: { id: { S: 'o-1' }, total: { N: '12.5' } },
      ...dynamodb,
    },
    ...changes,
  })
const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })

test('a change has its type, its key, its time and its images', () => {
  expect(format.decode(record())).toEqual({
    type: 'insert',
    key: { id: 'o-1' },
    changedAtMs: Date.UTC(2026, 0, 1),
    after: { id: 'o-1', total: 12.5 },
  })
  const change: TableChange<Order> = format.decode(
    record({ eventName: 'MODIFY' }, { OldImage: { id: { S: 'o-1' }, total: { N: '1' } } }),
  )
  if (change.type !== 'modify') throw new Error(change.type)
  expect([change.before.total, change.after.total]).toEqual([1, 12.5])
})

test('what TTL removed is told from what somebody removed', () => {
  const images = { NewImage: undefined, OldImage: { id: { S: 'o-1' } } }
  const ttl = { userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' } }
  expect(format.decode(record({ eventName: 'REMOVE', ...ttl }, images))).toMatchObject({
    type: 'remove',
    expired: true,
  })
  expect(format.decode(record({ eventName: 'REMOVE' }, images))).toMatchObject({ expired: false })
})

test('the record that a table writes to a Kinesis stream is the same change, with its time in milliseconds or microseconds', () => {
  const onKinesis = (time: number) =>
    format.decode(
      record(
        {
          eventID: 'e-1',
          recordFormat: 'application/json',
          tableName: 'orders',
          userIdentity: null,
          eventSource: 'aws:dynamodb',
        },
        { ApproximateCreationDateTime: time, SizeBytes: 20 },
      ),
    )
  expect(onKinesis(1_767_225_600_123)).toMatchObject({
    id: 'e-1',
    type: 'insert',
    changedAtMs: 1_767_225_600_123,
  })
  expect(onKinesis(1_767_225_600_123_456)).toMatchObject({ changedAtMs: 1_767_225_600_123 })
})

test('numbers are exact: beyond 2^53 a bigint, and refused where neither holds them', () => {
  const total = (N: string) => format.decode(record({}, { NewImage: { id: { S: 'a' }, total: { N } } })).after?.total
  expect(total('9007199254740993')).toBe(9_007_199_254_740_993n)
  expect(total('-1e3')).toBe(-1_000)
  expect(() => total('0.12345678901234567890123456789')).toThrow(terminal('unsupported-value'))
})

test.each([
  ['no JSON', Buffer.from('{'), 'not-json'],
  ['another event', bytes({ detail: {} }), 'not-a-change'],
  ['an unknown type of attribute', record({}, { NewImage: { id: { X: 1 } } }), 'not-a-change'],
  ['no time', record({}, { ApproximateCreationDateTime: undefined }), 'not-a-change'],
  ['a missing new image', record({}, { NewImage: undefined }), 'image-missing'],
  ['a missing old image', record({ eventName: 'MODIFY' }), 'image-missing'],
])('%s is a dead letter', (_, payload, code) => {
  expect(() => format.decode(payload)).toThrow(terminal(code))
})

test('with some images a change has what the stream has', () => {
  const some = tableChanges<Order>({ images: 'some' })
  expect(some.decode(record({ eventName: 'MODIFY' }, { NewImage: undefined }))).toEqual({
    type: 'modify',
    key: { id: 'o-1' },
    changedAtMs: Date.UTC(2026, 0, 1),
  })
})

const attribute = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.integer(),
    fc.bigInt({ min: 2n ** 60n, max: 2n ** 100n }),
    fc.uint8Array(),
    fc.set(fc.string(), { minLength: 1 }).map((all) => new Set(all)),
    fc.uniqueArray(fc.integer(), { minLength: 1 }).map((all) => new Set(all)),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.string().filter((name) => name !== '__proto__'),
      tie('value'),
      { maxKeys: 3 },
    ),
  ),
})).value

test('what a test writes is read as it was, whatever the attributes', () => {
  fc.assert(
    fc.property(attribute, attribute, (before, after) => {
      const change: PartialTableChange<unknown> = {
        type: 'modify',
        key: { id: 'a' },
        before: { before },
        after: { after },
        changedAtMs: 5_000,
      }
      expect(tableChanges<object>().decode(bytes(changeRecord(change)))).toEqual(change)
    }),
  )
})
