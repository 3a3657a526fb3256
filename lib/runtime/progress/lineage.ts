/**
 * The lineage port: what the runner must know of the partitions of a stream to begin one where its parents ended.
 * docs/progress.md has the rules; `lib/aws` reads it from Kinesis, and tests have their own.
 */

import type { SlotPlace } from '../../core/slot.ts'

/** A partition as its stream describes it. */
export type PartitionDescription = SlotPlace & {
  /** The partitions that it was split or merged from: none, one or two. A partition of Kafka never has any. */
  readonly parents: readonly string[]
}

/** A partition in the list of its stream's partitions. */
export type ListedPartition = PartitionDescription & {
  /** A Kinesis shard id, or the number of a Kafka partition in decimal digits. */
  readonly partition: string
  readonly isClosed: boolean
}

export interface PartitionLineage {
  /**
   * What tells this stream from every other that had its name, such as the id of a Kafka topic: positions of a topic that was made
   * again start over, and would pass for done. Asked of the service each time; throws a RetryableError where that does not answer.
   * @default left out where positions only grow, whatever is made again: Kinesis
   */
  identity?(signal: AbortSignal): Promise<string>
  /** Every partition that the stream still knows, closed ones included. */
  list(signal: AbortSignal): Promise<readonly ListedPartition[]>
  /**
   * True where the partition, closed or not, holds nothing behind `after` now (undefined: nothing at all, or nothing that
   * arrived at `startsAtMs` or later, in ms since 1970 UTC).
   */
  isCaughtUp(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs?: number | undefined,
  ): Promise<boolean>
  /** The partition; undefined where its stream no longer knows it, as all that it held is past its retention. */
  describe(partition: string, signal: AbortSignal): Promise<PartitionDescription | undefined>
  /**
   * True where the partition takes no more records and holds none behind `after`, a position in decimal digits
   * (undefined: from its beginning, or from `startsAtMs` on).
   */
  isDrained(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs?: number | undefined,
  ): Promise<boolean>
}

const withoutZeros = (digits: string): string => (digits.startsWith('0') ? digits.replace(/^0+/, '') : digits)

/**
 * Orders two positions of one partition, decimal digits of any length: negative where `a` comes first, 0 where they are
 * one. Kinesis sequence numbers grow by digits, so their texts do not sort.
 *
 * @example
 * comparePartitionPositions('9900000000002513012315', '10000000000002513012315') // negative
 */
export function comparePartitionPositions(a: string, b: string): number {
  const left = withoutZeros(a)
  const right = withoutZeros(b)
  if (left.length !== right.length) return left.length - right.length
  if (left === right) return 0
  return left < right ? -1 : 1
}
