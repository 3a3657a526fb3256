/**
 * Windows deployed as two stages: one reads trips and feeds, the keyed one keeps the windows. Frames go from one to the other
 * by hand, so that each can be measured alone, and the announcer is called by hand too.
 */
import { kinesisRecords } from '../../lib/aws/events/kinesis-records.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import {
  count,
  epochMs,
  type Format,
  hopping,
  hours,
  json,
  milliseconds,
  minutes,
  plan,
  session,
  sum,
  Topology,
  tumbling,
} from '../../lib/index.ts'
import { stageNamed } from '../../lib/plan/plan.ts'
import { type AnnouncerOptions, announce } from '../../lib/runtime/announcer/announcer.ts'
import type { PartitionBatch } from '../../lib/runtime/batch.ts'
import type { EncodedFrame } from '../../lib/runtime/frames/frame.ts'
import type { MetricName, Ports, RunnerClock } from '../../lib/runtime/ports.ts'
import type { PartitionLineage } from '../../lib/runtime/progress/lineage.ts'
import { createRunner, type Runner } from '../../lib/runtime/runner.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { kinesisEvent } from '../../lib/testing/index.ts'
import { sourceLineage, wholePartition } from '../../lib/testing/memory-streams.ts'

export interface Trip {
  readonly key: string
  readonly atMs: number
  readonly cents: number
}

export type WindowKind = 'hourly' | 'tumbling' | 'hopping' | 'session'

/** As the tables call them. */
export const windowLabels: Readonly<Record<WindowKind, string>> = {
  hourly: 'tumbling, 1 hour',
  tumbling: 'tumbling, 5 minutes',
  hopping: 'hopping, 1 hour by 1 minute',
  session: 'session, gap 5 minutes',
}

const windowsOf = {
  hourly: () => tumbling(hours(1), { grace: milliseconds(0) }),
  tumbling: () => tumbling(minutes(5), { grace: milliseconds(0) }),
  hopping: () => hopping(hours(1), { every: minutes(1), grace: milliseconds(0) }),
  session: () => session(minutes(5), { grace: milliseconds(0) }),
} as const

export const feedingStage = 'trips'
export const windowsStage = 'by-key'
/** Of the source and of the keyed stage: each has this one partition. */
export const partition = 'shardId-000000000000'

/** Counts trips and adds up what they cost, by key and window. */
function windowsApp(kind: WindowKind) {
  const app = new Topology('windows-app')
  const trips = app.source(feedingStage, json() as Format<Trip>, { eventTime: epochMs(({ atMs }: Trip) => atMs) })
  const { results, late } = trips
    .keyBy(windowsStage, ({ key }: Trip) => key)
    .window(windowsOf[kind]())
    .aggregate('windows', { count: count(), cents: sum(({ cents }: Trip) => cents) }, { emit: 'on-close' })
  results.to(app.sink('results'))
  late.to(app.sink('late'))
  return { planned: plan(app), trips }
}

export interface StagesOptions {
  readonly store: StateStore
  /** That of the stage which feeds. @default one in memory */
  readonly feedingStore?: StateStore
  /** @default the clock of the machine */
  readonly clock?: RunnerClock
  /** @default one that counts results and late trips, and keeps none */
  readonly sink?: (name: string) => Sink
}

const { signal } = new AbortController()

/** One stream and the state behind it, run by one execution environment after another. */
export class WindowStages {
  readonly ports: Ports
  readonly #app: ReturnType<typeof windowsApp>
  readonly #counts = new Map<MetricName, number>()
  readonly #outputs = new Map<string, number>()
  #feeding: Runner
  #windows: Runner
  #frames: EncodedFrame[] = []
  #trips = 0
  #framesSent = 0

  constructor(kind: WindowKind, { store, clock = systemClock, sink = this.#counting, ...given }: StagesOptions) {
    const { feedingStore = new MemoryStateStore({ stage: feedingStage, clock }) } = given
    this.#app = windowsApp(kind)
    const silent = () => undefined
    const lineage: PartitionLineage = {
      ...sourceLineage,
      list: async () => [{ ...wholePartition, partition, isClosed: false }],
      isCaughtUp: async () => true,
    }
    this.ports = {
      clock,
      logger: { info: silent, warn: silent, error: silent },
      metrics: { count: (name, value) => note(this.#counts, name, value), gauge: silent },
      sink,
      deadLetters: sink('dead letters') as Ports['deadLetters'],
      state: (stage) => (stage === windowsStage ? store : feedingStore),
      frames: () => ({ publish: async (frames) => void this.#frames.push(...frames) }),
      lineage: () => lineage,
    }
    ;[this.#feeding, this.#windows] = this.#environment()
  }

  readonly #counting = (name: string): Sink => ({
    prepare: ({ value }) => value,
    deliver: async (items) => {
      note(this.#outputs, name, items.length)
      return items.map(() => delivered)
    },
  })

  #environment(): [Runner, Runner] {
    const { planned } = this.#app
    const runnerOf = (stage: string) => createRunner(planned.topology, stageNamed(planned, stage), this.ports)
    return [runnerOf(feedingStage), runnerOf(windowsStage)]
  }

  /** From here on another execution environment runs the stages: it has no key in memory. */
  restart(): void {
    ;[this.#feeding, this.#windows] = this.#environment()
  }

  /** A batch of trips as the feeding stage is given it. */
  trips(trips: readonly Trip[]): PartitionBatch {
    const firstIndex = this.#trips
    this.#trips += trips.length
    const { trips: source } = this.#app
    const arrivalTimeMs = this.ports.clock.nowMs()
    return kinesisRecords(kinesisEvent(trips, { source, firstIndex, arrivalTimeMs }), source.name)
  }

  /** Runs the feeding stage on a batch; the answer is what the keyed stage is then given. */
  async feed(batch: PartitionBatch): Promise<PartitionBatch> {
    await this.#all(this.#feeding, batch)
    return this.takeFrames()
  }

  /** A round of the announcer; the answer is what the keyed stage is then given. */
  async announce(options: Pick<AnnouncerOptions, 'idleMs'> = {}): Promise<PartitionBatch> {
    await announce({ planned: this.#app.planned, ports: this.ports, signal, ...options })
    return this.takeFrames()
  }

  /** The frames that were published since the last call. */
  takeFrames(): PartitionBatch {
    const frames = this.#frames
    this.#frames = []
    if (frames.length === 0) return { partition, records: [] }
    const firstIndex = this.#framesSent
    this.#framesSent += frames.length
    const event = kinesisEvent(
      frames.map(({ bytes }) => bytes),
      { source: { name: windowsStage }, firstIndex, arrivalTimeMs: this.ports.clock.nowMs() },
    )
    return kinesisRecords(event, windowsStage)
  }

  /** Runs the keyed stage on frames until they are done. */
  async run(frames: PartitionBatch): Promise<void> {
    if (frames.records.length > 0) await this.#all(this.#windows, frames)
  }

  /** Invokes the keyed stage once; the answer is what comes again. */
  async invoke(frames: PartitionBatch, deadlineMs: number): Promise<PartitionBatch | undefined> {
    const { failures } = await this.#windows.run([frames], { deadlineMs })
    return failures[0] && { partition, records: [...failures[0].notDone] }
  }

  /** Sends trips through both stages. */
  async send(trips: readonly Trip[]): Promise<void> {
    await this.run(await this.feed(this.trips(trips)))
  }

  async #all(runner: Runner, batch: PartitionBatch): Promise<void> {
    const { failures } = await runner.run([batch], { deadlineMs: this.ports.clock.nowMs() + 600_000 })
    if (failures[0]) throw failures[0].error
  }

  /** The sum of everything counted under a name since the last call. */
  takeMetric(name: MetricName): number {
    return take(this.#counts, name)
  }

  /** Results, or late trips, that went out since the last call. */
  takeOutputs(name: 'results' | 'late'): number {
    return take(this.#outputs, name)
  }
}

function note<N>(counts: Map<N, number>, name: N, value: number): void {
  counts.set(name, (counts.get(name) ?? 0) + value)
}

function take<N>(counts: Map<N, number>, name: N): number {
  const value = counts.get(name) ?? 0
  counts.delete(name)
  return value
}
