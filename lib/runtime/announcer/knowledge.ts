/** What the announcer reads: the progress of stages in the partitions of their streams. It only reads. */
import { invariant, RetryableError } from '../../core/errors.ts'
import { slotsHeld } from '../../core/slot.ts'
import type { FeedingStage, KeyedStage, StagePlan } from '../../plan/plan.ts'
import type { StateStore, StateValue } from '../../state/state-store.ts'
import type { Upstream } from '../frames/frame.ts'
import type { Position } from '../frames/position.ts'
import { inParallel } from '../keyed/in-parallel.ts'
import { markLagOf } from '../keyed/line-steps.ts'
import type { Ports } from '../ports.ts'
import { type Generation, hasBegun, readGeneration } from '../progress/generation.ts'
import type { ListedPartition } from '../progress/lineage.ts'
import { mergeKeyed, mergeSource } from '../progress/merge.ts'
import { progressName } from '../progress/open.ts'
import {
  blankSourceProgress,
  type KeyedProgress,
  type ProgressOfAny,
  reachedMarkMs,
  type SourceProgress,
} from '../progress/progress.ts'
import { readKeyedProgress, readSourceProgress } from '../progress/progress-format.ts'
import { StageStream } from './stage-stream.ts'

/** What the announcer knows of the world. */
export type AnnouncerPorts = Pick<Ports, 'clock' | 'state' | 'frames' | 'lineage'>

/** Partitions whose progress is read at a time. */
const mostReads = 16

/** What is true of one upstream of a keyed stage. What is asked for is found out once a round, and only when it is asked. */
export interface UpstreamFacts {
  readonly upstream: Upstream
  /** In ms since 1970 UTC; -Infinity where it has none. */
  readonly markMs: number
  /** By slot of the keyed stage. */
  readonly lastSent: ReadonlyMap<number, Position>
  /** Closed, and drained to its end, with all that it came from. */
  isOver(): Promise<boolean>
  /**
   * Of a source partition that is truly caught up: when the record of its mark arrived, in ms since 1970 UTC; `sinceMs` is
   * undefined where it never had one. Undefined for any other.
   */
  idle(): Promise<{ readonly sinceMs: number | undefined } | undefined>
}

/** What a round knows of a stage that feeds others. */
export interface FeederKnowledge {
  /** Undefined while the stage is being reset: its partitions are of several generations then. */
  readonly generation: number | undefined
  /** What is true of each of its partitions, for the keyed stage `fed`. */
  facts(fed: string): Promise<readonly UpstreamFacts[]>
  /** What is true of a partition that is not listed, if its stream knows it no more; undefined where it does. */
  lost(partition: string, fed: string): Promise<UpstreamFacts | undefined>
}

/** A partition of a keyed stage with its progress, stored or inherited. */
export interface Known {
  readonly partition: string
  readonly progress: KeyedProgress
}

/** The stream and the progress of one stage. */
class StageProgress<P extends ProgressOfAny> {
  readonly stream: StageStream
  /** What partitions without progress begin with. */
  readonly begins: Generation
  readonly #store: StateStore
  readonly #stage: string
  readonly #format: (value: StateValue, label: string) => P
  readonly #signal: AbortSignal
  readonly #stored = new Map<string, P>()

  private constructor(
    stage: string,
    stream: StageStream,
    store: StateStore,
    format: (value: StateValue, label: string) => P,
    begins: Generation,
    signal: AbortSignal,
  ) {
    this.begins = begins
    this.stream = stream
    this.#store = store
    this.#stage = stage
    this.#format = format
    this.#signal = signal
  }

  /** Lists the partitions, and then reads what is stored of them and of their parents, whether those are listed or not. */
  static async read<P extends ProgressOfAny>(
    { name }: StagePlan,
    ports: AnnouncerPorts,
    signal: AbortSignal,
    format: (value: StateValue, label: string) => P,
  ): Promise<StageProgress<P>> {
    const [lineage, store] = [ports.lineage?.(name), ports.state?.(name)]
    invariant(lineage && store, `the announcer has no lineage or no state table of stage "${name}"`)
    const begins = await readGeneration(store, name, signal)
    const stream = await StageStream.read(lineage, signal, begins.startsAtMs)
    const all = new StageProgress(name, stream, store, format, begins, signal)
    const names = stream.listed.flatMap(({ partition, parents }) => [partition, ...parents])
    await inParallel([...new Set(names)], mostReads, (partition) => all.look(partition))
    return all
  }

  async look(partition: string): Promise<void> {
    const found = await this.#store.readProgress(progressName(this.#stage, partition), this.#signal)
    const label = `the progress of stage "${this.#stage}" in partition ${partition}`
    if (found) this.#stored.set(partition, this.#format(found.value, label))
  }

  /** What was made of a partition; what a reset left counts for none. */
  stored(partition: string): P | undefined {
    const found = this.#stored.get(partition)
    return found && hasBegun(found) ? found : undefined
  }

  get generation(): number | undefined {
    const { generation, isHeld } = this.begins
    if (isHeld) return undefined
    const all = [...this.#stored.values()]
    return all.every((found) => !hasBegun(found) || found.generation === generation) ? generation : undefined
  }
}

const nothingSent: ReadonlyMap<number, Position> = new Map()
const never = async () => undefined

/** Progress of a stage that reads a source. */
export class SourceKnowledge implements FeederKnowledge {
  readonly #stage: FeedingStage
  readonly #all: StageProgress<SourceProgress>
  readonly #idle = new Map<string, ReturnType<UpstreamFacts['idle']>>()

  private constructor(stage: FeedingStage, all: StageProgress<SourceProgress>) {
    this.#stage = stage
    this.#all = all
  }

  static async read(stage: FeedingStage, ports: AnnouncerPorts, signal: AbortSignal): Promise<SourceKnowledge> {
    return new SourceKnowledge(stage, await StageProgress.read(stage, ports, signal, readSourceProgress))
  }

  get generation(): number | undefined {
    return this.#all.generation
  }

  async facts(fed: string): Promise<readonly UpstreamFacts[]> {
    const facts: UpstreamFacts[] = []
    for (const { partition } of this.#all.stream.listed) facts.push(await this.#factsOf(partition, fed))
    return facts
  }

  async lost(partition: string, fed: string): Promise<UpstreamFacts | undefined> {
    if (!(await this.#all.stream.isGone(partition))) return undefined
    await this.#all.look(partition)
    return { ...(await this.#factsOf(partition, fed)), isOver: async () => true }
  }

  async #factsOf(partition: string, fed: string): Promise<UpstreamFacts> {
    const { stream } = this.#all
    const begins = await this.#beginOf(partition)
    return {
      upstream: { name: this.#stage.name, partition },
      markMs: begins.largestEventTimeMs - this.#stage.source.outOfOrdernessMs,
      lastSent: this.#all.stored(partition)?.sent.get(fed) ?? nothingSent,
      isOver: () => stream.isOver(partition, this.#completedOf),
      idle: () => {
        const known = this.#idle.get(partition) ?? this.#findIdle(partition, begins)
        this.#idle.set(partition, known)
        return known
      },
    }
  }

  readonly #completedOf = (partition: string) => this.#all.stored(partition)?.completed

  async #findIdle(partition: string, begins: SourceProgress): ReturnType<UpstreamFacts['idle']> {
    if (!(await this.#all.stream.isCaughtUp(partition, this.#completedOf))) return undefined
    const hadRecord = begins.largestEventTimeMs > Number.NEGATIVE_INFINITY
    return { sinceMs: hadRecord ? begins.largestArrivedAtMs : undefined }
  }

  /**
   * What is stored, or else what the partition will at least begin with. While a parent without a record may still come to
   * one, that is nothing: its record may be older than those of the other parent.
   */
  async #beginOf(partition: string): Promise<SourceProgress> {
    const { stream } = this.#all
    const stored = this.#all.stored(partition)
    if (stored) return stored
    const parents: SourceProgress[] = []
    for (const parent of stream.parentsOf(partition)) {
      const left = await this.#beginOf(parent)
      const hadRecord = left.largestEventTimeMs > Number.NEGATIVE_INFINITY
      if (!hadRecord && !(await stream.isOver(parent, this.#completedOf))) return blankSourceProgress
      parents.push(left)
    }
    return mergeSource(parents)
  }
}

/** Progress of a keyed stage. */
export class KeyedKnowledge implements FeederKnowledge {
  readonly #stage: KeyedStage
  readonly #all: StageProgress<KeyedProgress>

  private constructor(stage: KeyedStage, all: StageProgress<KeyedProgress>) {
    this.#stage = stage
    this.#all = all
  }

  static async read(stage: KeyedStage, ports: AnnouncerPorts, signal: AbortSignal): Promise<KeyedKnowledge> {
    const format = (value: StateValue, label: string) => ofSlots(stage, readKeyedProgress(value, label), label)
    return new KeyedKnowledge(stage, await StageProgress.read(stage, ports, signal, format))
  }

  get generation(): number | undefined {
    return this.#all.generation
  }

  /** The partitions that still take records, with what they know or will at least begin with. */
  get open(): readonly Known[] {
    return this.#all.stream.open.map((listed) => ({ partition: listed.partition, progress: this.#beginOf(listed) }))
  }

  /**
   * The least time that any key waits for, by event time; Infinity where none does. Closed partitions have left what they
   * waited for to the open ones.
   */
  get earliestDueMs(): number {
    return Math.min(
      Number.POSITIVE_INFINITY,
      ...this.open.flatMap(({ progress }) => [...progress.earliest.event.values()]),
    )
  }

  async facts(fed: string): Promise<readonly UpstreamFacts[]> {
    // From a partition that holds no slot nothing is ever sent, and its watermark never moves.
    return this.#all.stream.listed
      .filter((listed) => slotsHeld(listed, this.#stage.slots).length > 0)
      .map((listed) => this.#factsOf(listed.partition, reachedMarkMs(this.#beginOf(listed)), fed))
  }

  async lost(partition: string, fed: string): Promise<UpstreamFacts | undefined> {
    if (!(await this.#all.stream.isGone(partition))) return undefined
    await this.#all.look(partition)
    const left = this.#all.stored(partition)
    const markMs = left === undefined ? Number.NEGATIVE_INFINITY : reachedMarkMs(left)
    return { ...this.#factsOf(partition, markMs, fed), isOver: async () => true }
  }

  #factsOf(partition: string, markMs: number, fed: string): UpstreamFacts {
    const completedOf = (name: string) => this.#all.stored(name)?.completed
    return {
      upstream: { name: this.#stage.name, partition },
      markMs: markMs - markLagOf(this.#stage),
      lastSent: this.#all.stored(partition)?.sent.get(fed) ?? nothingSent,
      isOver: () => this.#all.stream.isOver(partition, completedOf),
      // Its marks come from its upstreams: where those are silent, their idle marks move its watermark.
      idle: never,
    }
  }

  #beginOf(listed: ListedPartition): KeyedProgress {
    const stored = this.#all.stored(listed.partition)
    if (stored) return stored
    const { slots } = this.#stage
    const parents = listed.parents.flatMap((name) => {
      const parent = this.#all.stream.of(name)
      return parent ? this.#beginOf(parent) : (this.#all.stored(name) ?? [])
    })
    return mergeKeyed(parents, slots, slotsHeld(listed, slots))
  }
}

/** Who announced by another number of slots would place frames where nobody looks for them. */
function ofSlots({ name, slots }: KeyedStage, progress: KeyedProgress, label: string): KeyedProgress {
  if (progress.slots === slots) return progress
  throw new RetryableError(
    `stage "${name}" has ${slots} slots, but ${label} was made with ${progress.slots}: slots are fixed for the life of a stage, so set them back to ${progress.slots}`,
    { code: 'slots-changed' },
  )
}
