/** Lines: what each number of a keyed stage's log is. */
import type { IncomingRecord } from '../frames/frame.ts'

/** What one number of the log is. */
export interface Line {
  readonly number: number
  /** The stage's watermark at this number, in ms since 1970 UTC; -Infinity where there is none yet. */
  readonly watermarkMs: number
  /** Undefined for a duplicate, a control frame, an empty frame and an entry that cannot be decoded. */
  readonly record: IncomingRecord | undefined
  /** The frame's slot; of an entry that cannot be decoded, the first slot of the partition. */
  readonly slot: number
  /** True where records of its slot and upstream that stand behind it were read before. */
  readonly overtaken: boolean
  /** The entry's index in the batch, as `fold` was given it. */
  readonly entry: number
  /** Why the entry cannot be decoded, a TerminalError; undefined for any other. */
  readonly failure: unknown
  /** When the log took the entry in, in ms since 1970 UTC. */
  readonly arrivedAtMs: number
  /** The stage's processing time at this number: the largest arrival so far, in ms since 1970 UTC. */
  readonly processingMs: number
  /** The schema version of the record's value; 1 where there is no record. */
  readonly schemaVersion: number
}

/** What all lines of an entry have in common. */
export type SharedByLines = Omit<Line, 'number' | 'record' | 'overtaken'>

/** What a line is told of its entry. */
export type LinePlace = Pick<Line, 'slot' | 'entry' | 'arrivedAtMs'> & Partial<Pick<Line, 'schemaVersion' | 'failure'>>

/** A line as the fold makes it: a batch has very many, which stay until its end, so each is small. */
export class FoldedLine implements Line {
  readonly number: number
  readonly record: IncomingRecord | undefined
  readonly overtaken: boolean
  readonly shared: SharedByLines

  constructor(number: number, record: IncomingRecord | undefined, overtaken: boolean, shared: SharedByLines) {
    this.number = number
    this.record = record
    this.overtaken = overtaken
    this.shared = shared
  }

  get watermarkMs(): number {
    return this.shared.watermarkMs
  }

  get slot(): number {
    return this.shared.slot
  }

  get entry(): number {
    return this.shared.entry
  }

  get failure(): unknown {
    return this.shared.failure
  }

  get arrivedAtMs(): number {
    return this.shared.arrivedAtMs
  }

  get processingMs(): number {
    return this.shared.processingMs
  }

  get schemaVersion(): number {
    return this.shared.schemaVersion
  }
}

/** The line as one that cannot be applied, and why. */
export function unapplied(line: Line, failure: unknown): Line {
  const { number, record, overtaken, slot, entry, arrivedAtMs, schemaVersion, watermarkMs, processingMs } = line
  const shared = { slot, entry, arrivedAtMs, schemaVersion, failure, watermarkMs, processingMs }
  return new FoldedLine(number, record, overtaken, shared)
}
