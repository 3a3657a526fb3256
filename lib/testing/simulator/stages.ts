/**
 * What the stages of a run are made of: plans, tables, and the runners with the ports of one environment each.
 *
 * Tables are in memory in most runs; in the others they are the production store over the model of DynamoDB, which the
 * caller hands in, as nothing here may know the SDK.
 */
import { days } from '../../core/duration.ts'
import { createDynamoModel, type DynamoModel } from '../../emulator/dynamodb/index.ts'
import type { SourceRecord as MappedRecord } from '../../emulator/event-source-mapping/index.ts'
import { tableNameOf } from '../../plan/plan.ts'
import type { AnnouncerPorts } from '../../runtime/announcer/knowledge.ts'
import { type FramePublisher, framePublisher } from '../../runtime/frames/publisher.ts'
import type { Logger, MetricName, Ports, RunnerClock } from '../../runtime/ports.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Runner, RunnerOptions } from '../../runtime/runner.ts'
import type { Sink } from '../../runtime/sink.ts'
import { type ExpiredItem, MemoryStateStore } from '../../state/memory-store.ts'
import type { StateStore } from '../../state/state-store.ts'
import { stateTable } from '../state-table.ts'
import type { Application, Touched } from './application.ts'
import { CacheWatch } from './cache-watch.ts'
import { type Canary, storeWith } from './canary.ts'
import { DueWatch } from './due-watch.ts'
import { byPartition } from './environments.ts'
import type { Faults } from './faults.ts'
import { type ModelSend, modelSend } from './model-port.ts'
import type { Random } from './random.ts'
import { type Opened, open, type Release } from './release.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import { type Arrival, recordingSink } from './sinks.ts'
import { ScheduledStore } from './state-port.ts'
import { passesByItself, type Streams } from './streams.ts'
import { type Largest, type Usage, WatchedStore } from './watched-store.ts'

/** What the production store is made of. */
export interface DynamoParts {
  readonly model: DynamoModel
  readonly tableName: string
  readonly stage: string
  readonly clock: RunnerClock
  readonly random: () => number
  /** Every call of the client goes through here: it waits for its turn, and may fail before or after its effect. */
  readonly send: ModelSend
}

export type StoreFactory = (parts: DynamoParts) => StateStore

/** A commit that took place. */
export interface CommitNote {
  readonly stage: string
  readonly key: string
  readonly readPosition: number
  readonly position: number
  readonly version: number
}

export interface StagesOptions {
  readonly scheduler: Scheduler
  readonly streams: Streams
  readonly random: Random
  readonly faults: () => Faults
  readonly deliveries: Arrival[]
  readonly application: Application<never>
  readonly canary: Canary | undefined
  readonly dynamoStore: StoreFactory | undefined
  /** Runs the first version of the topology, where there is one. */
  readonly formerRelease: Release | undefined
  readonly onMetric: (name: MetricName, value: number) => void
  readonly count: (name: string) => void
  /** Whether TTL takes an item that has expired now. */
  readonly ttlTakes: (item: ExpiredItem) => boolean
  /** Whether the mappings read which records are not done. */
  readonly readsAnswers: boolean
}

/** How long after its last write TTL may take what is empty. */
export const ttlAfterMs = 30 * 60_000

const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

export class Stages {
  readonly canary: Canary | undefined
  /** Until then the tables refuse everything. */
  refusesUntilMs = 0
  /** All invocations, with what they asked of their tables. */
  readonly usages: Usage[] = []
  readonly largest: Largest = { progressBytes: 0, keyItemBytes: 0, entryBytes: 0, keyItem: '' }
  /** What the run has cost, once it is over. */
  units = { read: 0, write: 0 }
  /** Undefined where tables are in memory. */
  readonly dynamo: DynamoModel | undefined
  readonly runnerOptions: RunnerOptions
  readonly #options: StagesOptions
  /** Who committed which records of a key: `readPosition` to `position` is what the commit applied. Tables in memory only. */
  readonly commits: CommitNote[] = []
  readonly #opened: readonly [Opened, Opened]
  /** The tables themselves, which no fault stands before: for the referees. */
  readonly #tables = new Map<string, StateStore>()
  readonly #caches: CacheWatch
  readonly #usageOf = new Map<Owner, Usage>()
  readonly #touched = new Map<string, Touched>()
  /** What a canary remembers of the announcer. */
  readonly #said = new Set<string>()

  constructor(options: StagesOptions) {
    this.#options = options
    this.canary = options.canary
    const { application, random, faults, formerRelease } = options
    const { built } = application
    this.#opened = [
      formerRelease ? formerRelease.open(built, 0) : open(built, 0, options.canary?.operator),
      open(built, 1, options.canary?.operator),
    ]
    const isPlain = !faults().any
    // A draw that decides nothing any more: without it each seed would be another run.
    random.next()
    this.runnerOptions = {
      attempts: 3,
      retention: days(7),
      mostKeysPerCommit: isPlain ? 1_000 : random.pick([1, 2, 5, 1_000]),
      warmKeys: isPlain ? 20_000 : random.pick([0, 4, 20_000, 20_000]),
      ...options.canary?.runnerOptions,
    }
    this.dynamo = options.dynamoStore && createDynamoModel({ clock: { nowMs: () => options.scheduler.nowMs() } })
    this.#caches = new CacheWatch(options.count)
    for (const { kind, name } of this.#opened[1].stages)
      if (kind !== 'stateless') this.#tables.set(name, this.#table(name))
  }

  /** What a version runs. */
  opened(version: number): Opened {
    return this.#opened[version % 2] as Opened
  }

  /** What was found wrong with due entries while the run went on. */
  get dueFindings(): readonly string[] {
    return [...this.#tables.values()].flatMap((table) => (table instanceof DueWatch ? table.findings : []))
  }

  #table(stage: string): StateStore {
    const { scheduler, dynamoStore, application, ttlTakes, faults } = this.#options
    const clock = { nowMs: () => scheduler.nowMs() }
    if (this.dynamo === undefined || dynamoStore === undefined) {
      if (!application.hasTime && faults().ttl === 0) return new MemoryStateStore({ stage, clock })
      // What is empty may be gone half an hour after its last write, not after days: longer than any attempt lives here.
      const ahead = { nowMs: () => scheduler.nowMs() + days(8).ms - ttlAfterMs }
      const store = new MemoryStateStore({ stage, clock: ahead, ttlTakes })
      return application.hasTime ? new DueWatch(store) : store
    }
    this.dynamo.call('CreateTable', {
      TableName: tableNameOf(this.#options.application.topology, stage),
      ...stateTable,
    })
    return dynamoStore({
      ...this.#dynamoParts(stage, this.dynamo),
      clock: { ...clock, timer: () => () => undefined, sleep: async () => undefined },
      send: async (_operation, input, effect) => effect(input),
    })
  }

  #dynamoParts(stage: string, model: DynamoModel) {
    const { random } = this.#options
    return {
      model,
      tableName: tableNameOf(this.#options.application.topology, stage),
      stage,
      random: () => random.next(),
    }
  }

  /** Notes what the tables have cost: before the referees, who read them too. */
  countUnits(): void {
    for (const stage of this.#tables.keys()) {
      const used = this.dynamo?.consumedUnits(tableNameOf(this.#options.application.topology, stage)) ?? {
        read: 0,
        write: 0,
      }
      this.units = { read: this.units.read + used.read, write: this.units.write + used.write }
    }
  }

  /** The table of a keyed or feeding stage, for the referees. */
  table(stage: string): StateStore {
    return this.#tables.get(stage) as StateStore
  }

  /** Notes what an invocation is about to do. */
  begin(owner: Owner, stage: string, shardId: string, records: readonly MappedRecord[]): void {
    const touched = new Set<string>()
    const touchedEntries = new Set<string>()
    let audits = 0
    const isKeyed = this.#options.application.keyedStages.some(({ name }) => name === stage)
    for (const record of isKeyed ? records : []) {
      const known = this.#touchedBy(stage, record)
      for (const key of known.keys) touched.add(key)
      for (const entry of known.entries) touchedEntries.add(entry)
      audits += known.audits
    }
    const usage: Usage = {
      stage,
      shardId,
      partitions: byPartition({ shardId, records }).size,
      touched,
      touchedEntries,
      audits,
      keysRead: 0,
      keysReadByName: new Map(),
      entriesRead: 0,
      listings: 0,
      progressReads: 0,
      progressWrites: 0,
      conflicts: 0,
      foreignKeys: new Set(),
    }
    this.#usageOf.set(owner, usage)
    for (const partition of byPartition({ shardId, records }).keys()) this.#caches.begin(owner, `${stage}/${partition}`)
    this.usages.push(usage)
  }

  /** When the oldest record in an entry of a stage's log came to the source. */
  oldestIn(stage: string, record: MappedRecord): number {
    const isKeyed = this.#options.application.keyedStages.some(({ name }) => name === stage)
    return isKeyed ? Math.min(record.arrivalMs, this.#touchedBy(stage, record).oldestMs) : record.arrivalMs
  }

  /** What a frame touches. The same frame comes in many batches. */
  #touchedBy(
    stage: string,
    { sequenceNumber, data, partition }: MappedRecord & { readonly partition?: number },
  ): Touched {
    const name = `${stage}/${partition ?? ''}/${sequenceNumber}`
    const known = this.#touched.get(name)
    if (known) return known
    const touched = this.#options.application.touchedBy(stage, data)
    this.#touched.set(name, touched)
    return touched
  }

  /** The runner of a stage in one environment, with the ports of that environment alone. */
  makeRunner(stage: string, owner: Owner, version: number): Runner {
    const opened = this.opened(version)
    // The function of a stage that is not there any more goes on as it was until its stream is drained.
    const runs = opened.stages.some(({ name }) => name === stage) ? opened : this.#opened[1]
    const ports = this.#ports(owner, version)
    const runner = runs.runner(stage, ports, this.runnerOptions)
    return this.canary?.runner?.(runner, this.#said) ?? runner
  }

  #ports(owner: Owner, version: number): Ports {
    const { scheduler, streams, random, faults, deliveries, onMetric, application, count } = this.#options
    const { canary } = this
    const clock = scheduler.clockOf(owner)
    const place = { owner, clock, version, said: this.#said }
    const sinkOf = (name: string): Sink => {
      const rejects = (cents: number) => application.rejects(name, cents)
      const sink = recordingSink(name, { owner, scheduler, random, faults, deliveries, rejects, count }) as Sink
      return canary?.sink?.(sink, { ...place, sink: name }) ?? sink
    }
    const sinks = new Map<string, Sink>()
    const sink = (name: string): Sink => {
      const known = sinks.get(name) ?? sinkOf(name)
      sinks.set(name, known)
      return known
    }
    const deliveryPorts = { clock, logger: silent, random: () => random.next(), passesByItself }
    const frames = (stage: string): FramePublisher => {
      const stream = streams.frames(owner, stage)
      const publisher = framePublisher(canary?.frames?.(stream) ?? stream, deliveryPorts)
      return canary?.publisher?.(publisher, place) ?? publisher
    }
    return {
      clock,
      logger: silent,
      metrics: { count: onMetric, gauge: () => undefined },
      sink,
      deadLetters: sink('dead-letters') as Ports['deadLetters'],
      freezesValues: true,
      readsAnswers: () => this.#options.readsAnswers,
      checksPurity: true,
      // What is empty then stays for eight days, in this release and in the one before: see #table.
      upstreamRetentionMs: () => 0,
      state: (stage) => this.#store(stage, owner, version),
      frames,
      lineage: (stage) => {
        const lineage = streams.lineage(owner, stage)
        return canary?.lineage?.(lineage) ?? lineage
      },
    }
  }

  /** What a round of the announcer runs on. */
  announcerPorts(owner: Owner, heedSilence: (lineage: PartitionLineage) => PartitionLineage): AnnouncerPorts {
    const { application, streams } = this.#options
    const ports = this.#ports(owner, 0)
    const { canary } = this
    return {
      ...ports,
      lineage: (stage) => {
        const lineage = streams.lineage(owner, stage)
        // What a canary says of silence is not what is heeded.
        const heeding = application.keyedStages.some(({ name }) => name === stage) ? lineage : heedSilence(lineage)
        return canary?.announcerLineage?.(heeding, stage) ?? heeding
      },
      ...(canary?.announcerFrames && {
        frames: (stage: string) => canary.announcerFrames?.(ports.frames?.(stage) as FramePublisher, stage, this.#said),
      }),
    }
  }

  #store(stage: string, owner: Owner, version: number): StateStore | undefined {
    const inner = this.#tables.get(stage)
    if (inner === undefined) return undefined
    const { scheduler, random, faults, dynamoStore, count } = this.#options
    const clock = scheduler.clockOf(owner)
    const refusesUntilMs = () => this.refusesUntilMs
    const store =
      this.dynamo === undefined || dynamoStore === undefined
        ? new ScheduledStore(this.#noting(inner, stage, version), {
            owner,
            scheduler,
            clock,
            random,
            faults,
            refusesUntilMs,
            writes: () => this.commits.length,
            count,
          })
        : dynamoStore({
            ...this.#dynamoParts(stage, this.dynamo),
            clock,
            send: modelSend({ owner, scheduler, random, faults, refusesUntilMs, count }),
          })
    // The canary stands before the watch, so that what it does is seen.
    const watched = new WatchedStore(store, () => this.#usageOf.get(owner), this.largest)
    const isKeyed = this.#options.application.keyedStages.some(({ name }) => name === stage)
    const noted = this.#caches.watch(isKeyed ? watched : manifestAtOnce(watched, inner), owner)
    return this.canary?.store?.(noted, { owner, clock, version, said: this.#said }) ?? noted
  }

  /** The table, with a note of who commits what. */
  #noting(table: StateStore, stage: string, version: number): StateStore {
    return storeWith(table, {
      commit: async (write, signal) => {
        const outcome = await table.commit(write, signal)
        const { key, readPosition = 0, item } = write
        if (outcome.status === 'committed')
          this.commits.push({ stage, key, readPosition, position: item.position, version })
        return outcome
      },
    })
  }
}

/**
 * A stage without keys asks for its manifest past all faults, which the manifests of the others meet: so kept seeds of before it had
 * one are the runs that they were.
 */
const manifestAtOnce = (store: StateStore, table: StateStore): StateStore =>
  storeWith(store, {
    readManifest: (...args) => table.readManifest(...args),
    writeManifest: (...args) => table.writeManifest(...args),
    replaceManifest: (...args) => table.replaceManifest(...args),
  })
