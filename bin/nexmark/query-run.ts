/**
 * Runs a query through the whole stack in memory: the production runner of every stage, several source partitions, the
 * streams between the stages with their frames, and a state store for every keyed stage.
 *
 * 1. Events are dealt out over the source partitions in turn, so each partition keeps the order in which they came.
 * 2. After each addition every stage runs until nothing moves any more.
 * 3. At the end of the input event time goes on without end in every partition, so every window closes.
 */
import type { Duration } from '../../lib/core/duration.ts'
import { milliseconds, seconds } from '../../lib/core/duration.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { type Plan, plan, type StagePlan } from '../../lib/plan/plan.ts'
import { announce } from '../../lib/runtime/announcer/announcer.ts'
import type { Logger, MetricName, Ports } from '../../lib/runtime/ports.ts'
import type { PartitionLineage } from '../../lib/runtime/progress/lineage.ts'
import { createRunner, type Runner } from '../../lib/runtime/runner.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import { sequenceNumber } from '../../lib/testing/events.ts'
import { MemoryStages } from '../../lib/testing/memory-stages.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import type { Topology } from '../../lib/topology/topology.ts'

export interface QueryRunOptions {
  readonly app: Topology
  /** Takes each line that the query writes to a sink. */
  readonly take: (sink: string, line: string) => void
  /** Is told why a record became a dead letter. */
  readonly refuse: (reason: string) => void
  /** Partitions of the source. @default 4 */
  readonly partitions?: number
  /** The most records of a partition that one invocation is given. @default 1000 */
  readonly batchSize?: number
}

/**
 * How long event time goes on behind the last event of each partition: further than any window reaches, though the mark of a
 * partition may trail the newest event of another one by all the time that there is, which is 10,000 years, and by its allowance again.
 */
const beyondTheEnd: Duration = milliseconds(2 ** 50)
/** What passes on the clock between two additions, so that marks are told, which happens once a second. */
const tick = seconds(1)
const invocationMs = 60_000
/** Attempts at one batch, well above what makes a record a dead letter. */
const mostAttempts = 20

/** Whatever is read by an invocation: a partition of the source or of the stream of a keyed stage. */
interface Log {
  readonly partition: string
  records: SourceRecord[]
  appended: number
}

export class QueryRun {
  readonly #plan: Plan
  readonly #clock = new VirtualClock()
  readonly #stages: MemoryStages
  readonly #ports: Ports
  readonly #runners: ReadonlyMap<string, Runner>
  readonly #logs = new Map<string, Map<string, Log>>()
  readonly #sources: readonly Log[]
  readonly #batchSize: number
  readonly #counts = new Map<MetricName, number>()
  #dealt = 0

  constructor({ app, take, refuse, partitions = 4, batchSize = 1_000 }: QueryRunOptions) {
    this.#plan = plan(app)
    this.#batchSize = batchSize
    this.#stages = new MemoryStages(this.#clock, quiet)
    this.#stages.serve(this.#plan)
    this.#ports = this.#portsWith(take, refuse)
    this.#runners = new Map(this.#plan.stages.map((stage) => [stage.name, createRunner(app.name, stage, this.#ports)]))
    const source = this.#plan.graph.sources[0]?.name as string
    this.#sources = Array.from({ length: partitions }, (_, i) => this.#log(source, `shard-${i}`))
  }

  /** Adds events, as the bytes of their lines, and runs all that follows from them. */
  async add(payloads: readonly Uint8Array[]): Promise<void> {
    const source = this.#plan.graph.sources[0]?.name as string
    const arrivalTimeMs = this.#clock.nowMs()
    for (const payload of payloads) {
      const log = this.#sources[this.#dealt++ % this.#sources.length] as Log
      const position = String(log.appended++)
      log.records.push(
        new SourceRecord({ source, partition: log.partition, position, arrivalTimeMs, key: position, payload }),
      )
    }
    await this.#runAll()
    // Partitions that are new to a stage are announced to it.
    await this.#announce(undefined)
    this.#clock.advance(tick.ms)
  }

  /** Ends the input: every window closes. */
  async end(): Promise<void> {
    while ((await this.#announce(() => beyondTheEnd.ms)) > 0) this.#clock.advance(tick.ms)
  }

  /** The sum of what was counted under a name, over all stages. */
  counted(name: MetricName): number {
    return this.#counts.get(name) ?? 0
  }

  /** One round of the announcer, and all that follows from it. Answers how much it had to say. */
  async #announce(idleMs: (() => number) | undefined): Promise<number> {
    const { signal } = new AbortController()
    const said = await announce({ planned: this.#plan, ports: this.#ports, signal, idleMs })
    await this.#runAll()
    return said.length
  }

  async #runAll(): Promise<void> {
    for (const stage of this.#plan.stages) {
      this.#takeFrames(stage)
      for (const log of this.#logsOf(stage.name).values()) await this.#drain(stage, log)
    }
  }

  async #drain(stage: StagePlan, log: Log): Promise<void> {
    const runner = this.#runners.get(stage.name) as Runner
    let attempts = 0
    while (log.records.length > 0) {
      const records = log.records.splice(0, this.#batchSize)
      const deadlineMs = this.#clock.nowMs() + invocationMs
      const { failures } = await runner.run([{ partition: log.partition, records }], { deadlineMs })
      const notDone = failures[0]?.notDone ?? []
      attempts = notDone.length < records.length ? 0 : attempts + 1
      if (attempts === mostAttempts) throw failures[0]?.error
      if (notDone.length > 0) log.records.unshift(...notDone)
    }
  }

  /** Reads the stream of a keyed stage. */
  #takeFrames({ name }: StagePlan): void {
    for (const { shardId, frames } of this.#stages.stream(name)?.take() ?? []) {
      const log = this.#log(name, shardId)
      for (const { index, slot, bytes, arrivalTimeMs } of frames) {
        const position = sequenceNumber(index)
        const fields = { source: name, partition: shardId, position, arrivalTimeMs, key: String(slot), payload: bytes }
        log.records.push(new SourceRecord(fields))
      }
    }
  }

  #logsOf(stage: string): Map<string, Log> {
    const logs = this.#logs.get(stage) ?? new Map<string, Log>()
    this.#logs.set(stage, logs)
    return logs
  }

  #log(stage: string, partition: string): Log {
    const logs = this.#logsOf(stage)
    const log = logs.get(partition) ?? { partition, records: [], appended: 0 }
    logs.set(partition, log)
    return log
  }

  #portsWith(take: QueryRunOptions['take'], refuse: QueryRunOptions['refuse']): Ports {
    const stages = this.#stages
    return {
      clock: this.#clock,
      logger: quiet,
      metrics: {
        count: (name, value) => void this.#counts.set(name, this.counted(name) + value),
        gauge: () => undefined,
      },
      sink: (name) => lineSink((line) => take(name, line)) as Sink,
      deadLetters: {
        prepare: ({ value: { reason, payload } }) => `${reason.message} (${payload?.length ?? 0} bytes)`,
        deliver: async (texts) => {
          for (const text of texts as readonly string[]) refuse(text)
          return texts.map(() => delivered)
        },
      },
      state: (stage) => stages.state(stage),
      frames: (stage) => stages.stream(stage)?.publisher,
      lineage: (stage) => stages.stream(stage)?.lineage ?? this.#sourceLineage,
    }
  }

  /** The source's partitions: one may still be written to, so none is closed. */
  readonly #sourceLineage: PartitionLineage = {
    list: async () => this.#sources.map(({ partition }) => ({ partition, isClosed: false, ...whole })),
    describe: async () => whole,
    isCaughtUp: async (partition, after) => {
      const { appended } = this.#sources.find((source) => source.partition === partition) as Log
      return appended === 0 || after === String(appended - 1)
    },
    isDrained: async () => false,
  }
}

const whole = { parents: [], startHash: '0', endHash: String(2n ** 128n - 1n) }

/** Nothing is refused here, so the runners have nothing to tell; what becomes a dead letter is told as one. */
const quiet: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Nothing is ever delivered twice here, as nothing of it fails. */
function lineSink(take: (line: string) => void): Sink<unknown, string> {
  return {
    prepare: ({ value }) => JSON.stringify(value),
    deliver: async (lines) => {
      for (const line of lines) take(line)
      return lines.map(() => delivered)
    },
  }
}
