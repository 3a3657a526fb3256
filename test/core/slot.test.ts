import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { checkSlots, firstHashOf, mostSlots, slotOf, slotsHeld, slotsIn } from '../../lib/core/slot.ts'

const hashes = 2n ** 128n

/** The definition, by long division: the hash of a key over the size of a slot. */
const hashOf = (key: string) => BigInt(`0x${createHash('md5').update(key, 'utf8').digest('hex')}`)
const slotByDivision = (key: string, slots: number) => Number(hashOf(key) / (hashes / BigInt(slots)))

const powerOfTwo = fc.integer({ min: 0, max: 12 }).map((bits) => 2 ** bits)
const anyHash = fc.bigInt({ min: 0n, max: hashes - 1n })
const anyKey = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '__proto__', 'x'.repeat(3_000)))

/** Ranges that together hold every hash once, as the open shards of a stream do. */
const shards = fc.uniqueArray(anyHash, { maxLength: 8 }).map((cuts) => {
  const starts = [0n, ...cuts.filter((cut) => cut > 0n)].sort((a, b) => (a < b ? -1 : 1))
  return starts.map((start, i) => ({ start, end: (starts[i + 1] ?? hashes) - 1n }))
})

describe('slotOf', () => {
  test('is the top bits of the MD5 of the UTF-8 bytes', () => {
    fc.assert(fc.property(anyKey, powerOfTwo, (key, slots) => slotOf(key, slots) === slotByDivision(key, slots)))
  })

  test('is pinned for keys that are out in tables and streams already', () => {
    const keys = ['LHR', 'customer-1', '', 'ключ', '🛫']
    expect(keys.map((key) => slotOf(key))).toEqual(keys.map((key) => slotByDivision(key, 64)))
    expect(keys.map((key) => slotOf(key))).toEqual([12, 38, 53, 48, 16])
  })
})

describe('firstHashOf', () => {
  test('is the least hash of its slot', () => {
    fc.assert(
      fc.property(powerOfTwo, fc.nat(), (slots, n) => {
        const slot = n % slots
        const first = BigInt(firstHashOf(slot, slots))
        const slotOfHash = (value: bigint) => Number(value / (hashes / BigInt(slots)))
        expect(slotOfHash(first)).toBe(slot)
        if (slot > 0) expect(slotOfHash(first - 1n)).toBe(slot - 1)
      }),
    )
  })

  test('a slot that is none of the stage is a bug of ours', () => {
    for (const slot of [-1, 64, 0.5]) expect(() => firstHashOf(slot, 64)).toThrow('is none of 64')
  })
})

describe('slotsHeld', () => {
  test('of the partitions of a Kafka topic each slot is in one: that of its remainder', () => {
    fc.assert(
      fc.property(powerOfTwo, fc.integer({ min: 1, max: 64 }), (slots, partitions) => {
        const held = Array.from({ length: partitions }, (_, remainder) => slotsHeld({ remainder, partitions }, slots))
        for (const [partition, own] of held.entries()) {
          expect(own.every((slot) => slot % partitions === partition)).toBe(true)
          expect(own).toEqual(own.toSorted((a, b) => a - b))
        }
        expect(held.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: slots }, (_, slot) => slot))
      }),
    )
  })

  test('of a hash range they are those of the range', () => {
    expect(slotsHeld({ startHash: '0', endHash: String(hashes / 2n - 1n) }, 4)).toEqual([0, 1])
  })
})

describe('slotsIn', () => {
  test('are the slots whose first hash a shard holds', () => {
    fc.assert(
      fc.property(powerOfTwo, anyHash, anyHash, (slots, a, b) => {
        const [start, end] = a < b ? [a, b] : [b, a]
        const expected = Array.from({ length: slots }, (_, slot) => slot).filter((slot) => {
          const first = BigInt(firstHashOf(slot, slots))
          return start <= first && first <= end
        })
        expect(slotsIn(String(start), String(end), slots)).toEqual(expected)
      }),
    )
  })

  test('every slot is in exactly one open shard, wherever the borders are', () => {
    fc.assert(
      fc.property(powerOfTwo, shards, (slots, ranges) => {
        const held = ranges.flatMap(({ start, end }) => slotsIn(String(start), String(end), slots))
        expect(held).toEqual(Array.from({ length: slots }, (_, slot) => slot))
      }),
    )
  })

  test('a slot that a border of three shards cuts belongs to the shard that its records go to', () => {
    const third = hashes / 3n
    expect(slotsIn('0', String(third - 1n), 64)).toContain(21)
    expect(slotsIn(String(third), String(2n * third - 1n), 64)[0]).toBe(22)
  })
})

describe('checkSlots', () => {
  test('takes powers of two from 1 to 4,096', () => {
    expect([1, 2, 64, mostSlots].map(checkSlots)).toEqual([1, 2, 64, mostSlots])
  })

  test.each([0, -1, 3, 63, 8_192, 1.5, Number.NaN, 2 ** 32])('refuses %p by name', (slots) => {
    expect(() => checkSlots(slots)).toThrow(`${slots} slots cannot be had`)
  })
})
