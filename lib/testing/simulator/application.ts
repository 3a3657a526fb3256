/** What a run runs: one of two applications, with what is sent to it, and how its runs are judged. */
import type { Topology } from '../../topology/topology.ts'
import type { Finding } from './findings.ts'

/** What one record of the source is. */
export interface SourceItem {
  /** The partition key: records of one account keep their order. */
  readonly account: string
  readonly bytes: Uint8Array
}

/** The keys and entries that the records of a frame read and write. */
export interface Touched {
  readonly keys: readonly string[]
  readonly entries: readonly string[]
  readonly audits: number
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
  /** Two versions that are compatible with each other; `kill` ends the process that runs the step at hand. */
  topologyOf(version: 0 | 1, kill: () => void): Topology
  /** What a frame of a keyed stage's stream reads and writes. */
  touchedBy(stage: string, data: Uint8Array): Touched
  /** Whether a sink never takes a value of so many cents. */
  rejects(sink: string, cents: number): boolean
  /** What still waits for time to pass when all input is done. */
  waiting(run: Run): Promise<readonly string[]>
  judge(run: Run): Promise<Verdict>
}
