/**
 * An application on the broker: its bundled handlers in worker processes, invoked by emulated mappings that read real topics and commit
 * to real groups. Sources, the topics of keyed stages, sinks and dead letters are topics; state is in the embedded DynamoDB of this
 * process, behind HTTP, so it outlives every worker.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openGroupOffsets } from '../../../lib/aws/kafka/group-offsets.ts'
import { openProducer } from '../../../lib/aws/kafka/kafka-client.ts'
import { kafkaPasses } from '../../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaMessage, KafkaProducer, KafkaReader, KafkaRecord } from '../../../lib/aws/kafka/kafka-port.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { Closing } from '../../../lib/local/closing.ts'
import { bundleHandler } from '../../../lib/local/run/handler-bundle.ts'
import { deadLetterOutput } from '../../../lib/local/run/resources.ts'
import { environmentOf } from '../../../lib/local/run/stage.ts'
import { ensureStateTable, localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { type DynamoService, startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { type Plan, plan, type StagePlan, tableNameOf } from '../../../lib/plan/plan.ts'
import type { StageBindings } from '../../../lib/plan/stage-bindings.ts'
import type { Topology } from '../../../lib/topology/topology.ts'
import { admin, never, patiently, plain, reader, recordsIn } from '../broker.ts'
import { Announcing } from './announcing.ts'
import { type BrokerStage, type Mode, startBrokerStage } from './broker-stage.ts'
import { until } from './until.ts'

export interface BrokerApplicationOptions {
  readonly topology: Topology
  /** The file of its handler, from the root of the project. */
  readonly entry: string
  readonly mode: Mode
  /** Records, or frames, of an invocation. */
  readonly batchSize: number
}

export const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const
/** Of each source, until more are added. */
export const sourcePartitions = 3
const internalPartitions = 4
const root = join(__dirname, '../../..')
let made = 0

/** A producer of a source waits for a broker that is away. */
const producerDeadlineMs = 180_000

const directory = mkdtempSync(join(tmpdir(), 'millrace-systems-'))
const bundles = new Map<string, Promise<string>>()
afterAll(() => rmSync(directory, { recursive: true }))

/** One bundle of a stage serves both modes. */
function bundleOf(entry: string, stage: StagePlan, bindings: StageBindings): Promise<string> {
  const made = bundles.get(stage.name)
  if (made) return made
  const bundle = bundleHandler({ entry: join(root, entry), directory: join(directory, stage.name), bindings })
  bundles.set(stage.name, bundle)
  return bundle
}

interface Topic {
  readonly topic: string
  readonly partitions: number
  readonly topicId: string
}

export class BrokerApplication {
  readonly planned: Plan
  readonly mode: Mode
  readonly dynamodb: DynamoService
  readonly stages: BrokerStage[] = []
  readonly #options: BrokerApplicationOptions
  readonly #closing: Closing
  readonly #topics = new Map<string, Topic>()
  readonly #stopping = new AbortController()
  #announcing: Announcing | undefined
  readonly #reader: KafkaReader = reader()
  readonly #offsets = openGroupOffsets(plain)

  private constructor(options: BrokerApplicationOptions, dynamodb: DynamoService, closing: Closing) {
    this.#options = options
    this.mode = options.mode
    this.planned = plan(options.topology)
    this.dynamodb = dynamodb
    this.#closing = closing
  }

  /** Makes its topics and tables and starts its workers; `start` begins to invoke them. */
  static async open(options: BrokerApplicationOptions): Promise<BrokerApplication> {
    const closing = new Closing()
    const dynamodb = await startDynamoService()
    closing.defer(() => dynamodb.close())
    const application = new BrokerApplication(options, dynamodb, closing)
    try {
      await application.#prepare()
      return application
    } catch (error) {
      await closing.close()
      throw error
    }
  }

  async #prepare(): Promise<void> {
    const { planned, dynamodb, mode } = this
    const { entry, batchSize } = this.#options
    await this.#makeTopics()
    this.#closing.defer(() => this.#offsets.close())
    const client = localDynamoDBClient(dynamodb.url)
    this.#closing.defer(() => client.destroy())
    for (const { kind, name } of planned.stages)
      if (kind !== 'stateless') await ensureStateTable(client, systemClock, tableNameOf(planned.topology, name))
    const endpoints = { kinesis: 'http://127.0.0.1:1', dynamodb: dynamodb.url }
    const started = planned.stages.map(async (stage) => {
      const bindings = this.#bindingsOf(stage)
      const handlerFile = await bundleOf(entry, stage, bindings)
      const environment = environmentOf({ bindings, endpoints })
      const running = await startBrokerStage({
        ...{ stage, mode, batchSize, handlerFile, environment },
        topic: this.topicOf(stage.name),
      })
      this.#closing.defer(() => running.stop())
      return running
    })
    this.stages.push(...(await Promise.all(started)))
    const announcing = new Announcing(planned, dynamodb.url, (stage) => this.place(stage))
    this.#closing.defer(() => announcing.stop())
    this.#announcing = announcing
  }

  async #makeTopics(): Promise<void> {
    const { topology, stages, graph } = this.planned
    const prefix = `${topology}-${this.mode}-${process.pid}-${systemClock.nowMs()}-${++made}`
    const make = async (name: string, partitions: number, own = {}) => {
      // Outputs have their event time, and these are of a day that the retention of a topic takes away at once.
      const configs = { 'retention.ms': '-1', ...own }
      const topic = `${prefix}-${name.replace(' ', '-')}`
      const { id } = await admin().createTopic(topic, { partitions, configs }, never())
      this.#topics.set(name, { topic, partitions, topicId: id })
    }
    const internal = { 'max.message.bytes': '1048704', 'message.timestamp.type': 'LogAppendTime' }
    for (const { name, kind } of stages)
      await (kind === 'keyed' ? make(name, internalPartitions, internal) : make(name, sourcePartitions))
    for (const { name } of graph.sinks) await make(name, 2)
    await make(deadLetterOutput, 1)
  }

  /** The topic of a source, a keyed stage, a sink or the dead letters. */
  topicOf(name: string): string {
    return (this.#topics.get(name) as Topic).topic
  }

  /** The topic of a stage, as what writes to it is told. */
  place(stage: string) {
    const { topic, partitions, topicId } = this.#topics.get(stage) as Topic
    const isKeyed = this.planned.stages.some(({ name, kind }) => name === stage && kind === 'keyed')
    return { topic, cluster, topicId, ...(isKeyed && { partitions }) }
  }

  #bindingsOf({ name, kind, sinks, feeds }: StagePlan): StageBindings {
    const { topology } = this.planned
    return {
      formatVersion: 1,
      topology,
      sources: [{ name, kind: 'kafka', ...this.place(name), mode: this.mode }],
      sinks: sinks.map((sink) => ({ name: sink, kind: 'kafka', topic: this.topicOf(sink), cluster })),
      deadLetters: { kind: 'kafka', topic: this.topicOf(deadLetterOutput), cluster },
      ...(kind === 'stateless' ? {} : { state: { tableName: tableNameOf(topology, name) } }),
      feeds: feeds.map(({ stage, slots }) => ({
        ...{ stage, slots, ...this.place(stage), partitions: internalPartitions },
      })),
    }
  }

  /** Begins to invoke. */
  async start(): Promise<void> {
    for (const { mapping } of this.stages) await mapping.start()
    this.#announcing?.start()
  }

  /** Writes to a source, in order. Waits for a broker that is away. */
  async produce(source: string, messages: readonly KafkaMessage[]): Promise<void> {
    const topic = this.topicOf(source)
    // A new one each time: it knows the partitions that there are now.
    const writer = openProducer(plain, { sendDeadlineMs: producerDeadlineMs })
    try {
      for (let from = 0; from < messages.length; from += 50)
        await this.#send(writer, topic, messages.slice(from, from + 50))
    } finally {
      await writer.close()
    }
  }

  async #send(writer: KafkaProducer, topic: string, messages: readonly KafkaMessage[]): Promise<void> {
    for (;;) {
      try {
        return await writer.send(topic, messages, this.#stopping.signal)
      } catch (failure) {
        // What fails within the deadline has not been sent: the topic could not be looked up.
        if (!kafkaPasses(failure) || this.#stopping.signal.aborted) throw failure
      }
    }
  }

  /** Says that nothing comes any more, waits until every window is closed, and until all of it is done. */
  async end(): Promise<void> {
    await this.settle()
    this.#announcing?.endInput()
    await until(
      () => this.#announcing?.isSettled === true,
      () => this.status(),
    )
    await this.settle()
  }

  /** Waits until the groups have committed all that is in the topics: first those of the sources. */
  async settle(): Promise<void> {
    // Stages come after those that feed them.
    for (const { name } of this.planned.stages) {
      const isDone = async () => {
        const { committed, ends } = await this.offsets(this.topicOf(name))
        return ends.every((end, partition) => (committed.get(partition) ?? 0n) >= end)
      }
      await until(isDone, () => this.status())
    }
  }

  /** What a group has committed of its topic at the broker, and where the partitions of that end. */
  async offsets(topic: string): Promise<{ committed: ReadonlyMap<number, bigint>; ends: readonly bigint[] }> {
    return await patiently(async () => {
      const partitions = (await this.#reader.topic(topic, never()))?.partitions ?? 0
      const committed = await this.#offsets.committed(topic, topic, partitions)
      const ends: bigint[] = []
      for (let partition = 0; partition < partitions; partition += 1)
        ends.push((await this.#reader.offsetOf(topic, partition, 'latest', never())) ?? 0n)
      return { committed, ends }
    })
  }

  /** How many records a topic has, and how many of them the group of its name has committed. */
  async count(name: string): Promise<{ records: number; committed: number }> {
    const { committed, ends } = await this.offsets(this.topicOf(name))
    const sum = (offsets: Iterable<bigint>) => [...offsets].reduce((total, offset) => total + Number(offset), 0)
    return { records: sum(ends), committed: sum(committed.values()) }
  }

  /** All that a topic holds, by partition and in order. */
  async records(name: string): Promise<readonly KafkaRecord[]> {
    const topic = this.topicOf(name)
    const { ends } = await this.offsets(topic)
    const all: KafkaRecord[] = []
    for (const partition of ends.keys()) all.push(...(await recordsIn(topic, partition, this.#reader)))
    return all
  }

  /** For the message of what does not come. */
  status(): unknown {
    return this.stages.map(({ name, mapping, workers, failures, lines }) => {
      const { state, reason, pollers, partitions } = mapping.status()
      const working = workers.workers().map(({ id, state: at, invocations }) => `${id} ${at} ${invocations}`)
      return {
        ...{ name, state, reason, pollers, partitions, working, waiting: workers.waiting() },
        failures: failures.slice(-3),
        lines: lines.filter((line) => !line.includes('CloudWatchMetrics')).slice(-3),
        announcer: this.#announcing?.lastFailure,
      }
    })
  }

  stop(): Promise<void> {
    this.#stopping.abort()
    return this.#closing.close()
  }
}
