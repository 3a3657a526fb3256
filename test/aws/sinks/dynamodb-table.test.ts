import fc from 'fast-check'
import {
  type DynamoDBTableSinkOptions,
  dynamodbTableSink,
  positionText,
} from '../../../lib/aws/sinks/dynamodb-table.ts'
import { SourceRecord } from '../../../lib/core/record.ts'
import type { Outcome, Output } from '../../../lib/runtime/sink.ts'
import { awsError, type InstantClock, never, outputs, StubTable, testPorts } from '../sink-worlds.ts'

interface Rate {
  readonly hotelId: string
  readonly price?: number | undefined
  readonly note?: string | undefined
}

const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)
const byHotel = ({ hotelId }: Rate): string => hotelId

function setUp(changes: Partial<DynamoDBTableSinkOptions> = {}) {
  const table = new StubTable()
  const ports = testPorts()
  const sink = dynamodbTableSink({ client: table, tableName: 'rates', partitionKey: 'hotelId', ...ports, ...changes })
  const deliver = (list: readonly Output<unknown>[], signal = never()) =>
    sink.deliver(
      list.map((output) => sink.prepare(output)),
      { signal },
    )
  const row = (hotelId: string) => table.items.get(JSON.stringify({ hotelId: { S: hotelId } }))
  return { table, ports, sink, deliver, row }
}

const one = (value: unknown, key?: string) => outputs([value], key === undefined ? undefined : () => key)[0] as Output

describe('the row', () => {
  test('has the attributes of the output as columns, and remembers the position', async () => {
    const { deliver, row } = setUp()
    await deliver(outputs<Rate>([{ hotelId: 'h1', price: 12.5, note: 'ä' }], byHotel))
    expect(row('h1')).toEqual({
      hotelId: { S: 'h1' },
      price: { N: '12.5' },
      note: { S: 'ä' },
      'millrace#orders/shardId-000000000000': { S: '001:1/001:0/001:0' },
    })
  })

  test('an attribute that is undefined is removed, one that is not mentioned stays', async () => {
    const { deliver, row } = setUp()
    await deliver(
      outputs<Rate>(
        [
          { hotelId: 'h1', price: 1, note: 'x' },
          { hotelId: 'h1', note: undefined },
        ],
        byHotel,
      ),
    )
    expect(row('h1')).toMatchObject({ price: { N: '1' } })
    expect(row('h1')).not.toHaveProperty('note')
  })

  test('takes its key from the key of the sink, which may stand in the attribute too, else from the attribute', () => {
    const { sink } = setUp()
    expect(sink.prepare(one({ price: 7 }, 'h9')).input.Key).toEqual({ hotelId: { S: 'h9' } })
    expect(sink.prepare(one({ hotelId: undefined }, 'h9')).input.Key).toEqual({ hotelId: { S: 'h9' } })
    expect(sink.prepare(one({ hotelId: 'h9' }, 'h9')).input.Key).toEqual({ hotelId: { S: 'h9' } })
    expect(sink.prepare(one({ hotelId: 7 })).input.Key).toEqual({ hotelId: { N: '7' } })
  })

  test('two days of a hotel, keyed by hotel and day, never become one row: the attribute may not differ from the key', () => {
    const { sink } = setUp()
    for (const day of [1, 2]) {
      const output = one({ hotelId: 'h1', day, secret: 'payload-value' }, `h1#${day}`)
      expect(() => sink.prepare(output)).toThrow(terminal('key-differs'))
      expect(() => sink.prepare(output)).toThrow(
        /^the row's attribute "hotelId" is not what the sink's key function says.*leave the attribute out, make it the same text, or declare the sink without a key/,
      )
      expect(() => sink.prepare(output)).not.toThrow(/h1#/)
    }
  })

  test.each([7, null, new Uint8Array([104, 57])])('%p is not the text of the key: nothing is converted', (hotelId) => {
    expect(() => setUp().sink.prepare(one({ hotelId }, '7'))).toThrow(terminal('key-differs'))
  })

  test('an attribute that every object inherits is no attribute of the row', () => {
    const { sink } = setUp({ partitionKey: 'constructor', sortKey: 'valueOf' })
    expect(() => sink.prepare(one({}, 'k'))).toThrow(terminal('missing-key'))
    expect(sink.prepare(one({ valueOf: 1 }, 'k')).input.Key).toEqual({ constructor: { S: 'k' }, valueOf: { N: '1' } })
  })

  test('a key may have 2,048 bytes as partition key and 1,024 as sort key, in UTF-8', () => {
    const { sink } = setUp({ sortKey: 'day' })
    const key = (partitionBytes: number, sortBytes: number) =>
      sink.prepare(one({ hotelId: 'ä'.repeat(partitionBytes / 2), day: new Uint8Array(sortBytes) }))
    expect(key(2_048, 1_024).row).not.toBe('')
    expect(() => key(2_050, 1_024)).toThrow(/^the key attribute "hotelId" has 2050 bytes: DynamoDB takes 2048 there$/)
    expect(() => key(2_048, 1_025)).toThrow(terminal('invalid-key'))
  })

  test.each<[string, unknown, Partial<DynamoDBTableSinkOptions>]>([
    ['text for a number', { hotelId: '7' }, { partitionKeyType: 'N' }],
    ['a number for text', { hotelId: 7 }, { partitionKeyType: 'S' }],
    ['bytes for text', { hotelId: new Uint8Array(1) }, { partitionKeyType: 'S' }],
    ['text for a number to sort by', { hotelId: 'h', day: '1' }, { sortKey: 'day', sortKeyType: 'N' }],
  ])('a key of another type than the table has is terminal: %s', (_, value, options) => {
    expect(() => setUp(options).sink.prepare(one(value))).toThrow(terminal('invalid-key'))
  })

  test('rows of one partition key differ by the sort key', () => {
    const { sink } = setUp({ sortKey: 'day' })
    const rows = [1, 2, '1'].map((day) => sink.prepare(one({ hotelId: 'h', day })))
    expect(rows[0]?.input.Key).toEqual({ hotelId: { S: 'h' }, day: { N: '1' } })
    expect(new Set(rows.slice(0, 2).map(({ row }) => row)).size).toBe(2)
  })

  test.each<[string, unknown, string, string | undefined]>([
    ['is no object', 'text', 'not-a-row', 'k'],
    ['is a list', [], 'not-a-row', 'k'],
    ['is an instance', new Date(0), 'not-a-row', 'k'],
    ['has no key', {}, 'missing-key', undefined],
    ['has an empty key', { hotelId: '' }, 'missing-key', undefined],
    ['has a key of a kind that no table has', { hotelId: true }, 'missing-key', undefined],
    ['has a Date', { when: new Date(0) }, 'unsupported-value', 'k'],
    ['has an attribute of ours', { 'millrace#x': 1 }, 'reserved-attribute', 'k'],
    ['has an attribute without a name', { '': 1 }, 'unsupported-value', 'k'],
    ['has 400 KB', { text: 'x'.repeat(402_000) }, 'oversize', 'k'],
    [
      'has too many attributes',
      Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`a${i}`, i])),
      'oversize',
      'k',
    ],
  ])('an output that %s is terminal', (_, value, code, key) => {
    const { sink } = setUp()
    expect(() => sink.prepare(one(value, key))).toThrow(terminal(code))
  })
})

describe('positionText', () => {
  test('sorts as (position, sub-position, index) do, whatever their length', () => {
    const digits = fc.bigInt({ min: 0n, max: 10n ** 60n })
    const place = fc.tuple(fc.oneof(digits, fc.bigInt({ min: 0n, max: 12n })), fc.nat(12), fc.nat(12))
    const textOf = ([position, subPosition, index]: [bigint, number, number]) =>
      positionText(
        new SourceRecord({
          source: 's',
          partition: 'p',
          position: String(position),
          subPosition,
          arrivalTimeMs: 0,
          payload: null,
        }),
        index,
      )
    const compare = (a: [bigint, number, number], b: [bigint, number, number]): number =>
      Number(a[0] - b[0]) || a[1] - b[1] || a[2] - b[2]
    fc.assert(
      fc.property(place, place, (a, b) => {
        const [left, right] = [textOf(a), textOf(b)]
        expect(Math.sign(compare(a, b))).toBe(left < right ? -1 : left > right ? 1 : 0)
      }),
    )
  })

  test('9900000000002513012315 is older than 10000000000002513012315', () => {
    const at = (position: string) => positionText({ ...outputs([0])[0]?.record, position, subPosition: 0 } as never, 0)
    expect(at('9900000000002513012315') < at('10000000000002513012315')).toBe(true)
  })
})

describe('deliver', () => {
  test('an output that comes again, or an older one, changes nothing and is delivered', async () => {
    const { table, deliver, row } = setUp()
    const list = outputs<Rate>(
      [1, 2, 3].map((price) => ({ hotelId: 'h1', price })),
      byHotel,
    )
    await deliver(list)
    expect(statuses(await deliver(list.slice(0, 2)))).toEqual(['delivered', 'delivered'])
    expect(row('h1')).toMatchObject({ price: { N: '3' } })
    expect(table.applied).toHaveLength(3)
  })

  test('a write whose answer was lost is applied once and delivered', async () => {
    const { table, deliver } = setUp()
    let lost = true
    table.loseAnswer = () => {
      if (lost) {
        lost = false
        throw awsError('Error', { code: 'ECONNRESET' })
      }
    }
    expect(statuses(await deliver(outputs<Rate>([{ hotelId: 'h1', price: 1 }], byHotel)))).toEqual(['delivered'])
    expect(table.updates).toHaveLength(2)
    expect(table.applied).toHaveLength(1)
  })

  test('positions of different upstream partitions do not hide each other', async () => {
    const { deliver, row } = setUp()
    const [first] = outputs<Rate>([{ hotelId: 'h1', price: 1 }], byHotel, 900)
    const other = new SourceRecord({
      source: 'orders',
      partition: 'p-1',
      position: '2',
      arrivalTimeMs: 0,
      payload: null,
    })
    await deliver([first as Output, { value: { hotelId: 'h1', price: 2 }, key: 'h1', index: 0, record: other }])
    expect(row('h1')).toMatchObject({ price: { N: '2' } })
  })

  test('updates of one row go one after the other, those of others beside them, within the bound', async () => {
    const { table, deliver } = setUp({ parallelUpdates: 3 })
    const rates = Array.from({ length: 40 }, (_, price) => ({ hotelId: `h${price % 8}`, price }))
    expect(new Set(statuses(await deliver(outputs<Rate>(rates, byHotel))))).toEqual(new Set(['delivered']))
    expect(table.collided).toBe(false)
    expect(table.mostInFlight).toBe(3)
    expect(table.applied).toHaveLength(40)
  })

  test('a throttle is retried in order', async () => {
    const { table, ports, deliver, row } = setUp()
    let throttles = 2
    table.fail = () => {
      if (throttles-- > 0) throw awsError('ProvisionedThroughputExceededException')
    }
    await deliver(
      outputs<Rate>(
        [1, 2, 3].map((price) => ({ hotelId: 'h1', price })),
        byHotel,
      ),
    )
    expect(row('h1')).toMatchObject({ price: { N: '3' } })
    expect((ports.clock as InstantClock).sleptMs).toEqual([25, 50])
  })

  test('a missing table returns everything', async () => {
    const { table, deliver } = setUp()
    table.fail = () => {
      throw awsError('ResourceNotFoundException')
    }
    expect(statuses(await deliver(outputs<Rate>([{ hotelId: 'h1' }], byHotel)))).toEqual(['retry'])
  })

  const invalid = 'One or more parameter values were invalid: '
  test.each([
    ['Item size to update has exceeded the maximum allowed size', 'oversize'],
    [`${invalid}Size of hashkey has exceeded the maximum size limit of2048 bytes`, 'invalid-key'],
    [`${invalid}Aggregated size of all range keys has exceeded the size limit of 1024 bytes`, 'invalid-key'],
    [`${invalid}Type mismatch for key hotelId expected: N actual: S`, 'invalid-key'],
    [`${invalid}Type mismatch for Index Key city Expected: S Actual: N IndexName: by-city`, 'invalid-key'],
    [
      'One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: hotelId',
      'invalid-key',
    ],
  ])('a row that a table can never take is rejected, its neighbours are written: %s', async (message, code) => {
    const { table, deliver } = setUp()
    table.fail = ({ Key }) => {
      if (Key?.hotelId?.S === 'bad') throw Object.assign(awsError('ValidationException'), { message })
    }
    const outcomes = await deliver(outputs<Rate>([{ hotelId: 'bad' }, { hotelId: 'h1' }], byHotel))
    expect(outcomes).toMatchObject([{ status: 'rejected', error: { code } }, { status: 'delivered' }])
  })

  test('key attributes that the table does not have are a setting: no record is rejected for it', async () => {
    const { table, deliver } = setUp()
    table.fail = () => {
      const message = 'The provided key element does not match the schema'
      throw Object.assign(awsError('ValidationException'), { message })
    }
    expect(statuses(await deliver(outputs<Rate>([{ hotelId: 'h1' }], byHotel)))).toEqual(['retry'])
  })

  test('after the abort no update starts and the rest is a retry', async () => {
    const { table, deliver } = setUp({ parallelUpdates: 2 })
    const controller = new AbortController()
    table.fail = () => controller.abort()
    const rates = ['a', 'b', 'c', 'a'].map((hotelId) => ({ hotelId }))
    expect(statuses(await deliver(outputs<Rate>(rates, byHotel), controller.signal))).toEqual([
      'delivered',
      'delivered',
      'retry',
      'retry',
    ])
    expect(table.updates).toHaveLength(2)
  })
})
