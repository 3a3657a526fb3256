/** In memory: the streams of a topology's keyed stages, and a state store for each stage that keeps anything. */
import type { Plan } from '../plan/plan.ts'
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

  constructor(clock: RunnerClock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Makes what the topology lacks here. A second handler of the topology finds the streams and states of the first. */
  serve(planned: Plan): void {
    for (const stage of planned.stages) {
      const { kind, name } = stage
      if (kind === 'stateless' || this.#stores.has(name)) continue
      const ports = { clock: this.#clock, logger: this.#logger }
      if (kind === 'feeding') this.#sources.set(name, new SeenPartitions())
      else this.#streams.set(name, new MemoryStream({ stage: name, slots: stage.slots, ...ports }))
      this.#stores.set(name, new MemoryStateStore({ stage: name, clock: this.#clock }))
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
    return this.#stores.get(stage)
  }

  lineage(stage: string): PartitionLineage | undefined {
    return this.#streams.get(stage)?.lineage ?? this.#sources.get(stage)
  }
}
