/** What can be said of the stages of an application: their mappings, and what the progress of each partition holds. */

import { describeError } from '../../../lib/core/errors.ts'
import { inParallel } from '../../../lib/runtime/keyed/in-parallel.ts'
import { firstGeneration, type Generation, readGeneration } from '../../../lib/runtime/progress/generation.ts'
import type { ListedPartition, PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import { progressName } from '../../../lib/runtime/progress/open.ts'
import type { ProgressOfAny } from '../../../lib/runtime/progress/progress.ts'
import { readKeyedProgress, readSourceProgress } from '../../../lib/runtime/progress/progress-format.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import type { GroupLag, MappingState, Operated, OperatedStage, StageKind } from './operated.ts'

/** What is known of one partition of a stage that keeps progress. */
export interface PartitionStatus extends Pick<ProgressOfAny, 'number' | 'failing' | 'suspect'> {
  readonly partition: string
  readonly isClosed: boolean
  /** Of a keyed stage its watermark, of another its largest event time, in ms since 1970 UTC; -Infinity where there is none. */
  readonly eventTimeMs: number
  /** The least time that a key of a keyed stage waits for by event time, in ms since 1970 UTC; undefined where none does. */
  readonly dueMs: number | undefined
  /** Nothing lies behind what is done. */
  readonly isCaughtUp: boolean
  /** When the first record arrived that is not done, in ms since 1970 UTC; undefined where there is none, or it is not known. */
  readonly waitingSinceMs: number | undefined
}

export interface StageStatus {
  readonly stage: string
  readonly kind: StageKind
  readonly mapping: MappingState
  /** Undefined for a stage that keeps no progress, or whose partitions cannot be listed. */
  readonly partitions: readonly PartitionStatus[] | undefined
  /** How often it was reset, from 1; 1 for a stage that keeps nothing. */
  readonly generation: number
  /** A reset of it has begun and not ended. */
  readonly isBeingReset: boolean
  /** Of a stage that reads a topic of Kafka. */
  readonly lag?: GroupLag | undefined
  /** Why not all is known of the topic that it reads. */
  readonly problem?: string
}

const answerMs = 60_000
const mostReads = 8

/** Reads what is true of every stage now. It only reads. */
export async function statusOf(operated: Operated): Promise<readonly StageStatus[]> {
  const states = await operated.mappingStates()
  const all: StageStatus[] = []
  for (const stage of operated.stages) {
    const mapping = states.get(stage.name) ?? 'Missing'
    const { generation, isHeld = false } = await generationOf(stage)
    const found = await placesOf(stage)
    all.push({ stage: stage.name, kind: stage.kind, mapping, generation, isBeingReset: isHeld, ...found })
  }
  return all
}

/** The brokers of a topic may be out of reach, or the topic be gone, and the rest is to be seen yet. */
async function placesOf(stage: OperatedStage): Promise<Pick<StageStatus, 'partitions' | 'lag' | 'problem'>> {
  if (stage.groupLag === undefined) return { partitions: await partitionsOf(stage) }
  const [partitions, lag] = await Promise.allSettled([partitionsOf(stage), stage.groupLag()])
  const failed = [partitions, lag].find(({ status }) => status === 'rejected')
  return {
    partitions: partitions.status === 'fulfilled' ? partitions.value : undefined,
    lag: lag.status === 'fulfilled' ? lag.value : undefined,
    ...(failed?.status === 'rejected' && { problem: describeError(failed.reason).message.split('\n')[0] ?? '' }),
  }
}

const generationOf = async ({ name, state }: OperatedStage): Promise<Generation> =>
  state === undefined ? firstGeneration : readGeneration(state.store, name, AbortSignal.timeout(answerMs))

/** The partitions of a stage; undefined where nothing is known of them. */
export async function partitionsOf(stage: OperatedStage): Promise<readonly PartitionStatus[] | undefined> {
  const { state, lineage } = stage
  // A queue has none, and those of a table's stream are not listed.
  if (state === undefined || lineage === undefined) return undefined
  const signal = AbortSignal.timeout(answerMs)
  const found = new Map<string, PartitionStatus>()
  const begins = await readGeneration(state.store, stage.name, signal)
  const listed = await lineage.list(signal)
  await inParallel(listed, mostReads, async (partition) => {
    const status = await partitionStatus(stage, { store: state.store, lineage }, partition, begins, signal)
    found.set(partition.partition, status)
  })
  return listed.flatMap(({ partition }) => found.get(partition) ?? [])
}

async function partitionStatus(
  stage: OperatedStage,
  { store, lineage }: { readonly store: StateStore; readonly lineage: PartitionLineage },
  { partition, isClosed }: ListedPartition,
  begins: Generation,
  signal: AbortSignal,
): Promise<PartitionStatus> {
  const stored = await store.readProgress(progressName(stage.name, partition), signal)
  const progress = stored && (stage.kind === 'keyed' ? keyedFacts(stored.value) : sourceFacts(stored.value))
  const { completed } = progress ?? {}
  const startsAtMs = progress?.startsAtMs ?? begins.startsAtMs
  const isCaughtUp = isClosed
    ? await lineage.isDrained(partition, completed, signal, startsAtMs)
    : await lineage.isCaughtUp(partition, completed, signal, startsAtMs)
  return {
    partition,
    isClosed,
    number: progress?.number ?? 0,
    eventTimeMs: progress?.eventTimeMs ?? Number.NEGATIVE_INFINITY,
    dueMs: progress?.dueMs,
    failing: progress?.failing,
    suspect: progress?.suspect,
    isCaughtUp,
    waitingSinceMs: isCaughtUp ? undefined : await stage.firstWaitingMs(partition, completed, startsAtMs),
  }
}

function keyedFacts(value: Parameters<typeof readKeyedProgress>[0]) {
  const progress = readKeyedProgress(value)
  const due = [...progress.earliest.event.values()]
  return {
    ...progress,
    startsAtMs: undefined,
    eventTimeMs: progress.watermarkMs,
    dueMs: due.length === 0 ? undefined : Math.min(...due),
  }
}

function sourceFacts(value: Parameters<typeof readSourceProgress>[0]) {
  const progress = readSourceProgress(value)
  return { ...progress, eventTimeMs: progress.largestEventTimeMs, dueMs: undefined }
}
