/** What a run runs: one of two applications, with what is sent to it, and how its runs are judged. */
import type { ExpiredItem } from '../../state/memory-store.ts'
import type { Finding } from './findings.ts'
import type { Built } from './release.ts'
import type { SourceItem } from './variant.ts'

/** The keys and entries that the records of a frame read and write. */
export interface Touched {
  readonly keys: readonly string[]
  readonly entries: readonly string[]
  readonly audits: number
  /** When the oldest of the records came to the source; infinity where there is none. */
  readonly oldestMs: number
}

/** What the referees say of a run, and what else they counted in it. */
export interface Verdict {
  readonly findings: readonly Finding[]
  readonly met: ReadonlyMap<string, number>
}

export interface Application<Run> {
  /** Whether it has windows and timers: then the announcer runs, and tables delete what is empty. */
  readonly hasTime: boolean
  readonly topology: string
  /** The stage that reads the source has the name of the source, and so has its stream. */
  readonly source: string
  /** In the order in which they feed each other; the streams have their names. */
  readonly keyedStages: readonly { readonly name: string; readonly slots: number }[]
  readonly records: readonly SourceItem[]
  /** From the least event time to the largest, in ms. */
  readonly spanMs: number
  /** From which a release builds two versions that are compatible with each other; the second has all that the first has. */
  readonly built: Built
  /** What a frame of a keyed stage's stream reads and writes. */
  touchedBy(stage: string, data: Uint8Array): Touched
  /** Whether a sink never takes a value of so many cents. */
  rejects(sink: string, cents: number): boolean
  /**
   * Whether TTL may take an item half an hour after it has expired, and not days: not where the event times of later records say
   * that less time has gone by.
   */
  ttlTakes(item: ExpiredItem): boolean
  /** What still waits for time to pass when all input is done. */
  waiting(run: Run): Promise<readonly string[]>
  judge(run: Run): Promise<Verdict>
}
