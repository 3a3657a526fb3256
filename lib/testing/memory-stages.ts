/** What the stages of a topology keep and feed, in memory: a state store and a stream for each keyed stage. */
import { type Plan, stateOf } from '../plan/plan.ts'
import type { Logger, RunnerClock } from '../runtime/ports.ts'
import type { PartitionLineage } from '../runtime/progress/lineage.ts'
import { MemoryStateStore } from '../state/memory-store.ts'
import type { StateStore } from '../state/state-store.ts'
import { MemoryStream, SeenPartitions } from './memory-streams.ts'

export class MemoryStages {
  readonly #clock: RunnerClock
  readonly #logger: Logger
  readonly #streams = new Map<string, MemoryStream>()
  readonly #sources = new Map<string, SeenPartitions>()
  readonly #stores = new Map<string, StateStore>()
  /** By stage, the keyed stage whose table it uses. */
  readonly #tables = new Map<string, string>()

  constructor(clock: RunnerClock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Makes what the topology lacks here. A second handler of the topology finds the streams and states of the first. */
  serve(planned: Plan): void {
    for (const stage of planned.stages) {
      const table = stateOf(planned, stage.name)
      if (table !== undefined) this.#tables.set(stage.name, table)
      if (stage.kind === 'feeding' && !this.#sources.has(stage.name))
        this.#sources.set(stage.name, new SeenPartitions())
      if (stage.kind !== 'keyed' || this.isKeyed(stage.name)) continue
      const ports = { clock: this.#clock, logger: this.#logger }
      this.#streams.set(stage.name, new MemoryStream({ stage: stage.name, slots: stage.slots, ...ports }))
      this.#stores.set(stage.name, new MemoryStateStore({ stage: stage.name, clock: this.#clock }))
    }
  }

  /** The names of the keyed stages. */
  get keyed(): readonly string[] {
    return [...this.#streams.keys()]
  }

  isKeyed(stage: string): boolean {
    return this.#streams.has(stage)
  }

  stream(stage: string): MemoryStream | undefined {
    return this.#streams.get(stage)
  }

  state(stage: string): StateStore | undefined {
    return this.#stores.get(this.#tables.get(stage) ?? '')
  }

  lineage(stage: string): PartitionLineage | undefined {
    return this.#streams.get(stage)?.lineage ?? this.#sources.get(stage)
  }
}
