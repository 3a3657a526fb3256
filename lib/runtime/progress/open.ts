/**
 * How progress of a partition is opened: as it is stored, or else from the partition's parents. Rules G1 to G4 of
 * docs/progress.md:
 *
 * 1. A partition without progress of its own begins when each of its parents is drained: closed, and read to its end.
 * 2. A closed parent that never held a record has no progress. It stands for its own parents, which must be drained as well.
 * 3. A parent that the stream no longer knows counts as drained, with the progress that it left; without any it means nothing.
 * 4. Opening writes nothing: the first batch stores what it made of it.
 *
 * A partition begins with the generation of its stage (generation.ts), and with parents of that one only.
 */
import { RetryableError } from '../../core/errors.ts'
import { slotsHeld } from '../../core/slot.ts'
import type { StateStore, StateValue } from '../../state/state-store.ts'
import { type Generation, hasBegun, readGeneration } from './generation.ts'
import type { PartitionDescription, PartitionLineage } from './lineage.ts'
import { mergeKeyed, mergeSource } from './merge.ts'
import type { KeyedProgress, ProgressOfAny, SourceProgress } from './progress.ts'
import { readKeyedProgress, readSourceProgress } from './progress-format.ts'

export interface OpenOptions {
  readonly store: StateStore
  /** The name of the stage: its progress is stored as `${stage}/${partition}`. */
  readonly stage: string
  readonly partition: string
  /** Of the stream that the stage reads. */
  readonly lineage: PartitionLineage
  readonly signal: AbortSignal
}

export interface OpenedProgress<P> {
  /** The version that was read; 0 where nothing is stored yet. */
  readonly version: number
  readonly progress: P
}

/** What differs between the two kinds of progress. */
interface Kind<P extends ProgressOfAny> {
  read(value: StateValue, label: string): P
  merge(parents: readonly P[], description: PartitionDescription, generation: Generation): P
}

/** The name under which a stage's progress in a partition is stored. */
export const progressName = (stage: string, partition: string): string => `${stage}/${partition}`

class Opening<P extends ProgressOfAny> {
  readonly #options: OpenOptions
  readonly #kind: Kind<P>
  /** What the parents left. Two empty parents may share one of their own. */
  readonly #left = new Map<string, P | undefined>()
  #generation: Promise<Generation> | undefined

  constructor(options: OpenOptions, kind: Kind<P>) {
    this.#options = options
    this.#kind = kind
  }

  async open(): Promise<OpenedProgress<P>> {
    const { stage, partition, lineage, signal } = this.#options
    const stored = await this.#stored(partition)
    if (stored && hasBegun(stored.progress)) return stored
    const description = await lineage.describe(partition, signal)
    if (description) return { version: stored?.version ?? 0, progress: await this.#inherit(description) }
    throw new RetryableError(
      `stage "${stage}" has no progress in partition ${partition}, which its stream does not know: check that the stage is bound to the stream that it is invoked for`,
      { code: 'partition-unknown' },
    )
  }

  async #stored(partition: string): Promise<OpenedProgress<P> | undefined> {
    const { store, stage, signal } = this.#options
    const stored = await store.readProgress(progressName(stage, partition), signal)
    if (!stored) return undefined
    const label = `the progress of stage "${stage}" in partition ${partition}`
    return { version: stored.version, progress: this.#kind.read(stored.value, label) }
  }

  async #inherit(description: PartitionDescription): Promise<P> {
    const parents: P[] = []
    for (const parent of description.parents) {
      if (!this.#left.has(parent)) this.#left.set(parent, await this.#leftBy(parent))
      const left = this.#left.get(parent)
      if (left) parents.push(left)
    }
    return this.#kind.merge(parents, description, await this.#ownGeneration())
  }

  #ownGeneration(): Promise<Generation> {
    const { store, stage, signal } = this.#options
    this.#generation ??= readGeneration(store, stage, signal).then((generation) => {
      if (generation.isHeld) throw resetUnderway(stage)
      return generation
    })
    return this.#generation
  }

  /** What a drained partition left to its children; undefined where it left nothing. */
  async #leftBy(partition: string): Promise<P | undefined> {
    const { stage, lineage, signal } = this.#options
    const stored = (await this.#stored(partition))?.progress
    const progress = stored && hasBegun(stored) ? stored : undefined
    const { generation, startsAtMs } = await this.#ownGeneration()
    if (progress && progress.generation !== generation) throw resetUnderway(stage)
    const description = await lineage.describe(partition, signal)
    if (!description) return progress
    const isDrained = await lineage.isDrained(partition, progress?.completed, signal, startsAtMs)
    if (isDrained) return progress ?? this.#inherit(description)
    throw new RetryableError(
      `stage "${stage}" has not read partition ${partition} to its end (it has completed ${progress?.completed ?? 'nothing'}), and partition ${this.#options.partition} follows it: the child waits`,
      { code: 'parent-not-drained' },
    )
  }
}

/** Parents of one generation and a child of the next would make one partition of two logs. */
export const resetUnderway = (stage: string) =>
  new RetryableError(
    `stage "${stage}" is being reset, and what it begins anew waits: where that was cut off, run \`millrace reset\` again`,
    {
      code: 'reset-underway',
    },
  )

/**
 * Opens the progress of a stage that feeds keyed stages. Throws a {@link RetryableError}: `parent-not-drained`,
 * `partition-unknown`, `newer-format`, `progress-unreadable`.
 *
 * @example
 * const { version, progress } = await openSourceProgress({ store, stage: 'orders', partition, lineage, signal })
 */
export function openSourceProgress(options: OpenOptions): Promise<OpenedProgress<SourceProgress>> {
  return new Opening<SourceProgress>(options, {
    read: readSourceProgress,
    merge: (parents, _, { generation, startsAtMs }) => ({ ...mergeSource(parents), generation, startsAtMs }),
  }).open()
}

/**
 * Opens the progress of a keyed stage that has so many slots. Throws as {@link openSourceProgress} does, and
 * `slots-changed` where progress was made with another number of slots.
 */
export function openKeyedProgress(
  options: OpenOptions & { readonly slots: number },
): Promise<OpenedProgress<KeyedProgress>> {
  const { slots, stage } = options
  return new Opening<KeyedProgress>(options, {
    read(value, label) {
      const progress = readKeyedProgress(value, label)
      if (progress.slots === slots) return progress
      throw new RetryableError(
        `stage "${stage}" has ${slots} slots, but ${label} was made with ${progress.slots}: slots are fixed for the life of a stage, so set them back to ${progress.slots}, or give the stage another name, under which it begins anew`,
        { code: 'slots-changed' },
      )
    },
    merge: (parents, description, { generation }) => ({
      ...mergeKeyed(parents, slots, slotsHeld(description, slots)),
      generation,
    }),
  }).open()
}
