/** What a keyed batch steps: lines of the log that have a record, and keys that fire at a line; and what becomes of them. */
import type { EntryNotLoaded } from '../../state/key-draft.ts'
import type { IncomingRecord } from '../frames/frame.ts'
import type { Line } from '../progress/fold.ts'

/** A line that has a record to apply, with what its steps are given. */
export interface RecordLine extends Line {
  readonly record: IncomingRecord
}

/** Whether there is anything to apply at a line. */
export const hasRecord = (line: Line): line is RecordLine => line.record !== undefined && line.failure === undefined

/** A key that fires at a number without a record of its own to apply there, and what its step needs. */
export interface FiringLine {
  readonly line: Line
  /** The line's index. */
  readonly index: number
  readonly key: string
  /** Orders it among the keys that fire at another's record; undefined at a record of its own that is not applied. */
  readonly keyHash: string | undefined
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
