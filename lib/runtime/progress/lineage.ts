/**
 * The lineage port: what the runner must know of the partitions of a stream to begin one where its parents ended.
 * docs/progress.md has the rules; `lib/aws` reads it from Kinesis, and tests have their own.
 */

/** A partition as its stream describes it. */
export interface PartitionDescription {
  /** The partitions that it was split or merged from: none, one or two. */
  readonly parents: readonly string[]
  /** The first hash of its range, in decimal digits. */
  readonly startHash: string
  /** The last hash of its range, in decimal digits. */
  readonly endHash: string
}

/** A partition in the list of its stream's partitions. */
export interface ListedPartition extends PartitionDescription {
  readonly partition: string
  readonly isClosed: boolean
}

export interface PartitionLineage {
  /** Every partition that the stream still knows, closed ones included. */
  list(signal: AbortSignal): Promise<readonly ListedPartition[]>
  /** True where the partition, closed or not, holds nothing behind `after` now (undefined: nothing at all). */
  isCaughtUp(partition: string, after: string | undefined, signal: AbortSignal): Promise<boolean>
  /** The partition; undefined where its stream no longer knows it, as all that it held is past its retention. */
  describe(partition: string, signal: AbortSignal): Promise<PartitionDescription | undefined>
  /**
   * True where the partition takes no more records and holds none behind `after`, a position in decimal digits
   * (undefined: from its beginning).
   */
  isDrained(partition: string, after: string | undefined, signal: AbortSignal): Promise<boolean>
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
