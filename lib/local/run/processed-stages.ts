/**
 * Tells when everything that was in the sources is processed, by the stages behind them too.
 *
 * A stage feeds its keyed stages as long as it is not done itself, so a keyed stage is asked about the moment at which each
 * of those that feed it was first seen to be done.
 */
import type { StagePlan } from '../../plan/plan.ts'

/** True once all that was in the stage's stream at `sinceMs` is processed and saved. */
export type HasProcessed = (sinceMs: number) => boolean

/** A caller asks about one moment again and again, and about few moments at a time. */
const momentsRemembered = 16

/**
 * @example
 * const processed = new ProcessedStages(planned.stages, (stage) => running(stage).hasProcessed, systemClock)
 * while (!processed.since(sentAtMs)) await pause()
 */
export class ProcessedStages {
  readonly #stages: readonly StagePlan[]
  readonly #hasProcessed: (stage: string) => HasProcessed
  readonly #nowMs: () => number
  /** By the moment asked about: the stages that are done with it, and when that was first seen. */
  readonly #doneAtMs = new Map<number, Map<string, number>>()

  /** @param stages each after those that feed it. */
  constructor(stages: readonly StagePlan[], hasProcessed: (stage: string) => HasProcessed, clock: { nowMs(): number }) {
    this.#stages = stages
    this.#hasProcessed = hasProcessed
    this.#nowMs = () => clock.nowMs()
  }

  /** True once all that was in the sources' streams at that moment is processed and saved, and so is all that came of it. */
  since(sinceMs: number): boolean {
    const doneAtMs = this.#remembered(sinceMs)
    for (const stage of this.#stages) {
      if (doneAtMs.has(stage.name)) continue
      const feeders = stage.kind === 'keyed' ? stage.fedBy : []
      const startedAtMs = feeders.map((feeder) => doneAtMs.get(feeder))
      if (startedAtMs.includes(undefined)) continue
      const askedAtMs = Math.max(sinceMs, ...(startedAtMs as number[]))
      if (this.#hasProcessed(stage.name)(askedAtMs)) doneAtMs.set(stage.name, this.#nowMs())
    }
    return doneAtMs.size === this.#stages.length
  }

  #remembered(sinceMs: number): Map<string, number> {
    const known = this.#doneAtMs.get(sinceMs) ?? new Map<string, number>()
    this.#doneAtMs.delete(sinceMs)
    this.#doneAtMs.set(sinceMs, known)
    const [oldest] = this.#doneAtMs.keys()
    if (this.#doneAtMs.size > momentsRemembered && oldest !== undefined) this.#doneAtMs.delete(oldest)
    return known
  }
}
