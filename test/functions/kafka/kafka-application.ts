/**
 * An application on Kafka: its real handler, invoked by the emulated mappings over the model of the log, with the production adapters
 * for frames and partitions. State and sinks are in memory and outlive the containers, which are killed; partitions are given out
 * anew while batches are in flight; sinks refuse things for a while. Everything is drawn from a seed.
 */
import { type StreamHandler, streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { kafkaFramePublisher } from '../../../lib/aws/kafka/frame-publisher-kafka.ts'
import { kafkaLineage } from '../../../lib/aws/kafka/kafka-lineage.ts'
import { RetryableError } from '../../../lib/core/errors.ts'
import {
  type InvocationOutcome,
  KafkaEventSourceMapping,
  kafkaFormat,
  modelGroup,
  modelTopic,
  withTimeLimit,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import { KafkaModel, type NewRecord } from '../../../lib/emulator/kafka/index.ts'
import { type KeyedStage, type Plan, plan } from '../../../lib/plan/plan.ts'
import type { HandlerPorts } from '../../../lib/runtime/ports.ts'
// The handler imports it when the first batch comes: here that is to take no time.
import '../../../lib/runtime/runner.ts'
import { announceEvent, lambdaContext, memoryPorts } from '../../../lib/testing/index.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import type { Topology } from '../../../lib/topology/topology.ts'
import { Container, killsOf } from './containers.ts'
import { PacedClock, producerOf, readerOf } from './kafka-cluster.ts'

export type Mode = 'on-demand' | 'provisioned'

export interface KafkaApplicationOptions {
  readonly mode: Mode
  readonly seed: number
  /** Of each source. @default 3 */
  readonly partitions?: number
  /** Of the topic of each keyed stage. @default 4 */
  readonly internalPartitions?: number
  /** In ms since 1970 UTC. */
  readonly nowMs: number
  /** Whether containers die, partitions are given out anew and sinks refuse. @default true */
  readonly isDisturbed?: boolean
}

const timeoutMs = 60_000

interface Served {
  readonly container: Container
  readonly handler: StreamHandler
}

export class KafkaApplication {
  readonly clock: PacedClock
  readonly kafka: KafkaModel
  readonly memory: ReturnType<typeof memoryPorts>
  readonly random: Random
  readonly mappings = new Map<string, KafkaEventSourceMapping>()
  /** What was done to it. */
  readonly met = { invocations: 0, failures: 0, kills: 0, rebalances: 0 }
  readonly #topology: Topology
  readonly #planned: Plan
  readonly #options: KafkaApplicationOptions
  readonly #mayDie: () => boolean
  readonly #served = new Map<string, Served>()
  #announcer: Served | undefined
  #announcedMs = 0

  constructor(topology: Topology, options: KafkaApplicationOptions) {
    this.#topology = topology
    this.#planned = plan(topology)
    this.#options = options
    this.random = new Random(options.seed)
    this.clock = new PacedClock(options.nowMs)
    this.kafka = new KafkaModel({ clock: this.clock })
    this.memory = memoryPorts({ clock: this.clock, kafka: options.mode })
    this.memory.serve?.(this.#planned)
    const isDisturbed = options.isDisturbed ?? true
    this.#mayDie = killsOf(this.random.fork('kills'), isDisturbed ? 0.02 : 0, 12)
    const { partitions = 3, internalPartitions = 4 } = options
    for (const { name, kind } of this.#planned.stages) {
      this.kafka.createTopic(name, { partitions: kind === 'keyed' ? internalPartitions : partitions, retentionMs: -1 })
      this.mappings.set(name, this.#mapping(name))
    }
    if (isDisturbed) this.#refuseSome()
  }

  /** Produces values of a source, each to the partition that is said. */
  produce(topic: string, records: readonly (NewRecord & { readonly partition: number })[]): void {
    for (const { partition, ...record } of records) this.kafka.produce({ topic, partition, records: [record] })
  }

  async start(): Promise<void> {
    for (const mapping of this.mappings.values()) await mapping.start()
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([...this.mappings.values()].map((mapping) => mapping.stop()))
    await this.clock.pass(5 * 60_000)
    await stopped
  }

  /** Lets time pass, with a round of the announcer each minute and a rebalance now and then. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.nowMs() + ms
    while (this.clock.nowMs() < endMs) {
      await this.clock.pass(Math.min(1_000, endMs - this.clock.nowMs()))
      if (this.#options.isDisturbed !== false && this.random.chance(0.05) && this.met.rebalances < 10) {
        this.met.rebalances += 1
        this.random.pick([...this.mappings.values()]).rebalance(this.random.integer(1, 3))
      }
      if (this.clock.nowMs() - this.#announcedMs >= 60_000) await this.#announce()
    }
  }

  /** Lets time pass until all that is in the topics is done. */
  async settle(): Promise<void> {
    for (let seconds = 0; seconds < 3_600; seconds += 1) {
      await this.pass(1_000)
      if (this.#isQuiet()) return
    }
    const stuck = [...this.mappings].map(([name, mapping]) => [name, mapping.status().pollers])
    throw new Error(`it does not come to rest: ${JSON.stringify(stuck)}`)
  }

  #isQuiet(): boolean {
    return [...this.mappings.keys()].every((name) => {
      const { partitions, topicId } = this.kafka.describeTopic(name)
      const committed = this.kafka.committedOffsets(name, name)
      return Array.from({ length: partitions }, (_, partition) => partition).every((partition) => {
        const offset = committed.get(partition) ?? 0
        return this.kafka.fetch({ topicId, partition, offset, maxRecords: 1 }).records.length === 0
      })
    })
  }

  #mapping(name: string): KafkaEventSourceMapping {
    const { kafka, clock, random } = this
    return new KafkaEventSourceMapping({
      settings: {
        uuid: name,
        functionArn: `arn:aws:lambda:us-east-1:000000000000:function:${name}`,
        startingPosition: 'TRIM_HORIZON',
        mode: this.#options.mode,
        pollers: random.integer(1, 3),
        batchSize: random.integer(1, 40),
        functionResponseTypes: ['ReportBatchItemFailures'],
        bisectBatchOnFunctionError: true,
        emulation: { pollIntervalMs: 1_000 },
      },
      format: kafkaFormat({
        topic: name,
        bootstrapServers: 'b-1.test:9098',
        retriedItems: random.pick(['reported', 'and-later'] as const),
      }),
      reader: modelTopic(kafka, name),
      group: modelGroup(kafka, name, name),
      invoker: withTimeLimit({ invoke: (event) => this.#invoke(name, event) }, timeoutMs, clock),
      clock,
    })
  }

  async #invoke(name: string, event: unknown): Promise<InvocationOutcome> {
    this.met.invocations += 1
    const { container, handler } = this.#container(name)
    // The event has been JSON on its way, and so has the answer.
    const given = JSON.parse(JSON.stringify(event))
    try {
      const answer = await container.invocation(handler(given, lambdaContext({ remainingMs: timeoutMs })))
      return { kind: 'answered', payload: JSON.parse(JSON.stringify(answer)) }
    } catch (error) {
      this.met.failures += 1
      return { kind: 'function-error', reason: (error as Error).message }
    } finally {
      if (container.isDead) this.met.kills += 1
    }
  }

  #container(name: string): Served {
    const warm = this.#served.get(name)
    if (warm && !warm.container.isDead && !this.random.chance(0.02)) return warm
    const cold = this.#serve(new Container(this.#mayDie))
    this.#served.set(name, cold)
    return cold
  }

  async #announce(): Promise<void> {
    this.#announcedMs = this.clock.nowMs()
    this.#announcer ??= this.#serve(new Container(() => false))
    const announced = this.#announcer.handler(announceEvent, lambdaContext({ remainingMs: timeoutMs }))
    await this.clock.pass(1)
    await announced
  }

  #serve(container: Container): Served {
    const { memory, clock, random, kafka } = this
    const reader = container.port(readerOf(kafka))
    const producer = container.port(producerOf(kafka))
    const drawn = random.fork('delays')
    const delays = { clock, logger: memory.logger, random: () => drawn.next() }
    const ports: HandlerPorts = {
      ...memory,
      sink: (name) => container.port(memory.sink(name) as object) as ReturnType<HandlerPorts['sink']>,
      deadLetters: container.port(memory.deadLetters),
      state: (stage) => {
        const store = memory.state(stage)
        return store && container.port(store)
      },
      lineage: (stage) => kafkaLineage({ reader, topic: stage, ...delays }),
      frames: (stage) => {
        const keyed = this.#planned.stages.find((one): one is KeyedStage => one.name === stage && one.kind === 'keyed')
        if (keyed === undefined) return undefined
        const { partitions } = kafka.describeTopic(stage)
        return kafkaFramePublisher({ producer, topic: stage, partitions, ...delays })
      },
    }
    return { container, handler: streamHandler(this.#topology, { ports }) }
  }

  /** Sinks refuse a value now and then for a while, as one does that is throttled. */
  #refuseSome(): void {
    const drawn = this.random.fork('refusals')
    let left = 20
    for (const { name } of this.#planned.graph.sinks) {
      this.memory.refuse({ name } as never, () => {
        if (left <= 0 || !drawn.chance(0.05)) return undefined
        left -= 1
        return { status: 'retry', error: new RetryableError('the sink is throttled', { code: 'throttled' }) }
      })
    }
  }
}
