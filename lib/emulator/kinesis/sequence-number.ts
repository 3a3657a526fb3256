/**
 * Sequence numbers look like those of AWS: 56 decimal digits, comparable as integers, never dense.
 *
 * In hexadecimal: `2 | epoch (9) | record number (16) | arrival second (9) | shard index (8) | 0002`.
 *
 * 1. Within a shard the record number decides, so numbers strictly increase.
 * 2. A child's epoch is greater than its parents', so all its numbers are greater than all of theirs.
 * 3. The shard index makes numbers unique in the stream, and lets a number that is used on a wrong shard be refused.
 */
/** Decimal digits that a request may give for one, far more than they have. */
export const SEQUENCE_DIGITS = 129

const PREFIX = 2n << 184n
const EPOCH_SHIFT = 148n
const NUMBER_SHIFT = 84n
const SECOND_SHIFT = 48n
const SHARD_SHIFT = 16n
const SUFFIX = 2n

const bits = (value: bigint, shift: bigint, width: number): number => Number(BigInt.asUintN(width, value >> shift))

/** What a sequence number says. `number` counts the records of the shard from 1; 0 stands before the first. */
export interface SequenceParts {
  readonly epoch: number
  readonly shardIndex: number
  readonly number: number
  readonly arrivalMs: number
}

/** The part that all numbers of one shard have in common. */
export function sequenceBase(epoch: number, shardIndex: number): bigint {
  return PREFIX + (BigInt(epoch) << EPOCH_SHIFT) + (BigInt(shardIndex) << SHARD_SHIFT) + SUFFIX
}

/** The sequence number of a shard's `number`-th record, which arrived at `arrivalMs`. */
export function sequenceNumber(base: bigint, number: number, arrivalMs: number): string {
  const second = Math.floor(arrivalMs / 1_000)
  return (base + (BigInt(number) << NUMBER_SHIFT) + (BigInt(second) << SECOND_SHIFT)).toString()
}

/** Takes a sequence number apart; undefined for one that this model did not make. `arrivalMs` has whole seconds only. */
export function parseSequenceNumber(text: string): SequenceParts | undefined {
  if (!/^\d{56}$/.test(text)) return undefined
  const value = BigInt(text)
  if (value >> 184n !== 2n || BigInt.asUintN(16, value) !== SUFFIX) return undefined
  return {
    epoch: bits(value, EPOCH_SHIFT, 36),
    shardIndex: bits(value, SHARD_SHIFT, 32),
    number: bits(value, NUMBER_SHIFT, 64),
    arrivalMs: bits(value, SECOND_SHIFT, 36) * 1_000,
  }
}
