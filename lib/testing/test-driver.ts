/** Runs a topology in a test: the production runner on memory ports and a virtual clock. */
import { gzipSync } from 'node:zlib'
import { ConfigurationError } from '../core/errors.ts'
import { SourceRecord } from '../core/record.ts'
import { type Plan, plan, stageNamed } from '../plan/plan.ts'
import type { BatchResult } from '../runtime/batch-run.ts'
import type { DeadLetter } from '../runtime/dead-letter.ts'
import { type RunnerOptions, StageRunner } from '../runtime/stage-runner.ts'
import type { SinkHandle, SourceHandle } from '../topology/handles.ts'
import type { Topology } from '../topology/topology.ts'
import { payloadBytes } from './events.ts'
import { type MemoryPorts, memoryPorts } from './memory-ports.ts'
import { VirtualClock } from './virtual-clock.ts'

/** Where and how records are sent. */
export interface SendOptions<I> {
  /** The shard or topic-partition. @default 'shard-0' */
  readonly partition?: string
  /** The partition or message key of each value. @default 'key' */
  readonly key?: (value: I) => string
}

/** Time that an invocation has, in ms. */
const invocationMs = 60_000

interface Log {
  readonly source: string
  readonly partition: string
  pending: SourceRecord[]
  sent: number
}

/**
 * Sends records to a topology's sources and shows what its sinks received.
 *
 * A record that goes back to its source (a RetryableError, a sink that refuses) stays pending with everything behind it
 * in its partition, until the next `send` to that partition or `retry`.
 *
 * @example
 * const driver = new TestDriver(bookings)
 * await driver.send(requests, [booking])
 * expect(driver.received(hotelBookings)).toEqual([...])
 */
export class TestDriver {
  readonly clock: VirtualClock
  readonly ports: MemoryPorts
  readonly #plan: Plan
  readonly #runners = new Map<string, StageRunner>()
  readonly #logs = new Map<string, Log>()
  readonly #options: RunnerOptions

  constructor(topology: Topology, options: RunnerOptions & { readonly nowMs?: number } = {}) {
    this.#plan = plan(topology)
    this.clock = new VirtualClock(options.nowMs)
    this.ports = memoryPorts({ clock: this.clock })
    this.#options = options
  }

  /** Sends values as JSON; strings and bytes are sent as they are where the source reads `text()` or `bytes()`. */
  async send<I>(source: SourceHandle<I>, values: readonly I[], options: SendOptions<I> = {}): Promise<void> {
    const { name } = source.declaration.format
    const asJson = name !== 'text' && name !== 'bytes'
    const plain = values.map((value) => (asJson ? Buffer.from(JSON.stringify(value)) : payloadBytes(value)))
    const payloads = name === 'json+gzip' ? plain.map((payload) => gzipSync(payload)) : plain
    await this.#append(
      source.name,
      options.partition,
      payloads,
      values.map((value) => options.key?.(value)),
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
    for (const log of this.#logs.values()) await this.#run(log)
  }

  /** How many records of a source wait to be tried again. */
  pending<I>(source: SourceHandle<I>): number {
    return [...this.#logs.values()]
      .filter((log) => log.source === source.name)
      .reduce((sum, log) => sum + log.pending.length, 0)
  }

  /** What a sink received, in order. */
  received<T>(sink: SinkHandle<T>): readonly T[] {
    return this.ports.received(sink)
  }

  /** The dead letters, in order. */
  get deadLetters(): readonly DeadLetter[] {
    return this.ports.deadLettered
  }

  /** Moves processing time on, and lets background refreshes that are under way come to their end. */
  async advanceProcessingTime(duration: { readonly ms: number }): Promise<void> {
    this.clock.advance(duration.ms)
    for (const runner of this.#runners.values()) await runner.settled()
  }

  async #append(
    source: string,
    partition = 'shard-0',
    payloads: readonly (Uint8Array | null)[],
    keys: readonly (string | undefined)[],
  ): Promise<void> {
    const id = `${source}/${partition}`
    const log = this.#logs.get(id) ?? { source, partition, pending: [], sent: 0 }
    this.#logs.set(id, log)
    for (const [i, payload] of payloads.entries()) {
      const position = String(log.sent++)
      log.pending.push(
        new SourceRecord({
          source,
          partition,
          position,
          arrivalTimeMs: this.clock.nowMs(),
          key: keys[i] ?? 'key',
          payload,
        }),
      )
    }
    await this.#run(log)
  }

  async #run(log: Log): Promise<void> {
    if (log.pending.length === 0) return
    const batch = [{ partition: log.partition, records: log.pending }]
    const result: BatchResult = await this.#runner(log.source).run(batch, {
      deadlineMs: this.clock.nowMs() + invocationMs,
    })
    log.pending = [...(result.failures[0]?.notDone ?? [])]
  }

  #runner(source: string): StageRunner {
    const known = this.#runners.get(source)
    if (known) return known
    if (!this.#plan.stages.some((stage) => stage.name === source)) {
      throw new ConfigurationError(
        `topology "${this.#plan.topology}" has no source "${source}": send to one of its own.`,
      )
    }
    const runner = new StageRunner(this.#plan.topology, stageNamed(this.#plan, source), this.ports, this.#options)
    this.#runners.set(source, runner)
    return runner
  }
}
