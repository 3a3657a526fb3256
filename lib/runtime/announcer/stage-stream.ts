/** The partitions of the stream that one stage reads, as one round of the announcer sees them: listed once, at its start. */
import type { ListedPartition, PartitionLineage } from '../progress/lineage.ts'

/** The position of the last entry that is done in a partition; undefined where none is. */
export type CompletedOf = (partition: string) => string | undefined

export class StageStream {
  readonly listed: readonly ListedPartition[]
  readonly #byName: ReadonlyMap<string, ListedPartition>
  readonly #lineage: PartitionLineage
  readonly #signal: AbortSignal
  /** What arrived before does not count where nothing is done yet, in ms since 1970 UTC. */
  readonly #startsAtMs: number | undefined
  readonly #over = new Map<string, Promise<boolean>>()

  private constructor(
    listed: readonly ListedPartition[],
    lineage: PartitionLineage,
    signal: AbortSignal,
    startsAtMs: number | undefined,
  ) {
    this.listed = listed
    this.#byName = new Map(listed.map((partition) => [partition.partition, partition]))
    this.#lineage = lineage
    this.#signal = signal
    this.#startsAtMs = startsAtMs
  }

  static async read(lineage: PartitionLineage, signal: AbortSignal, startsAtMs?: number): Promise<StageStream> {
    return new StageStream(await lineage.list(signal), lineage, signal, startsAtMs)
  }

  get open(): readonly ListedPartition[] {
    return this.listed.filter(({ isClosed }) => !isClosed)
  }

  /** The partition as it was listed; undefined where the stream no longer knows it. */
  of(partition: string): ListedPartition | undefined {
    return this.#byName.get(partition)
  }

  parentsOf(partition: string): readonly string[] {
    return this.of(partition)?.parents ?? []
  }

  /** True where the stream does not know the partition now, whatever was listed. */
  async isGone(partition: string): Promise<boolean> {
    return (await this.#lineage.describe(partition, this.#signal)) === undefined
  }

  /** Closed and read to its end; one that never held anything is as over as those that it came from. */
  isOver(partition: string, completedOf: CompletedOf): Promise<boolean> {
    const known = this.#over.get(partition) ?? this.#findOver(partition, completedOf)
    this.#over.set(partition, known)
    return known
  }

  async #findOver(partition: string, completedOf: CompletedOf): Promise<boolean> {
    const listed = this.of(partition)
    // What the stream no longer knows is past its retention.
    if (listed === undefined) return true
    if (!listed.isClosed) return false
    const completed = completedOf(partition)
    if (!(await this.#lineage.isDrained(partition, completed, this.#signal, this.#startsAtMs))) return false
    return completed !== undefined || this.#areParentsOver(partition, completedOf)
  }

  async #areParentsOver(partition: string, completedOf: CompletedOf): Promise<boolean> {
    for (const parent of this.parentsOf(partition)) {
      if (!(await this.isOver(parent, completedOf))) return false
    }
    return true
  }

  /** True where the partition still takes records and holds none that is not done, nor does one that it came from. */
  async isCaughtUp(partition: string, completedOf: CompletedOf): Promise<boolean> {
    if (this.of(partition)?.isClosed !== false) return false
    const completed = completedOf(partition)
    if (completed === undefined && !(await this.#areParentsOver(partition, completedOf))) return false
    return this.#lineage.isCaughtUp(partition, completed, this.#signal, this.#startsAtMs)
  }
}
