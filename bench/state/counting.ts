/**
 * The running count, deployed as two stages: one reads clicks and feeds, the keyed one counts. Both keep their progress
 * in the table of the keyed stage. Frames go from one to the other by hand, so that each can be measured alone.
 */
import { kinesisRecords } from '../../lib/aws/events/kinesis-records.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { type Format, json, plan, Topology } from '../../lib/index.ts'
import { stageNamed } from '../../lib/plan/plan.ts'
import type { PartitionBatch } from '../../lib/runtime/batch.ts'
import type { EncodedFrame } from '../../lib/runtime/frames/frame.ts'
import type { MetricName, Ports } from '../../lib/runtime/ports.ts'
import { createRunner, type Runner } from '../../lib/runtime/runner.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { kinesisEvent } from '../../lib/testing/index.ts'
import { sourceLineage } from '../../lib/testing/memory-streams.ts'

export interface Click {
  readonly user: string
  readonly page: string
}

const app = new Topology('visits-app')
const clicks = app.source('clicks', json() as Format<Click>)
const visits = app.sink<number>('visits')
clicks
  .keyBy('by-user', ({ user }) => user)
  .aggregate(
    'count',
    { init: () => 0, add: (count, _: Click) => count + 1, result: (count) => count },
    { emit: 'per-batch' },
  )
  .to(visits)
const planned = plan(app)
const feeding = stageNamed(planned, 'clicks')
const counting = stageNamed(planned, 'by-user')

/** Where the keyed stage keeps its count of a user. */
export const countState = 'count'

export const clickOf = (user: string): Click => ({ user, page: '/offers/1' })

/** One stream and the state behind it, run by one execution environment after another. */
export class CountingStages {
  readonly #ports: Ports
  readonly #counts = new Map<MetricName, number>()
  #feeding: Runner
  #counting: Runner
  #frames: EncodedFrame[] = []
  #clicks = 0
  #framesSent = 0
  #outputs = 0

  constructor({ store, feedingStore }: { readonly store: StateStore; readonly feedingStore: StateStore }) {
    const silent = () => undefined
    const sink: Sink = {
      prepare: ({ value }) => value,
      deliver: async (items) => {
        this.#outputs += items.length
        return items.map(() => delivered)
      },
    }
    this.#ports = {
      clock: systemClock,
      logger: { info: silent, warn: silent, error: silent },
      metrics: {
        count: (name, value) => void this.#counts.set(name, (this.#counts.get(name) ?? 0) + value),
        gauge: silent,
      },
      sink: () => sink,
      deadLetters: sink as Ports['deadLetters'],
      state: (stage) => (stage === counting.name ? store : feedingStore),
      frames: () => ({ publish: async (frames) => void this.#frames.push(...frames) }),
      lineage: () => sourceLineage,
    }
    ;[this.#feeding, this.#counting] = this.#environment()
  }

  /** From here on another execution environment runs the stages: it has no key in memory. */
  restart(): void {
    ;[this.#feeding, this.#counting] = this.#environment()
  }

  #environment(): [Runner, Runner] {
    return [createRunner(app.name, feeding, this.#ports), createRunner(app.name, counting, this.#ports)]
  }

  /** A batch of clicks as the feeding stage is given it. */
  clicks(users: readonly string[]): PartitionBatch {
    const firstIndex = this.#clicks
    this.#clicks += users.length
    return kinesisRecords(kinesisEvent(users.map(clickOf), { source: clicks, firstIndex }), clicks.name)
  }

  /** Runs the feeding stage on a batch; the answer is what the keyed stage is then given. */
  async feed(batch: PartitionBatch): Promise<PartitionBatch> {
    await runAll(this.#feeding, batch)
    const frames = this.#frames
    this.#frames = []
    const firstIndex = this.#framesSent
    this.#framesSent += frames.length
    const event = kinesisEvent(
      frames.map(({ bytes }) => bytes),
      { source: { name: counting.name }, firstIndex },
    )
    return kinesisRecords(event, counting.name)
  }

  /** Runs the keyed stage on a batch of frames. */
  async count(frames: PartitionBatch): Promise<void> {
    await runAll(this.#counting, frames)
  }

  /** The sum of everything counted under a name since the last call. */
  takeMetric(name: MetricName): number {
    const value = this.#counts.get(name) ?? 0
    this.#counts.delete(name)
    return value
  }

  /** Results that went out since the last call. */
  takeOutputs(): number {
    const outputs = this.#outputs
    this.#outputs = 0
    return outputs
  }
}

async function runAll(runner: Runner, batch: PartitionBatch): Promise<void> {
  const { failures } = await runner.run([batch], { deadlineMs: systemClock.nowMs() + 600_000 })
  if (failures[0]) throw failures[0].error
}
