/** What a keyed batch steps: lines of the log that have a record, and keys that fire at a line; and what becomes of them. */
import type { EntryNotLoaded } from '../../state/key-draft.ts'
import type { FrameRecord } from '../frames/frame.ts'
import type { Line } from '../progress/fold.ts'

/** A line that has a record to apply, with what its steps are given. */
export interface RecordLine extends Line {
  readonly record: FrameRecord
}

/** Whether there is anything to apply at a line. */
export const hasRecord = (line: Line): line is RecordLine => line.record !== undefined

/** A key that fires at the number of another's record, and what its step needs. */
export interface FiringLine {
  readonly line: Line
  /** The line's index. */
  readonly index: number
  readonly key: string
  readonly keyHash: string
}

/** What became of a line. */
export type Stepped =
  /** Applied, or was applied before. */
  | 'done'
  /** Its record is a dead letter from here on. */
  | { readonly givenUp: unknown; readonly attempts: number }
  /** It ends the batch. */
  | { readonly halt: unknown; readonly counts: boolean }
  /** Its step needs more of the key's state. */
  | { readonly wants: EntryNotLoaded }

/** What became of a line all of whose state is loaded. */
export type SteppedLoaded = Exclude<Stepped, { readonly wants: unknown }>
