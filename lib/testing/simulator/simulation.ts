/**
 * One run: the production runners on models of everything around them, under one seeded scheduler.
 *
 * ```text
 *  source ──> mapping ──> environments of "orders" ──> frames ──> mapping ──> environments of "by-user" ──> ...
 *                              │ tables, sinks                          │ tables, sinks
 *                          every port call waits for its turn, before its effect and after it
 * ```
 *
 * 1. A run depends on its seed and on the code alone. Runs whose seeds agree divided by four have the same source.
 * 2. The first part of a run has faults; after it nothing fails any more, and everything must come to an end.
 * 3. The referees look at what is left: streams, tables, deliveries, dead letters.
 * 4. Even seeds play the application that keeps every kind of state, odd ones that with windows, timers and the announcer.
 */
import { describeError, isRetryable } from '../../core/errors.ts'
import type { ExpiredItem } from '../../state/memory-store.ts'
import { Announcers } from './announcers.ts'
import type { Application } from './application.ts'
import type { Canary } from './canary.ts'
import { Disturbances } from './disturbances.ts'
import { type Environment, Environments } from './environments.ts'
import { drawFaults, drawMoreFaults, drawTimedFaults, type Faults, noFaults } from './faults.ts'
import { KafkaService } from './kafka-service.ts'
import { KinesisService } from './kinesis-service.ts'
import { isBehind, isDone, type Mapped, type MappingKind } from './mapped.ts'
import { mappingOf } from './mappings.ts'
import { Random } from './random.ts'
import type { Release } from './release.ts'
import { newOwner, type Owner, Scheduler } from './scheduler.ts'
import type { Arrival } from './sinks.ts'
import { Stages, type StoreFactory, ttlAfterMs } from './stages.ts'
import { type LogRecord, Streams } from './streams.ts'
import { TimeFaults } from './time-faults.ts'
import { Trace } from './trace.ts'
import type { SourceItem, Variant } from './variant.ts'

/** Makes the application of a run; runs of one source number have the same source. */
type MakeApplication = (source: number, startMs: number, variant: Variant) => Application<Simulation>

export interface SimulationOptions {
  readonly seed: number
  readonly applications: { readonly keyed: MakeApplication; readonly timed: MakeApplication }
  /** Resolves when all that can go on without the scheduler has done so: one turn of the event loop. */
  readonly settle: () => Promise<void>
  /** Makes the production store over the model of DynamoDB; without it every run keeps its state in memory. */
  readonly dynamoStore?: StoreFactory
  /** The release before this one: in runs that mix both, containers of the first version of the topology are of it. */
  readonly formerRelease?: Release | undefined
  /** A part that is broken on purpose. */
  readonly canary?: Canary
  /** What keeps the streams. @default 'kinesis' */
  readonly service?: 'kinesis' | 'kafka'
  /** @default false */
  readonly traces?: boolean
}

/** What a shard of a source holds of each sent record. */
export interface SentRecord {
  readonly index: number
  readonly shard: string
  readonly sequenceNumber: string
  readonly arrivalMs: number
}

const startMs = Date.UTC(2026, 0, 1)
/** Faults end no later than at this step. */
const mostFaultSteps = 20_000
const mostSteps = 300_000
/** How long everything may take to come to its end once faults have stopped. */
const drainLimitMs = 30 * 60_000

/** Kafka keeps the order of what a producer sends, and the release before this one cannot run on it. */
const onKafka: Partial<Faults> = { overtaking: 0, mixesReleases: false }

export class Simulation {
  readonly seed: number
  readonly startMs = startMs
  readonly mixesReleases: boolean
  readonly mappingKind: MappingKind
  readonly drawn: Faults
  readonly trace: Trace
  readonly scheduler: Scheduler
  readonly streams: Streams
  readonly stages: Stages
  readonly deliveries: Arrival[] = []
  readonly sent: SentRecord[] = []
  readonly application: Application<Simulation>
  readonly source: readonly SourceItem[]
  /** Undefined in runs without time. */
  readonly announcers: Announcers | undefined
  readonly hasThirdStage: boolean
  /** The stages that feed a keyed one, in their order; the streams that they read have their names. */
  readonly feeding: readonly string[]
  /** How often something happened: what a run met. */
  readonly met = new Map<string, number>()
  /** Errors that no run of a runner should end with. */
  readonly surprises: string[] = []
  /** How long it took after faults had stopped; undefined where it did not come to an end. */
  drainedAfterMs: number | undefined
  /** What was left to do when the run was broken off. */
  leftOver: readonly string[] = []
  readonly #random: Random
  readonly #environments: Environments
  readonly #mapped: Mapped[] = []
  readonly #disturbances: Disturbances
  #faults: Faults
  readonly #arrival: number
  /** What only runs with time draw. */
  readonly #timeRandom: Random
  readonly #time: TimeFaults | undefined
  #faultsEndedMs: number | undefined

  constructor(options: SimulationOptions) {
    const { seed, canary } = options
    this.seed = seed
    const random = new Random(seed)
    this.#random = random
    this.#timeRandom = random.fork('time')
    const hasTime = canary ? canary.hasTime === true : seed % 2 === 1
    const faultsDrawn = drawMoreFaults(random.fork('more faults'), drawFaults(random))
    const kafkaRandom = random.fork('kafka')
    const isKafka = options.service === 'kafka' || canary?.kafka !== undefined
    const mode = kafkaRandom.pick(['on-demand', 'provisioned'] as const)
    this.mappingKind = isKafka ? (canary?.kafka?.mode ?? mode) : 'kinesis'
    this.drawn = {
      ...(hasTime ? drawTimedFaults(this.#timeRandom, faultsDrawn) : faultsDrawn),
      ...canary?.faults,
      ...(isKafka ? onKafka : {}),
    }
    this.#faults = this.drawn
    this.mixesReleases = this.drawn.mixesReleases && options.formerRelease !== undefined
    this.trace = new Trace(options.traces === true)
    const { trace } = this
    this.scheduler = new Scheduler({ random: random.fork('schedule'), trace, startMs, settle: options.settle })
    this.#arrival = random.pick([0.02, 0.05, 0.2])
    this.streams = this.#newStreams(isKafka ? kafkaRandom : undefined)
    this.hasThirdStage = canary?.needsThirdStage || random.chance(0.35)
    this.application = options.applications[hasTime ? 'timed' : 'keyed'](Math.floor(seed / 4), startMs, {
      hasThirdStage: this.hasThirdStage,
      hasBriefs: this.drawn.ttl > 0,
      changes: this.drawn.changes,
      mixesReleases: this.mixesReleases,
      kill: () => this.#killCurrent(),
    })
    this.source = this.application.records
    const { source, keyedStages } = this.application
    this.feeding = [source, ...keyedStages.slice(0, -1).map(({ name }) => name)]
    this.streams.create(this.application.source, random.integer(1, 3), 0)
    for (const { name, slots } of this.application.keyedStages) {
      const shards = random.integer(1, 2)
      this.streams.create(name, isKafka ? Math.min(slots, kafkaRandom.pick([1, 2, 4])) : shards, slots)
    }
    this.stages = this.#newStages(options)
    this.#environments = this.#newEnvironments(options)
    this.scheduler.interfere = (owner, phase, label) => this.#interfere(owner, phase, label)
    for (const { name } of this.streams.all) {
      this.#mapped.push(
        mappingOf(name, {
          kind: this.mappingKind,
          ...{ random, kafkaRandom },
          count: (kind) => this.count(kind),
          scheduler: this.scheduler,
          streams: this.streams,
          invokerOf: (stage) => this.#environments.invoker(stage, stage),
          settings: canary?.mapping,
        }),
      )
    }
    this.#disturbances = new Disturbances({
      random,
      scheduler: this.scheduler,
      streams: this.streams,
      stages: this.stages,
      environments: this.#environments,
      mapped: this.#mapped,
      count: (name) => this.count(name),
    })
    this.announcers = hasTime ? this.#newAnnouncers() : undefined
    this.#time = this.announcers && new TimeFaults(this, this.#timeRandom, this.announcers)
  }

  #newStreams(kafkaRandom: Random | undefined): Streams {
    const clock = { nowMs: () => this.scheduler.nowMs() }
    const count = (name: string) => this.count(name)
    return new Streams({
      service:
        kafkaRandom === undefined
          ? new KinesisService(clock)
          : new KafkaService({ clock, random: kafkaRandom.fork('log'), count }),
      scheduler: this.scheduler,
      random: this.#random.fork('streams'),
      faults: () => this.#faults,
      count,
    })
  }

  #newStages({ canary, formerRelease, dynamoStore }: SimulationOptions): Stages {
    const random = this.#random
    return new Stages({
      scheduler: this.scheduler,
      streams: this.streams,
      random: random.fork('stages'),
      faults: () => this.#faults,
      deliveries: this.deliveries,
      application: this.application,
      canary,
      formerRelease: this.mixesReleases ? formerRelease : undefined,
      // What runs without faults must cost is only known of DynamoDB, and it alone answers for a part.
      dynamoStore:
        this.drawn.any && random.chance(this.drawn.answeredInPart > 0 ? 0.5 : 0.85) && !canary?.needsDynamo
          ? undefined
          : dynamoStore,
      onMetric: (name, value) => this.count(name, value),
      count: (name) => this.count(name),
      ttlTakes: (item) => this.#ttlTakes(item),
      readsAnswers: this.mappingKind !== 'on-demand',
    })
  }

  #newEnvironments({ canary }: SimulationOptions): Environments {
    return new Environments({
      scheduler: this.scheduler,
      random: this.#random.fork('environments'),
      faults: () => this.#faults,
      makeRunner: (stage, owner, version) => this.stages.makeRunner(stage, owner, version),
      onBegin: ({ owner, stage }, { shardId, records }) => this.stages.begin(owner, stage, shardId, records),
      onError: (environment, error) => this.#heed(environment, error),
      onCount: (name) => this.count(name),
      answers: canary?.kafka?.answers ?? this.mappingKind,
    })
  }

  #newAnnouncers(): Announcers {
    return new Announcers({
      scheduler: this.scheduler,
      announce: () => this.stages.opened(this.#environments.version).announce,
      source: this.streams.stream(this.application.source),
      portsOf: (owner, heedSilence) => this.stages.announcerPorts(owner, heedSilence),
      hasEarlyIdle: this.#timeRandom.chance(0.4),
      isAllSent: () => this.sent.length === this.source.length,
      onSurprise: (message) => this.surprises.push(message),
      onCount: (name) => this.count(name),
    })
  }

  /** Partitions whose names nobody said when they began, behind the names of their stages. */
  get unheardOf(): ReadonlySet<string> {
    return this.#time?.unheardOf ?? new Set()
  }

  /** No attempt is broken off, none is answered in vain, and no two run at once. */
  get isCalm(): boolean {
    const { crash, zombie, failOver, redelivery, lostAnswer, throttle, clockJump, silence } = this.drawn
    return crash + zombie + failOver + redelivery + lostAnswer + throttle + clockJump + silence === 0
  }

  /** Event time may have to catch up: the last record of a partition may be as far behind the last of another. */
  get drainLimitMs(): number {
    return this.application.hasTime ? drainLimitMs + this.application.spanMs : drainLimitMs
  }

  /** TTL takes nothing while a record waits that came to the source before: its input would not be retained so long. */
  #ttlTakes(item: ExpiredItem): boolean {
    if (!this.#timeRandom.chance(this.drawn.ttl) || !this.application.ttlTakes(item)) return false
    const oldestMs = this.scheduler.nowMs() - ttlAfterMs + 5 * 60_000
    for (const { stream, stage, checkpoints } of this.#mapped) {
      for (const { id, records } of stream.shards.values()) {
        const checkpoint = checkpoints.get(id)
        // What is not done is at the end.
        for (let at = records.length - 1; at >= 0; at--) {
          const record = records[at] as LogRecord
          if (isBehind(checkpoint, record.sequenceNumber)) break
          if (this.stages.oldestIn(stage, record) < oldestMs) return false
        }
      }
    }
    this.count('state' in item ? 'entry taken by TTL' : 'key taken by TTL')
    return true
  }

  /** Counts what happened. */
  count(name: string, value = 1): void {
    this.met.set(name, (this.met.get(name) ?? 0) + value)
  }

  #heed({ owner }: Environment, error: unknown): void {
    const { message, code = '' } = describeError(error)
    this.count(`answer: ${code || 'step failed'}`)
    // What a step throws is what the workload throws; whatever else comes must say that it may succeed later.
    const isExpected = isRetryable(error) || /^this (line|order|hit|visit) /.test(message)
    if (!isExpected) this.surprises.push(`${owner.name}: ${message}`)
  }

  /** Plays the run to its end. The referees look at it afterwards. */
  async play(): Promise<void> {
    await this.#play()
    this.stages.countUnits()
  }

  async #play(): Promise<void> {
    for (const { start } of this.#mapped) await start()
    const faultSteps = Math.min(mostFaultSteps, this.#random.integer(300, 1_200) + this.source.length * 4)
    for (;;) {
      if (this.#faultsEndedMs === undefined) {
        const isOver = this.sent.length === this.source.length && this.scheduler.steps >= faultSteps
        if (isOver) this.#faultsEndedMs = this.#endFaults()
        else this.#disturb()
        this.#arrive()
      } else if (this.scheduler.steps % 16 === 0) {
        const afterMs = this.scheduler.nowMs() - this.#faultsEndedMs
        this.leftOver = await this.#unfinished()
        if (this.leftOver.length === 0) {
          this.drainedAfterMs = afterMs
          return
        }
        if (afterMs > this.drainLimitMs || this.scheduler.steps > mostSteps) return
      }
      await this.scheduler.step()
    }
  }

  #endFaults(): number {
    this.#faults = noFaults
    this.streams.land()
    for (const stream of this.streams.all) stream.refusesUntilMs = 0
    this.stages.refusesUntilMs = 0
    // What a redeploy adds stays in the end, so that the last version is the one that everything is done with.
    const { operator, sink, stage } = this.drawn.changes
    if (operator || sink || stage || this.mixesReleases) this.#environments.version |= 1
    this.scheduler.note('world', () => 'faults stop')
    this.announcers?.beginEachMinute(newOwner('rule'))
    return this.scheduler.nowMs()
  }

  #arrive(): void {
    if (this.sent.length === this.source.length || !this.#random.chance(this.#arrival)) return
    for (let burst = this.#random.integer(1, 6); burst > 0 && this.sent.length < this.source.length; burst--) {
      const index = this.sent.length
      const { account, bytes } = this.source[index] as SourceItem
      const { shard, record } = this.streams.put(this.application.source, account, bytes)
      this.sent.push({ index, shard, sequenceNumber: record.sequenceNumber, arrivalMs: record.arrivalMs })
    }
  }

  /** Shards that are not done, and environments that are busy. */
  async #unfinished(): Promise<readonly string[]> {
    const left = this.#mapped.flatMap(({ stage, stream, checkpoints }) =>
      [...stream.shards.values()]
        .filter((shard) => !isDone(shard, checkpoints.get(shard.id)))
        .map(({ id }) => `${stage}/${id}`),
    )
    const busy = this.#environments.busy.map(({ owner }) => owner.name)
    return left.length + busy.length > 0 ? [...left, ...busy] : this.application.waiting(this)
  }

  #interfere(owner: Owner, phase: 'before' | 'after', label: string): void {
    if (!this.#random.chance(this.#faults.crash)) return
    const environment = this.#environments.of(owner)
    if (this.announcers?.has(owner)) {
      this.count('crash of the announcer')
      this.announcers.kill(owner, `${phase} ${label}`)
    }
    if (environment === undefined) return
    this.count(`crash ${phase} its effect`)
    this.#environments.kill(environment, `${phase} ${label}`)
  }

  /** What may happen at any step. */
  #disturb(): void {
    const faults = this.#faults
    this.#time?.disturb(faults)
    if (!faults.any) return
    this.#disturbances.disturb(faults)
    if (this.#time === undefined && this.#random.chance(faults.silence)) this.#disturbances.silence()
  }

  /** When containers of the first version of the topology ran a stage last; minus infinity where none did. */
  oldUntilMs(stage: string): number {
    return this.#environments.oldUntilMs.get(stage) ?? Number.NEGATIVE_INFINITY
  }

  /** A step ends the process that runs it. */
  #killCurrent(): never {
    const environment = this.scheduler.current && this.#environments.of(this.scheduler.current)
    // The run that looks whether the step is pure finds the process ended already.
    if (environment) {
      this.count('killer')
      this.#environments.kill(environment, 'a step ends the process')
    }
    throw new Error('this step has ended the process: nobody hears of it')
  }
}
