/**
 * Slots: the fixed parts into which the keys of a keyed stage fall.
 *
 * 1. The slot of a key is the top bits of the MD5 of its UTF-8 bytes, the hash that Kinesis itself places records by.
 * 2. Whatever is written for a slot carries the slot's first hash, so a slot is whole in one shard through every reshard:
 *    in the shard whose hash range holds that one hash.
 * 3. On Kafka a slot is in the partition whose number is the slot modulo the number of partitions, which is fixed.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html (ExplicitHashKey)
 */
import { hash } from 'node:crypto'
import { ConfigurationError, invariant } from './errors.ts'

/** How many slots a keyed stage has unless it says otherwise. */
export const defaultSlots = 64
/** The most slots that a stage may have: a slot is made of the first twelve bits of a hash. */
export const mostSlots = 4_096

const hashes = 2n ** 128n

/**
 * Checks a stage's number of slots: a power of two from 1 to 4,096. Throws a {@link ConfigurationError} otherwise.
 *
 * @example
 * checkSlots(64) // 64
 */
export function checkSlots(slots: number): number {
  if (Number.isInteger(slots) && slots >= 1 && slots <= mostSlots && (slots & (slots - 1)) === 0) return slots
  throw new ConfigurationError(
    `${slots} slots cannot be had: give a power of two from 1 to ${mostSlots}, such as ${defaultSlots}.`,
  )
}

/**
 * The slot of a key, from 0 to `slots - 1`. `slots` is a checked number of slots.
 *
 * @example
 * slotOf('LHR', 64) // 12
 */
export function slotOf(key: string, slots: number = defaultSlots): number {
  const digest = hash('md5', key, 'binary')
  return (((digest.charCodeAt(0) << 4) | (digest.charCodeAt(1) >> 4)) * slots) >>> 12
}

/**
 * The first 128-bit hash of a slot in decimal digits, as ExplicitHashKey takes it.
 *
 * @example
 * firstHashOf(1, 64) // '5316911983139663491615228241121378304'
 */
export function firstHashOf(slot: number, slots: number = defaultSlots): string {
  invariant(Number.isInteger(slot) && slot >= 0 && slot < slots, `slot ${slot} is none of ${slots}`)
  return String(BigInt(slot) * (hashes / BigInt(slots)))
}

/**
 * The slots of a shard, ascending: those whose first hash lies in the shard's hash range, both ends included, as
 * DescribeStream and ListShards give it in decimal digits. Every slot belongs to exactly one open shard, also where a
 * shard's border falls inside the slot.
 *
 * @example
 * slotsIn('0', '170141183460469231731687303715884105727', 4) // [0, 1]
 */
export function slotsIn(startHash: string, endHash: string, slots: number = defaultSlots): readonly number[] {
  const size = hashes / BigInt(slots)
  const first = Number((BigInt(startHash) + size - 1n) / size)
  const last = Number(BigInt(endHash) / size)
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i)
}

/** Which slots a partition holds: those of a hash range, or of a Kafka topic those that have its number for remainder. */
export type SlotPlace =
  | {
      /** The first hash of its range, in decimal digits. */
      readonly startHash: string
      /** The last hash of its range, in decimal digits. */
      readonly endHash: string
    }
  | {
      /** The number of the Kafka partition, from 0. */
      readonly remainder: number
      /** How many partitions its topic has. */
      readonly partitions: number
    }

/**
 * The slots that a partition holds, ascending.
 *
 * @example
 * slotsHeld({ remainder: 1, partitions: 4 }, 16) // [1, 5, 9, 13]
 */
export function slotsHeld(place: SlotPlace, slots: number = defaultSlots): readonly number[] {
  if ('startHash' in place) return slotsIn(place.startHash, place.endHash, slots)
  const { remainder, partitions } = place
  const held = Math.max(0, Math.ceil((slots - remainder) / partitions))
  return Array.from({ length: held }, (_, i) => remainder + i * partitions)
}

/** How many keys a {@link SlotMemo} remembers before it begins anew. */
const mostRemembered = 10_000

/** {@link slotOf} for keys that come again and again: most streams have few hot ones. */
export class SlotMemo {
  readonly #slots: number
  readonly #known = new Map<string, number>()

  constructor(slots: number) {
    this.#slots = slots
  }

  of(key: string): number {
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const slot = slotOf(key, this.#slots)
    if (this.#known.size >= mostRemembered) this.#known.clear()
    this.#known.set(key, slot)
    return slot
  }
}
