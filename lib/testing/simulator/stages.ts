/**
 * What the stages of a run are made of: plans, tables, and the runners with the ports of one environment each.
 *
 * Tables are in memory in most runs; in the others they are the production store over the model of DynamoDB, which the
 * caller hands in, as nothing here may know the SDK.
 */
import { days } from '../../core/duration.ts'
import { createDynamoModel, type DynamoModel } from '../../emulator/dynamodb/index.ts'
import type { SourceRecord as MappedRecord } from '../../emulator/event-source-mapping/index.ts'
import { type Plan, plan, stageNamed, stateOf, tableNameOf } from '../../plan/plan.ts'
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import { type FramePublisher, framePublisher } from '../../runtime/frames/publisher.ts'
import type { Logger, MetricName, Ports, RunnerClock } from '../../runtime/ports.ts'
import { createRunner, type Runner, type RunnerOptions } from '../../runtime/runner.ts'
import type { Sink } from '../../runtime/sink.ts'
import { MemoryStateStore } from '../../state/memory-store.ts'
import type { StateStore } from '../../state/state-store.ts'
import type { Canary } from './canaries.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import { type Delivery, recordingSink } from './sinks.ts'
import { ScheduledStore } from './state-port.ts'
import { passesByItself, type Streams } from './streams.ts'
import { type Largest, type Usage, WatchedStore } from './watched-store.ts'
import { isRejected, type Line, names, simulatedTopology } from './workload.ts'

/** What the production store is made of. */
export interface DynamoParts {
  readonly model: DynamoModel
  readonly tableName: string
  readonly stage: string
  readonly clock: RunnerClock
  readonly random: () => number
  /** Every call of the client goes through here: it waits for its turn, and may fail before or after its effect. */
  readonly send: <T>(operation: string, input: object, effect: () => T) => Promise<T>
}

export type StoreFactory = (parts: DynamoParts) => StateStore

export interface StagesOptions {
  readonly scheduler: Scheduler
  readonly streams: Streams
  readonly random: Random
  readonly faults: () => Faults
  readonly deliveries: Delivery[]
  readonly hasThirdStage: boolean
  readonly canary: Canary | undefined
  readonly dynamoStore: StoreFactory | undefined
  /** Ends the environment whose step is running. */
  readonly kill: () => void
  readonly onMetric: (name: MetricName, value: number) => void
}

/** The keys and entries that the records of a frame read and write. */
interface Touched {
  readonly keys: readonly string[]
  readonly entries: readonly string[]
  readonly audits: number
}

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
  /** In production steps run once, so that is what most runs do. */
  readonly #checksPurity: boolean
  readonly #plans: readonly [Plan, Plan]
  /** The tables themselves, which no fault stands before: for the referees. */
  readonly #tables = new Map<string, StateStore>()
  readonly #usageOf = new WeakMap<Owner, Usage>()
  readonly #touched = new Map<string, Touched>()

  constructor(options: StagesOptions) {
    this.#options = options
    this.canary = options.canary
    const { hasThirdStage, random, faults } = options
    const planOf = (keepsVisits: boolean) => plan(simulatedTopology({ hasThirdStage, keepsVisits, kill: options.kill }))
    this.#plans = [planOf(false), planOf(true)]
    const isPlain = !faults().any
    this.#checksPurity = random.chance(0.3)
    this.runnerOptions = {
      attempts: 3,
      retention: days(7),
      mostKeysPerCommit: isPlain ? 1_000 : random.pick([1, 2, 5, 1_000]),
      warmKeys: isPlain ? 20_000 : random.pick([0, 4, 20_000, 20_000]),
      ...options.canary?.runnerOptions,
    }
    this.dynamo = options.dynamoStore && createDynamoModel({ clock: { nowMs: () => options.scheduler.nowMs() } })
    const keyed = hasThirdStage ? [names.keyed, names.second] : [names.keyed]
    for (const stage of keyed) this.#tables.set(stage, this.#table(stage))
  }

  #table(stage: string): StateStore {
    const { scheduler, dynamoStore } = this.#options
    const clock = { nowMs: () => scheduler.nowMs() }
    if (this.dynamo === undefined || dynamoStore === undefined) return new MemoryStateStore({ stage, clock })
    this.dynamo.call('CreateTable', { TableName: tableNameOf(names.topology, stage), ...stateTable })
    return dynamoStore({
      ...this.#dynamoParts(stage, this.dynamo),
      clock: { ...clock, timer: () => () => undefined, sleep: async () => undefined },
      send: async (_operation, _input, effect) => effect(),
    })
  }

  #dynamoParts(stage: string, model: DynamoModel) {
    const { random } = this.#options
    return { model, tableName: tableNameOf(names.topology, stage), stage, random: () => random.next() }
  }

  /** Notes what the tables have cost: before the referees, who read them too. */
  countUnits(): void {
    for (const stage of this.#tables.keys()) {
      const used = this.dynamo?.consumedUnits(tableNameOf(names.topology, stage)) ?? { read: 0, write: 0 }
      this.units = { read: this.units.read + used.read, write: this.units.write + used.write }
    }
  }

  /** The table of a keyed stage, for the referees. */
  table(stage: string): StateStore {
    return this.#tables.get(stage) as StateStore
  }

  /** Notes what an invocation is about to do. */
  begin(owner: Owner, stage: string, shardId: string, records: readonly MappedRecord[]): void {
    const touched = new Set<string>()
    const touchedEntries = new Set<string>()
    let audits = 0
    for (const record of stage === names.source ? [] : records) {
      const known = this.#touchedBy(stage, record)
      for (const key of known.keys) touched.add(key)
      for (const entry of known.entries) touchedEntries.add(entry)
      audits += known.audits
    }
    const usage: Usage = {
      stage,
      shardId,
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
    this.usages.push(usage)
  }

  /** What a frame touches. The same frame comes in many batches. */
  #touchedBy(stage: string, { sequenceNumber, data }: MappedRecord): Touched {
    const name = `${stage}/${sequenceNumber}`
    const known = this.#touched.get(name)
    if (known) return known
    const records = recordsOf(data)
    const lines =
      stage === names.keyed ? records.map(({ value }) => JSON.parse(Buffer.from(value).toString()) as Line) : []
    const entries = lines.flatMap(({ user, line, item, does }) =>
      does === 'audit' ? [`${user} once ${line}`] : [`${user} once ${line}`, `${user} ${item}`],
    )
    const audits = lines.filter(({ does }) => does === 'audit').length
    const touched = { keys: records.map(({ key }) => key), entries, audits }
    this.#touched.set(name, touched)
    return touched
  }

  /** The runner of a stage in one environment, with the ports of that environment alone. */
  makeRunner(stage: string, owner: Owner, version: number): Runner {
    const planned = this.#plans[version % 2] as Plan
    const ports = this.#ports(planned, owner)
    const make = () => createRunner(names.topology, stageNamed(planned, stage), ports, this.runnerOptions)
    const runner = make()
    return this.canary?.runner?.(runner) ?? runner
  }

  #ports(planned: Plan, owner: Owner): Ports {
    const { scheduler, streams, random, faults, deliveries, onMetric } = this.#options
    const { canary } = this
    const clock = scheduler.clockOf(owner)
    const sinkOf = (name: string): Sink => {
      const rejects = (cents: number) => isRejected(name, cents)
      const sink = recordingSink(name, { owner, scheduler, random, faults, deliveries, rejects }) as Sink
      return canary?.sink?.(sink, { owner, clock }) ?? sink
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
      return canary?.publisher?.(publisher, { owner, clock }) ?? publisher
    }
    return {
      clock,
      logger: silent,
      metrics: { count: onMetric, gauge: () => undefined },
      sink,
      deadLetters: sink('dead-letters') as Ports['deadLetters'],
      freezesValues: true,
      checksPurity: this.#checksPurity,
      state: (stage) => this.#store(stateOf(planned, stage), owner, clock),
      frames,
      lineage: (stage) => {
        const lineage = streams.lineage(owner, stage)
        return canary?.lineage?.(lineage) ?? lineage
      },
    }
  }

  #store(stage: string | undefined, owner: Owner, clock: RunnerClock): StateStore | undefined {
    const inner = stage === undefined ? undefined : this.#tables.get(stage)
    if (stage === undefined || inner === undefined) return undefined
    const { scheduler, random, faults, dynamoStore } = this.#options
    const refusesUntilMs = () => this.refusesUntilMs
    const store =
      this.dynamo === undefined || dynamoStore === undefined
        ? new ScheduledStore(inner, { owner, scheduler, clock, random, faults, refusesUntilMs })
        : dynamoStore({ ...this.#dynamoParts(stage, this.dynamo), clock, send: this.#send(owner) })
    // The canary stands before the watch, so that what it does is seen.
    const watched = new WatchedStore(store, () => this.#usageOf.get(owner), this.largest)
    return this.canary?.store?.(watched, { owner, clock }) ?? watched
  }

  #send(owner: Owner) {
    const { scheduler, random, faults } = this.#options
    return async <T>(operation: string, _input: object, effect: () => T): Promise<T> => {
      if (this.refusesUntilMs > scheduler.nowMs()) throw named('ThrottlingException', 'the tables refuse for a while')
      const answer = await scheduler.call(owner, operation, effect)
      const isWrite = operation === 'PutItem' || operation === 'TransactWriteItems'
      if (!isWrite || !random.chance(faults().lostAnswer)) return answer
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    }
  }
}

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name })

function recordsOf(data: Uint8Array) {
  try {
    const frame = decodeFrame(data)
    return 'records' in frame ? frame.records : []
  } catch {
    return []
  }
}

/** How every state table is made. */
const stateTable = {
  AttributeDefinitions: [
    { AttributeName: 'pk', AttributeType: 'S' as const },
    { AttributeName: 'sk', AttributeType: 'S' as const },
  ],
  KeySchema: [
    { AttributeName: 'pk', KeyType: 'HASH' as const },
    { AttributeName: 'sk', KeyType: 'RANGE' as const },
  ],
  BillingMode: 'PAY_PER_REQUEST' as const,
}
