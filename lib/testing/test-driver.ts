/** Runs a topology in a test: the production runner on memory ports and a virtual clock. */
import { gzipSync } from 'node:zlib'
import { type Duration, milliseconds, msOf } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { noHeaders, type RecordHeader, SourceRecord } from '../core/record.ts'
import { type Plan, plan, type StagePlan, stageNamed } from '../plan/plan.ts'
import { announce } from '../runtime/announcer/announcer.ts'
import type { BatchResult } from '../runtime/batch.ts'
import type { DeadLetter } from '../runtime/dead-letter.ts'
import type { Ports } from '../runtime/ports.ts'
import type { PartitionLineage } from '../runtime/progress/lineage.ts'
import { createRunner, type Runner } from '../runtime/runner.ts'
import type { Output } from '../runtime/sink.ts'
import type { RunnerOptions } from '../runtime/stage-runner.ts'
import { type Key, keyText } from '../state/key-encoding.ts'
import type { StateValue } from '../state/state-store.ts'
import type { SinkHandle, SourceHandle } from '../topology/handles.ts'
import type { Topology } from '../topology/topology.ts'
import { headersOf, payloadBytes, type TestHeaders } from './events.ts'
import { type MemoryPorts, memoryPorts } from './memory-ports.ts'
import { sourceLineage, wholePartition } from './memory-streams.ts'
import { VirtualClock } from './virtual-clock.ts'

/** Where and how records are sent. */
export interface SendOptions<I> {
  /** The shard or topic-partition. @default 'shard-0' */
  readonly partition?: string
  /** The partition or message key of each value. @default 'key' */
  readonly key?: (value: I) => string
  /** The Kafka headers, or SQS message attributes, of each value. @default none */
  readonly headers?: (value: I) => TestHeaders
}

/** Time that an invocation has, in ms. */
const invocationMs = 60_000

/** How often in a row a batch is run again although nothing of it was done: well above any count of attempts. */
const mostIdleRuns = 20

/** What a record has beside its payload. */
interface Meta {
  readonly key?: string | undefined
  readonly headers?: readonly RecordHeader[]
}

const lengthOf = (method: string, duration: Duration): number =>
  msOf(`${method}: the length is`, duration, 0, 'give a length of time, such as minutes(5).')

/** A partition of a source, or a shard of a keyed stage's stream. */
interface Log {
  readonly stage: string
  readonly partition: string
  pending: SourceRecord[]
  sent: number
}

/** What a keyed stage keeps of one key: each state by its stored name, a map state as an object of its entries. */
export type StoredState = Readonly<Record<string, StateValue>>

/**
 * Sends records to a topology's sources, runs every stage that they reach, and shows what the sinks received.
 *
 * A record that goes back to where it was read (a RetryableError, a sink that refuses) stays pending with everything behind
 * it in its partition, until something new comes to that partition or `retry` is called. In a stage with state a step that
 * throws is tried again at once, as Lambda would, until it is a dead letter.
 *
 * Every record is decoded and every step runs twice; what answers differently the second time is refused by name.
 *
 * @example
 * const driver = new TestDriver(bookings)
 * await driver.send(requests, [booking])
 * expect(driver.received(hotelBookings)).toEqual([...])
 * expect(await driver.stateOf('by-hotel', 'h-1')).toEqual({ total: 1 })
 */
export class TestDriver {
  readonly clock: VirtualClock
  readonly ports: MemoryPorts
  readonly #plan: Plan
  readonly #runners = new Map<string, Runner>()
  readonly #logs = new Map<string, Log>()
  #eventTimeAheadMs = 0
  /** The partitions that something new came to. */
  readonly #due = new Set<Log>()
  readonly #options: RunnerOptions
  /** What the runners run on: the partitions of sources are the driver's own. */
  readonly #runnerPorts: Ports

  /**
   * `nowMs` is where the clock begins, in ms since 1970 UTC; it stands still until `advanceProcessingTime` moves it. Records arrive
   * at what it says: give the time of the records where event times are compared with arrival. A record that is further ahead of
   * its arrival than the `skewLimit` of its source is late for every window, and with the clock of the default that is any record
   * of today. The other options are those of the production runner.
   *
   * Throws a {@link ConfigurationError} for a topology that cannot be planned.
   *
   * @default nowMs 2026-01-01T00:00:00Z
   *
   * @example
   * const driver = new TestDriver(bookings, { nowMs: Date.parse('2026-11-29T12:00:00Z') })
   */
  constructor(topology: Topology, options: RunnerOptions & { readonly nowMs?: number } = {}) {
    this.#plan = plan(topology)
    this.clock = new VirtualClock(options.nowMs)
    this.ports = memoryPorts({ clock: this.clock })
    this.ports.serve?.(this.#plan)
    // Marks are told at once: the clock stands still between two sends.
    this.#options = { marksEvery: milliseconds(0), ...options }
    const { ports } = this
    this.#runnerPorts = {
      ...ports,
      lineage: (stage) => (this.#isSource(stage) ? this.#lineageOf(stage) : ports.lineage?.(stage)),
    }
  }

  /**
   * Sends values as JSON, or as the source's format writes them, such as `tableChanges()`; strings and bytes are sent as they
   * are where the source reads `text()` or `bytes()`.
   *
   * @example
   * await driver.send(orders, [order], { key: ({ id }) => id, headers: () => ({ tenant: 'acme' }) })
   */
  async send<I>(source: SourceHandle<I>, values: readonly I[], options: SendOptions<I> = {}): Promise<void> {
    const { format } = source.declaration
    const { name } = format
    const asJson = name !== 'text' && name !== 'bytes'
    const written = (value: I) => format.encode?.(value) ?? Buffer.from(JSON.stringify(value))
    const plain = values.map((value) => (asJson ? written(value) : payloadBytes(value)))
    const payloads = name === 'json+gzip' ? plain.map((payload) => gzipSync(payload)) : plain
    await this.#append(
      source.name,
      options.partition,
      payloads,
      values.map((value) => ({ key: options.key?.(value), headers: headersOf(options.headers?.(value) ?? {}) })),
    )
  }

  /** Sends payloads byte for byte, well-formed or not; null is a Kafka tombstone. */
  async sendRaw<I>(
    source: SourceHandle<I>,
    payloads: readonly (string | Uint8Array | null)[],
    options: { readonly partition?: string } = {},
  ): Promise<void> {
    const bytes = payloads.map((payload) => (payload === null ? null : payloadBytes(payload)))
    await this.#append(source.name, options.partition, bytes, [])
  }

  /** Tries every pending record again. */
  async retry(): Promise<void> {
    for (const log of this.#logs.values()) this.#due.add(log)
    await this.#runDue()
  }

  /** How many records of a source, or frames for a keyed stage by its name, wait to be tried again. */
  pending<I>(source: SourceHandle<I> | string): number {
    const stage = typeof source === 'string' ? source : source.name
    return this.#logsOf(stage).reduce((sum, log) => sum + log.pending.length, 0)
  }

  /** What a sink received, in order. */
  received<T>(sink: SinkHandle<T>): readonly T[] {
    return this.ports.received(sink)
  }

  /**
   * What a sink received, in order, with all that it is told of each value: `key` is what its key function said, and `record` the
   * record that the value was made of, whose headers a Kafka topic is sent.
   *
   * @example
   * expect(driver.outputs(audits).map(({ record }) => record.header('tenant'))).toEqual(['acme'])
   */
  outputs<T>(sink: SinkHandle<T>): readonly Output<T>[] {
    return this.ports.outputs(sink)
  }

  /** The dead letters, in order. */
  get deadLetters(): readonly DeadLetter[] {
    return this.ports.deadLettered
  }

  /**
   * Moves processing time on: its timers fire, and background refreshes that are under way come to their end. As nothing was
   * sent meanwhile, every source has been silent for that long: event time moves on too, as the announcer would say it, where
   * something waits for that. Throws a {@link ConfigurationError} for what is no length of time.
   *
   * @example
   * await driver.send(requests, [booking])
   * await driver.advanceProcessingTime(hours(1)) // a timer that was set for an hour after the record fires
   */
  async advanceProcessingTime(duration: Duration): Promise<void> {
    this.clock.advance(lengthOf('advanceProcessingTime', duration))
    for (const runner of this.#runners.values()) await runner.settled()
    await this.#announce(this.#silentMs)
  }

  /**
   * Moves event time on, as if every source had been silent for so much longer: windows close, timers fire. The clock stands.
   *
   * A partition's mark is its largest event time, less its out-of-orderness, and the time that it has been silent since: what
   * this method was given since anything was last sent, and what the clock moved since that record. So a window
   * [00:00, 00:05) of a source with `outOfOrderness: minutes(1)`, whose largest event time is 00:03, closes after three minutes.
   * A partition that has records pending is not silent, and holds event time back. Throws a {@link ConfigurationError} for what is
   * no length of time.
   *
   * @example
   * await driver.send(requests, [booking])
   * await driver.advanceEventTime(minutes(9))
   * expect(driver.received(hotelBookings)).toEqual([...])
   */
  async advanceEventTime(duration: Duration): Promise<void> {
    this.#eventTimeAheadMs += lengthOf('advanceEventTime', duration)
    await this.#announce(this.#silentMs)
  }

  readonly #silentMs = (arrivedAtMs: number) => this.clock.nowMs() - arrivedAtMs + this.#eventTimeAheadMs

  /** Rounds of the announcer, until each stage has had a word from those before it. */
  async #announce(idleMs: ((arrivedAtMs: number) => number) | undefined): Promise<void> {
    const { signal } = new AbortController()
    for (const { kind } of this.#plan.stages) {
      if (kind !== 'keyed') continue
      const said = await announce({ planned: this.#plan, ports: this.#runnerPorts, signal, idleMs })
      if (said.length === 0) return
      await this.#runDue()
    }
  }

  /**
   * What a keyed stage keeps of a key, as its table holds it: what aggregates have gathered, and what has expired and is not
   * removed yet, included. Empty where there is nothing. Throws a {@link ConfigurationError} for a stage that is not keyed.
   *
   * @example
   * expect(await driver.stateOf('by-driver', 'd-1')).toEqual({ 'driver-state.position': { lat: 1, lon: 2 } })
   */
  async stateOf(stage: string, key: Key): Promise<StoredState> {
    const planned = stageNamed(this.#plan, stage)
    const store = this.ports.state(stage)
    if (planned.kind !== 'keyed' || store === undefined) {
      throw new ConfigurationError(
        `stage "${stage}" of topology "${this.#plan.topology}" keeps no keys: ask for a stage of ${this.#plan.stages.flatMap(({ kind, name }) => (kind === 'keyed' ? [`"${name}"`] : [])).join(', ') || '(there is none)'}.`,
      )
    }
    const { signal } = new AbortController()
    const text = keyText(key)
    const states = new Map(Object.entries((await store.readKeys([text], signal)).get(text)?.states ?? {}))
    for (const [name, { kind }] of planned.states) {
      if (kind !== 'map') continue
      const entries = await store.listEntries(text, name, signal)
      const values = [...entries].map(([entry, { value }]) => [entry, value] as const)
      if (values.length > 0) states.set(name, Object.fromEntries(values) as StateValue)
    }
    return Object.fromEntries(states)
  }

  async #append(
    source: string,
    partition = 'shard-0',
    payloads: readonly (Uint8Array | null)[],
    meta: readonly Meta[],
  ): Promise<void> {
    this.#refuseForeign(source)
    const log = this.#log(source, partition)
    const arrivalTimeMs = this.clock.nowMs()
    for (const [i, payload] of payloads.entries()) {
      const position = String(log.sent++)
      const { key = 'key', headers = noHeaders } = meta[i] ?? {}
      log.pending.push(new SourceRecord({ source, partition, position, arrivalTimeMs, key, payload, headers }))
    }
    this.#due.add(log)
    // What is sent is the newest: time goes on from there.
    this.#eventTimeAheadMs = 0
    await this.#runDue()
    await this.#announce(undefined)
  }

  /** Runs what something new came to, each stage after those that feed it. */
  async #runDue(): Promise<void> {
    for (const stage of this.#plan.stages) {
      if (stage.kind === 'keyed') this.#takeFrames(stage.name)
      for (const log of this.#logsOf(stage.name)) if (this.#due.delete(log)) await this.#run(stage, log)
    }
  }

  /** Reads the stage's stream as its event source mapping would. */
  #takeFrames(stage: string): void {
    for (const { eventID, kinesis } of this.ports.takeFrames(stage).flatMap(({ Records }) => Records)) {
      const log = this.#log(stage, eventID.slice(0, eventID.indexOf(':')))
      const { sequenceNumber: position, partitionKey: key, data: payload } = kinesis
      const arrivalTimeMs = Math.round(kinesis.approximateArrivalTimestamp * 1_000)
      log.pending.push(
        new SourceRecord({ source: stage, partition: log.partition, position, arrivalTimeMs, key, payload }),
      )
      this.#due.add(log)
    }
  }

  /** In a stage that keeps progress, runs again while progress moves: that counts the attempts at a record too. */
  async #run(stage: StagePlan, log: Log): Promise<void> {
    let idleRuns = 0
    while (log.pending.length > 0 && idleRuns < mostIdleRuns) {
      const [version, waiting] = [await this.#progressVersion(log), log.pending.length]
      const batch = [{ partition: log.partition, records: log.pending }]
      const deadlineMs = this.clock.nowMs() + invocationMs
      const result: BatchResult = await this.#runner(stage).run(batch, { deadlineMs })
      log.pending = [...(result.failures[0]?.notDone ?? [])]
      if ((await this.#progressVersion(log)) === version) return
      idleRuns = log.pending.length < waiting ? 0 : idleRuns + 1
    }
  }

  async #progressVersion({ stage, partition }: Log): Promise<number | undefined> {
    const { signal } = new AbortController()
    return (await this.ports.state(stage)?.readProgress(`${stage}/${partition}`, signal))?.version
  }

  #log(stage: string, partition: string): Log {
    const id = `${stage}/${partition}`
    const log = this.#logs.get(id) ?? { stage, partition, pending: [], sent: 0 }
    this.#logs.set(id, log)
    return log
  }

  #logsOf(stage: string): readonly Log[] {
    return [...this.#logs.values()].filter((log) => log.stage === stage)
  }

  #isSource(stage: string): boolean {
    return this.#plan.graph.sources.some(({ name }) => name === stage)
  }

  #lineageOf(source: string): PartitionLineage {
    return {
      ...sourceLineage,
      list: async () =>
        this.#logsOf(source).map(({ partition }) => ({ ...wholePartition, partition, isClosed: false })),
      isCaughtUp: async (partition) => this.#log(source, partition).pending.length === 0,
    }
  }

  #refuseForeign(source: string): void {
    if (this.#isSource(source)) return
    throw new ConfigurationError(`topology "${this.#plan.topology}" has no source "${source}": send to one of its own.`)
  }

  #runner(stage: StagePlan): Runner {
    const runner =
      this.#runners.get(stage.name) ?? createRunner(this.#plan.topology, stage, this.#runnerPorts, this.#options)
    this.#runners.set(stage.name, runner)
    return runner
  }
}
