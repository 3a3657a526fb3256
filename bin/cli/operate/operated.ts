/** An application whose stages are looked at and acted upon: that of a CloudFormation stack, or of a local run. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { StageBindings } from '../../../lib/plan/stage-bindings.ts'
import type { PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'

export type StageKind = 'stateless' | 'feeding' | 'keyed'

/** As Lambda calls them; `Missing` where a stage has no mapping. */
export type MappingState = 'Enabled' | 'Disabled' | 'Missing' | (string & {})

export interface OperatedStage {
  readonly name: string
  readonly kind: StageKind
  readonly bindings: StageBindings
  /** Of a keyed stage. */
  readonly slots: number | undefined
  /** Where its progress is, and its keys; undefined for a stage that keeps nothing. */
  readonly state: { readonly store: StateStore; readonly tableName: string } | undefined
  /** Of the stream or the topic that it reads; undefined where it has no partitions, or is not known how its cluster is reached. */
  readonly lineage: PartitionLineage | undefined
  /** Of a stage that reads a topic of Kafka: how far the consumer group of its mapping is; undefined where it has no mapping. */
  readonly groupLag?: () => Promise<GroupLag | undefined>
  /**
   * The arrival of the first record behind `after`, or where that is undefined from `startsAtMs` on, in ms since 1970 UTC;
   * undefined where there is none, or it is not known.
   */
  firstWaitingMs(
    partition: string,
    after: string | undefined,
    startsAtMs: number | undefined,
  ): Promise<number | undefined>
}

/** How far a consumer group is in a topic. Offsets are decimal digits. */
export interface GroupLag {
  readonly topic: string
  readonly group: string
  readonly partitions: readonly {
    readonly partition: string
    /** Of the next record that the group is to have; undefined where it has committed nothing. */
    readonly committed: string | undefined
    /** Behind the last record. */
    readonly end: string
    /** How many offsets lie between; where nothing is committed, from where the mapping begins. */
    readonly behind: number
  }[]
}

export interface Operated {
  /** Such as `orders-app (stack Orders)`. */
  readonly title: string
  readonly topology: string
  /** Each behind those that feed it. */
  readonly stages: readonly OperatedStage[]
  /** What a command that goes on this one is called with, such as `--app orders-app`. */
  readonly flags: string
  readonly dynamodb: DynamoDBClient
  /** How long an invocation may still run once its mapping is disabled, in ms. */
  readonly inFlightMs: number
  /** What is to be said where nothing moves whatever is enabled, as the run is not up. */
  readonly note: string | undefined
  /** The states of the mappings, by stage. */
  mappingStates(): Promise<ReadonlyMap<string, MappingState>>
  /** Asks for the mappings of these stages to be enabled or disabled. Their states tell when they are. */
  switchMappings(stages: readonly string[], enabled: boolean): Promise<void>
  /** Throws a ConfigurationError where a source cannot be made to be read from that time on. */
  checkRewind(stage: string, fromMs: number): Promise<void>
  /**
   * Makes a source, whose mapping is disabled, be read from that time on. Resolves with what is left to do, in sentences; nothing
   * where it goes on by itself once it is enabled.
   */
  rewind(stage: string, fromMs: number): Promise<readonly string[]>
}

/** The bindings of stages in the order in which records pass them, with what follows from all of them together. */
export function orderedStages(all: readonly StageBindings[]): readonly {
  readonly bindings: StageBindings
  readonly name: string
  readonly kind: StageKind
  readonly slots: number | undefined
}[] {
  const slotsOf = new Map(all.flatMap(({ feeds = [] }) => feeds.map(({ stage, slots }) => [stage, slots] as const)))
  const kindOf = ({ state }: StageBindings, name: string): StageKind =>
    state === undefined ? 'stateless' : slotsOf.has(name) ? 'keyed' : 'feeding'
  const left = new Map(all.map((bindings) => [nameOf(bindings), bindings]))
  const ordered: StageBindings[] = []
  while (left.size > 0) {
    const fed = new Set([...left.values()].flatMap(({ feeds = [] }) => feeds.map(({ stage }) => stage)))
    const free = [...left].filter(([name]) => !fed.has(name))
    // A plan has no cycles, so there is always one; what is not of a plan is taken as it comes.
    for (const [name, bindings] of free.length > 0 ? free : [...left]) {
      left.delete(name)
      ordered.push(bindings)
    }
  }
  return ordered.map((bindings) => {
    const name = nameOf(bindings)
    return { bindings, name, kind: kindOf(bindings, name), slots: slotsOf.get(name) }
  })
}

const nameOf = ({ sources }: StageBindings): string => sources.map(({ name }) => name).join('+')

/** Throws a ConfigurationError where there is no stage of that name. */
export function stageIn({ stages, title }: Operated, name: string): OperatedStage {
  const found = stages.find((stage) => stage.name === name)
  if (found) return found
  throw new ConfigurationError(
    `There is no stage "${name}" in ${title}: there are ${stages.map((stage) => stage.name).join(', ')}.`,
  )
}
