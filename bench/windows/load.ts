/**
 * The trips of the measurements: batches of Zipf keys, at event times that are chosen so that it is known when a window ends.
 *
 *     tumbling, session   |base ........ 3 min|T0 ... 50 s|           the first end is 5 min after base
 *     hopping             |base ......... 1 h |T0 ... 50 s| 1 min     a window ends with every minute
 *                          warm-up             nothing is due  all that waits is closed
 */
import { batchOf, seeded, zipf } from '../state/zipf.ts'
import type { Trip, WindowKind, WindowStages } from './stages.ts'

export type MeasuredKind = Exclude<WindowKind, 'hourly'>

const minuteMs = 60_000
const baseMs = Date.UTC(2026, 0, 1, 10)
const warmUpBatches = 20

interface Times {
  readonly warmUpMs: number
  /** How much longer than the newest trip event time goes on for windows to end. */
  readonly closingMs: number
}

const timesOf: Readonly<Record<MeasuredKind, Times>> = {
  tumbling: { warmUpMs: 3 * minuteMs, closingMs: 5 * minuteMs },
  hopping: { warmUpMs: 60 * minuteMs, closingMs: minuteMs },
  session: { warmUpMs: 3 * minuteMs, closingMs: 5 * minuteMs },
}

export class Load {
  readonly #stages: WindowStages
  readonly #times: Times
  readonly #draw: () => number
  #atMs: number

  private constructor(kind: MeasuredKind, stages: WindowStages, keys: number) {
    this.#stages = stages
    this.#times = timesOf[kind]
    this.#draw = zipf(keys, seeded(keys))
    this.#atMs = baseMs
  }

  /** Ready to measure: windows of every kind are open, and what was due is closed. */
  static async open(
    kind: MeasuredKind,
    stages: WindowStages,
    keys: number,
    extra: readonly string[] = [],
  ): Promise<Load> {
    const load = new Load(kind, stages, keys)
    const records = Math.min(1_000, keys * 4)
    await stages.run(await stages.announce())
    for (let i = 0; i < warmUpBatches; i++) {
      load.#atMs = baseMs + (i * load.#times.warmUpMs) / warmUpBatches
      await stages.send(load.trips(load.keys(records)))
    }
    load.#atMs = baseMs + load.#times.warmUpMs
    for (let from = 0; from < Math.max(1, extra.length); from += 1_000) {
      await stages.send(load.trips(extra.length === 0 ? load.keys(records) : extra.slice(from, from + 1_000)))
    }
    await stages.run(await stages.announce({ idleMs: undefined }))
    stages.takeOutputs('results')
    stages.takeMetric('keys-written')
    return load
  }

  /** The keys of a batch. */
  keys(records: number): readonly string[] {
    return batchOf(this.#draw, records)
  }

  /** Trips of those keys, a tenth of a second after the ones before: no window ends with them. */
  trips(keys: readonly string[]): readonly Trip[] {
    this.#atMs += 100
    return keys.map((key, i) => ({ key, atMs: this.#atMs, cents: 1 + (i % 5_000) }))
  }

  /** Lets the windows end that wait: all that are open or, of hopping ones, those of the minute. */
  async close(): Promise<void> {
    const { closingMs } = this.#times
    await this.#stages.run(await this.#stages.announce({ idleMs: () => closingMs }))
  }
}
