/** What a runner is given, and what it answers. */
import { RetryableError } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import { comparePartitionPositions } from './progress/lineage.ts'

/** Records in log order: an array, or whatever makes each record when it is asked for. */
export type RecordList = Pick<readonly SourceRecord[], 'length' | 'at'>

/** The records of one partition, in log order. */
export interface PartitionBatch {
  readonly partition: string
  readonly records: RecordList
}

/** Where one partition's batch ended. */
export interface PartitionFailure {
  readonly partition: string
  /** Index, in the partition's batch, of the first record that is not done. */
  readonly index: number
  /** The records from there on, which come again. */
  readonly notDone: readonly SourceRecord[]
  readonly error: unknown
}

export interface BatchResult {
  readonly failures: readonly PartitionFailure[]
}

/** The records of a list from an index on. */
export function rest(records: RecordList, from: number): SourceRecord[] {
  if (Array.isArray(records)) return records.slice(from)
  return Array.from({ length: records.length - from }, (_, i) => records.at(from + i) as SourceRecord)
}

/** Where a partition's batch ended: at its record of that index. */
export function failureAt({ partition, records }: PartitionBatch, index: number, error: unknown): PartitionFailure {
  return { partition, index, notDone: rest(records, index), error }
}

/** In a stage that keeps progress: why an attempt ends before the end of its batch, and at which number. */
export interface Halt {
  readonly number: number
  readonly error: unknown
  /** Whether this failure counts towards a dead letter. */
  readonly counts: boolean
}

/** Whether a position comes behind what is completed. */
export const isBehind = (position: string, completed: string | undefined): boolean =>
  completed === undefined || comparePartitionPositions(position, completed) > 0

/** Why a batch comes again of which another attempt has written the progress. */
export const moved = () => new RetryableError('another attempt is at this batch', { code: 'progress-conflict' })
