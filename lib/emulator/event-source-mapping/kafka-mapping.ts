/**
 * An event source mapping on a Kafka topic: what Lambda runs between a cluster and a function.
 *
 * Invariants:
 * 1. A partition belongs to one poller, and a poller has one batch in flight, which may hold records of all its partitions: so of a
 *    partition at most one batch is in flight, and its records leave in the order of their offsets.
 * 2. What the group has committed wins over the starting position, in every partition for itself.
 * 3. A commit says that everything before it was delivered, filtered out or given up; it is made after that.
 * 4. A rebalance takes every partition from its poller. What is in flight then ends, is not committed, and is delivered again to the
 *    poller that has the partition next, which may happen at the same time.
 * 5. A partition that was added begins at the starting position [I]: with LATEST, what came before it was noticed is missed.
 * 6. A topic that was made again is read from what its group has committed of it, which is nothing.
 * 7. After `stop` nothing is in flight and everything that is done is committed, or the status says why it is not.
 *
 * Of each batch lane.ts has the rules, which are those of Kinesis; a poller is a lane. Queue mode (share groups) is not here.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-kafka.html
 */
import type { Clock } from '../../core/clock.ts'
import { type MappingCounters, newCounters } from './counters.ts'
import { Doorbell } from './doorbell.ts'
import { compileFilters } from './filter.ts'
import type { KafkaFormat, KafkaSourceRecord } from './kafka-format.ts'
import type { ConsumerGroup, TopicReader } from './kafka-ports.ts'
import { type KafkaMappingSettings, type ResolvedKafkaSettings, resolveKafkaSettings } from './kafka-settings.ts'
import { Lane, type LaneContext, type LaneStatus } from './lane.ts'
import { LogSource, type LogSourceOptions } from './log-source.ts'
import { type LifeStatus, MappingLife } from './mapping-life.ts'
import type { Checkpoint, FailureDestination, Invoker, ReadPosition, SourceFormat } from './ports.ts'
import type { PendingRecord } from './progress.ts'

export interface KafkaMappingOptions {
  readonly settings: KafkaMappingSettings
  readonly format: KafkaFormat
  readonly reader: TopicReader
  readonly group: ConsumerGroup
  readonly invoker: Invoker
  readonly clock: Clock
  /** @default none: what is given up is counted and dropped, as on AWS */
  readonly onFailure?: FailureDestination
}

/** A partition as a display shows it. */
export interface TopicPartitionStatus {
  readonly partition: number
  readonly poller: number
  /** The committed offset, that of the next record to deliver, as far as this mapping has committed; undefined before. */
  readonly committed: number | undefined
  /** Records read and not yet done. */
  readonly unfinished: number
  /** Why it cannot be read or not be committed. */
  readonly reason: string | undefined
}

/** A mapping as a display shows it. */
export interface KafkaMappingStatus extends LifeStatus {
  readonly counters: Readonly<MappingCounters>
  readonly pollers: readonly LaneStatus[]
  readonly partitions: readonly TopicPartitionStatus[]
}

/** What the topic was when partitions were given out. */
interface Topic {
  readonly topicId: string
  readonly partitions: readonly string[]
}

/**
 * @example
 * const mapping = new KafkaEventSourceMapping({
 *   settings: { uuid, functionArn, startingPosition: 'TRIM_HORIZON', mode: 'on-demand' },
 *   format: kafkaFormat({ topic: 'orders', bootstrapServers }),
 *   reader: modelTopic(kafka, 'orders'), group: modelGroup(kafka, 'orders', uuid), invoker, clock,
 * })
 * await mapping.start()
 * await mapping.stop()
 */
export class KafkaEventSourceMapping {
  readonly #options: KafkaMappingOptions
  readonly #settings: ResolvedKafkaSettings
  readonly #accepts: LogSourceOptions['accepts']
  readonly #counters = newCounters()
  readonly #life: MappingLife
  #generation: Generation | undefined
  #pollers: number
  #isRebalanceDue = false

  /** Throws a ConfigurationError for a setting out of AWS's range or a filter pattern that AWS refuses. */
  constructor(options: KafkaMappingOptions) {
    this.#options = options
    this.#settings = resolveKafkaSettings(options.settings, options.onFailure !== undefined)
    this.#pollers = this.#settings.pollers
    // Every record comes from the reader of a topic, so the format is given its own kind of them.
    this.#accepts = compileFilters(this.#settings.patterns, options.format as SourceFormat)
    this.#life = new MappingLife(options.clock, this.#settings, {
      look: () => this.#look(),
      isLookDue: () => this.#isRebalanceDue,
      problem: 'the topic cannot be read with its group',
      ring: () => this.#generation?.bell.ring(),
    })
  }

  /** Begins; reading follows by itself. Starting a running mapping changes nothing. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /** Ends reading, lets invocations in flight finish, commits, and resolves. Throws only for a bug in Millrace. */
  async stop(): Promise<void> {
    try {
      await this.#life.stop()
    } finally {
      this.#generation = undefined
    }
  }

  /** Lets invocations in flight finish and begins nothing new; batches and retry budgets stay as they are. */
  pause(): void {
    this.#life.pause()
  }

  /** Goes on where {@link pause} held. */
  resume(): void {
    this.#life.resume()
  }

  /**
   * A fault to inject: gives the partitions out anew, as the group does whenever AWS scales, replaces or updates its pollers. Retry
   * budgets begin anew. `pollers` says how many there are from now on.
   */
  rebalance(pollers: number = this.#pollers): void {
    this.#pollers = pollers
    this.#isRebalanceDue = true
    this.#life.bell.ring()
  }

  status(): KafkaMappingStatus {
    return {
      ...this.#life.status(),
      counters: { ...this.#counters },
      pollers: this.#generation?.lanes.map((lane) => lane.status()) ?? [],
      partitions: this.#generation?.statuses() ?? [],
    }
  }

  /** Looks at the topic, and gives the partitions out where it has changed or a rebalance is due. */
  async #look(): Promise<void> {
    const topic = await this.#topic()
    if (this.#isRebalanceDue || !this.#generation?.serves(topic)) await this.#begin(topic)
  }

  async #topic(): Promise<Topic> {
    const { reader } = this.#options
    const topicId = await reader.topicId()
    return { topicId, partitions: (await reader.listShards()).map(({ shardId }) => shardId) }
  }

  /** Joins the group anew: from then on nothing of the generation before counts. */
  async #begin(topic: Topic): Promise<void> {
    const { group } = this.#options
    const store = await group.join(() => this.rebalance())
    // Only now: where the group could not be joined, that is still to be done.
    this.#isRebalanceDue = false
    this.#generation?.end()
    const committed = await store.load()
    const starts = new Map<string, ReadPosition>()
    for (const partition of topic.partitions)
      starts.set(partition, committed.get(partition)?.position ?? (await this.#startOf(partition)))
    if (this.#life.isStopping) return
    const generation = new Generation({
      mapping: this.#options,
      topic,
      settings: this.#settings,
      pollers: Math.min(this.#pollers, topic.partitions.length),
      counters: this.#counters,
      accepts: this.#accepts,
      starts,
      save: (partition, checkpoint) => store.save(partition, checkpoint),
      isStopping: () => this.#life.isStopping,
      isPaused: () => this.#life.isPaused,
    })
    this.#generation = generation
    for (const loop of generation.run()) this.#life.run(loop)
  }

  /** The starting position as an offset, so that a later read of LATEST does not skip what came since. */
  async #startOf(partition: string): Promise<ReadPosition> {
    const { startingPosition, startingPositionTimestampMs: timestampMs = 0 } = this.#settings
    const places = {
      TRIM_HORIZON: { at: 'trim-horizon' },
      LATEST: { at: 'latest' },
      AT_TIMESTAMP: { at: 'timestamp', timestampMs },
    } as const
    const offset = await this.#options.reader.offsetAt(partition, places[startingPosition])
    return { at: 'after', sequenceNumber: String(offset - 1) }
  }
}

interface GenerationOptions extends Pick<LogSourceOptions, 'counters' | 'accepts' | 'isStopping' | 'isPaused'> {
  readonly mapping: KafkaMappingOptions
  readonly topic: Topic
  readonly settings: ResolvedKafkaSettings
  readonly pollers: number
  readonly starts: ReadonlyMap<string, ReadPosition>
  save(partition: string, checkpoint: Checkpoint): Promise<void>
}

/** The partitions as they are given out until the next rebalance: a source for each, and the pollers that deliver from them. */
class Generation {
  readonly bell = new Doorbell()
  readonly lanes: readonly Lane[]
  readonly #topic: Topic
  readonly #sources = new Map<string, LogSource>()
  #isOver = false

  constructor(options: GenerationOptions) {
    const { mapping, topic, settings, counters, accepts, isPaused } = options
    const { clock, reader, invoker, onFailure } = mapping
    this.#topic = topic
    const format = mapping.format as SourceFormat
    const isStopping = () => this.#isOver || options.isStopping()
    const context: LaneContext = {
      ...{ shardId: mapping.format.topic, settings, format, invoker, onFailure, clock, counters, isStopping, isPaused },
      bell: this.bell,
      hasEnded: () => false,
      isHeldUp: () => false,
      commit: (records) => this.#commit(records),
    }
    this.lanes = Array.from({ length: options.pollers }, (_, index) => new Lane(index, context))
    for (const [partition, startAt] of options.starts) {
      const source = new LogSource(
        {
          ...{ shardId: partition, settings, format, reader, clock, counters, accepts, startAt, isStopping, isPaused },
          save: (checkpoint) => options.save(partition, checkpoint),
        },
        { bell: this.bell, offer: (record) => this.#laneOf(partition)?.offer(record) },
      )
      this.#sources.set(partition, source)
    }
  }

  /** Whether it is at work, on the topic as it is. */
  serves({ topicId, partitions }: Topic): boolean {
    return !this.#isOver && topicId === this.#topic.topicId && partitions.length === this.#topic.partitions.length
  }

  run(): readonly Promise<void>[] {
    return [...this.#sources.values()].map((source) => source.read()).concat(this.lanes.map((lane) => lane.run()))
  }

  /** Another generation has begun: what is in flight ends, and nothing follows it. */
  end(): void {
    this.#isOver = true
    this.bell.ring()
  }

  statuses(): readonly TopicPartitionStatus[] {
    return [...this.#sources].map(([partition, { position, unfinished, problem }]) => ({
      partition: Number(partition),
      poller: Number(partition) % this.lanes.length,
      committed: position === undefined ? undefined : Number(position) + 1,
      unfinished,
      reason: problem,
    }))
  }

  /** Which poller has which partition is not documented [I]: they take turns. */
  #laneOf(partition: string): Lane | undefined {
    return this.lanes[Number(partition) % this.lanes.length]
  }

  /** Each partition's offset is committed for itself. */
  async #commit(records: readonly PendingRecord[]): Promise<void> {
    const byPartition = Map.groupBy(records, (record) =>
      String((record as PendingRecord & KafkaSourceRecord).partition),
    )
    await Promise.all([...byPartition].map(([partition, own]) => this.#sources.get(partition)?.commit(own)))
  }
}
