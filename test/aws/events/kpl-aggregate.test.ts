import fc from 'fast-check'
import { deaggregate, isAggregate, mayBeAggregate } from '../../../lib/aws/events/kpl-aggregate.ts'
import { aggregateOf, bytesField, numberField, sealed } from './kpl-aggregate-bytes.ts'

const corrupt = expect.objectContaining({ code: 'aggregate-corrupt' })

describe('deaggregate', () => {
  test('reads an aggregate that was written down by hand', () => {
    // partition_key_table "k"; records { partition_key_index 0, data "hi", tags { key "t" } }
    const message = Buffer.from('0a016b' + '1a0b' + '0800' + '1a026869' + '22030a0174', 'hex')
    expect(deaggregate(sealed(message))).toEqual([
      { partitionKey: 'k', explicitHashKey: undefined, data: Buffer.from('hi') },
    ])
  })

  test('gives back the records that were packed, in order, with their own keys', () => {
    const record = fc.record({
      partitionKey: fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' }),
      explicitHashKey: fc.option(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }).map(String), { nil: undefined }),
      data: fc.uint8Array({ maxLength: 20_000 }),
    })
    fc.assert(
      fc.property(fc.array(record, { maxLength: 20 }), (records) => {
        const bytes = aggregateOf(records)
        expect(isAggregate(bytes) && mayBeAggregate(bytes.toString('base64'))).toBe(true)
        expect(deaggregate(bytes)).toEqual(records.map((packed) => ({ ...packed, data: Buffer.from(packed.data) })))
      }),
    )
  })

  test('refuses any aggregate that was cut or in which one byte was changed', () => {
    const whole = aggregateOf([
      { partitionKey: 'a', data: 'first' },
      { partitionKey: 'b', explicitHashKey: '7', data: 'second' },
    ])
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const altered = Buffer.from(whole)
        altered[at] = (altered[at] ?? 0) ^ change
        expect(() => deaggregate(whole.subarray(0, at))).toThrow(corrupt)
        expect(() => deaggregate(altered)).toThrow(corrupt)
      }),
    )
  })

  test.each([
    ['points outside its key table', bytesField(3, Buffer.concat([numberField(1, 1), bytesField(3, 'x')]))],
    ['has a record without a partition key', bytesField(3, bytesField(3, 'x'))],
    ['has a record without data', bytesField(3, numberField(1, 0))],
    [
      'points outside its hash key table',
      bytesField(3, Buffer.concat([numberField(1, 0), numberField(2, 0), bytesField(3, 'x')])),
    ],
    ['has a field longer than itself', Buffer.from('1aff01', 'hex')],
    ['has a number without an end', Buffer.from('1affffffffffffffffff', 'hex')],
    ['has an unknown wire type', Buffer.from('1b', 'hex')],
    ['has a key that is not UTF-8', Buffer.from('0a01ff', 'hex')],
  ])('refuses an aggregate with a right checksum that %s', (_, rest) => {
    expect(() => deaggregate(sealed(Buffer.concat([bytesField(1, 'key'), rest])))).toThrow(corrupt)
  })

  test('skips fields that it does not know', () => {
    const unknown = Buffer.concat([numberField(9, 1), bytesField(10, 'later'), Buffer.from('5d01020304', 'hex')])
    const record = bytesField(3, Buffer.concat([numberField(1, 0), bytesField(3, 'x')]))
    expect(deaggregate(sealed(Buffer.concat([bytesField(1, 'key'), unknown, record])))).toHaveLength(1)
  })
})
