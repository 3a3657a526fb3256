/** What a canary is: a part that is broken on purpose, at a port, and the referee that must notice. */
import type { MappingSettings } from '../../emulator/event-source-mapping/index.ts'
import type { KeyedOperator } from '../../operators/keyed/keyed-operator.ts'
import type { FramePublisher, FrameStream } from '../../runtime/frames/publisher.ts'
import type { RunnerClock } from '../../runtime/ports.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Runner, RunnerOptions } from '../../runtime/runner.ts'
import type { Sink } from '../../runtime/sink.ts'
import type { StateStore } from '../../state/state-store.ts'
import type { Faults } from './faults.ts'
import type { AnswerKind } from './mapped.ts'
import type { Owner } from './scheduler.ts'

/** What a broken part may know of the environment that it is in. */
export interface Place {
  readonly owner: Owner
  readonly clock: RunnerClock
  /** Of the topology: odd ones have more than even ones. */
  readonly version: number
  /** What a canary remembers of the announcer: one set for the whole run. */
  readonly said: Set<string>
  /** Of a sink, its name. */
  readonly sink?: string
}

export interface Canary {
  /** What is broken. */
  readonly breaks: string
  /** The referee that must notice. */
  readonly caughtBy: string
  /** What a run needs so that the break can show. @default as drawn */
  readonly faults?: Partial<Faults>
  /** Whether it is looked for in runs with time. @default false */
  readonly hasTime?: boolean
  readonly needsThirdStage?: boolean
  readonly needsDynamo?: boolean
  readonly runnerOptions?: RunnerOptions
  readonly mapping?: Partial<MappingSettings>
  /** Looked for on Kafka, with such a mapping, and with what functions answer. @default on Kinesis */
  readonly kafka?: { readonly mode: 'on-demand' | 'provisioned'; readonly answers: AnswerKind }
  readonly store?: (store: StateStore, place: Place) => StateStore
  readonly frames?: (stream: FrameStream) => FrameStream
  readonly publisher?: (publisher: FramePublisher, place: Place) => FramePublisher
  readonly sink?: (sink: Sink, place: Place) => Sink
  readonly lineage?: (lineage: PartitionLineage) => PartitionLineage
  /** What a keyed operator is replaced by. */
  readonly operator?: (operator: KeyedOperator) => KeyedOperator
  readonly runner?: (runner: Runner, said: ReadonlySet<string>) => Runner
  /** What only the announcer sees. */
  readonly announcerLineage?: (lineage: PartitionLineage, stage: string) => PartitionLineage
  /** `said` is one set for all rounds of a run. */
  readonly announcerFrames?: (publisher: FramePublisher, stage: string, said: Set<string>) => FramePublisher
}

/** A store that is another one in all but the given methods. */
export function storeWith(store: StateStore, changed: Partial<StateStore>): StateStore {
  return {
    readProgress: (...args) => store.readProgress(...args),
    writeProgress: (...args) => store.writeProgress(...args),
    readManifest: (...args) => store.readManifest(...args),
    writeManifest: (...args) => store.writeManifest(...args),
    replaceManifest: (...args) => store.replaceManifest(...args),
    readKeys: (...args) => store.readKeys(...args),
    readEntries: (...args) => store.readEntries(...args),
    listEntries: (...args) => store.listEntries(...args),
    commit: (...args) => store.commit(...args),
    putDue: (...args) => store.putDue(...args),
    readDue: (...args) => store.readDue(...args),
    deleteDue: (...args) => store.deleteDue(...args),
    ...changed,
  }
}

export const lineageWith = (lineage: PartitionLineage, changed: Partial<PartitionLineage>): PartitionLineage => ({
  list: (...args) => lineage.list(...args),
  isCaughtUp: (...args) => lineage.isCaughtUp(...args),
  describe: (...args) => lineage.describe(...args),
  isDrained: (...args) => lineage.isDrained(...args),
  ...changed,
})
