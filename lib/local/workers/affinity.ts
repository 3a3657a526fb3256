/**
 * Which worker holds which unit (a shard, or a lane of one).
 *
 * Invariants:
 * 1. A unit has at most one holder and keeps it until the holder leaves or a worker joins.
 * 2. When a worker joins, only as many units move as it takes to even out, all of them to it.
 */
export class Affinity {
  readonly #units = new Map<string, Set<string>>()
  readonly #holders = new Map<string, string>()

  /** The worker that holds a unit; a new unit goes to the worker with the fewest. `undefined` while there is no worker. */
  holderOf(unit: string): string | undefined {
    const holder = this.#holders.get(unit)
    if (holder !== undefined) return holder
    const worker = this.#byLoad().at(0)
    if (worker !== undefined) this.#give(unit, worker)
    return worker
  }

  unitsOf(worker: string): readonly string[] {
    return [...(this.#units.get(worker) ?? [])]
  }

  /** Takes a worker in and returns the units that moved to it. */
  join(worker: string): readonly string[] {
    this.#units.set(worker, new Set())
    const moved: string[] = []
    for (;;) {
      const fullest = this.#byLoad().at(-1)
      const unit = fullest === undefined ? undefined : this.unitsOf(fullest).at(-1)
      if (fullest === undefined || unit === undefined || this.#load(fullest) - this.#load(worker) < 2) return moved
      this.#units.get(fullest)?.delete(unit)
      this.#give(unit, worker)
      moved.push(unit)
    }
  }

  /** Lets a worker go and returns its orphans with their new holders; they have none while no worker is left. */
  leave(worker: string): ReadonlyMap<string, string | undefined> {
    const orphans = this.unitsOf(worker)
    this.#units.delete(worker)
    for (const unit of orphans) this.#holders.delete(unit)
    return new Map(orphans.map((unit) => [unit, this.holderOf(unit)]))
  }

  #give(unit: string, worker: string): void {
    this.#holders.set(unit, worker)
    this.#units.get(worker)?.add(unit)
  }

  #load(worker: string): number {
    return this.#units.get(worker)?.size ?? 0
  }

  /** Workers, the emptiest first; of equals the one that joined first. */
  #byLoad(): readonly string[] {
    return [...this.#units.keys()].sort((one, other) => this.#load(one) - this.#load(other))
  }
}
