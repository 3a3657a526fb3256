/**
 * An event source mapping on a stream that is read by shards: what Lambda runs between Kinesis and a function.
 *
 * Invariants:
 * 1. A shard is read only after every parent that the stream still holds is drained and that is saved.
 * 2. A shard with a checkpoint starts after it, whatever the starting position says.
 * 3. With LATEST, shards that appear after the first listing start at their beginning: their records are all newer.
 * 4. After `stop` nothing is in flight and everything that is done is saved, or the status says why it is not.
 * 5. A shard has one poller that begins invocations and saves; one that was failed over only ends what it has in flight.
 *
 * What AWS has around a mapping and this has not, since there is no Lambda API here to register one with:
 * - The answers of create, update and get: their 202 with `Creating` and `No records processed`, the states of a mapping, and the 409
 *   (ResourceConflictException) for a second mapping of one source and function. Who starts mappings sees to it that there is one;
 *   on AWS the stack does. That polling begins some time after the answer is `startDelayMs` of the settings.
 * - Tumbling windows (TumblingWindowInSeconds): they follow arrival time, and lose their state when the stream is resharded. Millrace
 *   has windows of its own, and its constructs refuse these.
 * - Enhanced fan-out: it changes how fast records come, and not which.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
 */
import type { Clock } from '../../core/clock.ts'
import { type MappingCounters, newCounters } from './counters.ts'
import { compileFilters } from './filter.ts'
import { type LifeStatus, MappingLife } from './mapping-life.ts'
import type {
  Checkpoint,
  CheckpointStore,
  FailureDestination,
  Invoker,
  ReadPosition,
  ShardDescription,
  ShardReader,
  SourceFormat,
} from './ports.ts'
import { type MappingSettings, type ResolvedSettings, resolveSettings } from './settings.ts'
import { ShardRunner, type ShardRunnerOptions, type ShardStatus } from './shard-runner.ts'

export interface MappingOptions {
  readonly settings: MappingSettings
  readonly format: SourceFormat
  readonly reader: ShardReader
  readonly invoker: Invoker
  readonly checkpoints: CheckpointStore
  readonly clock: Clock
  /** @default none: what is given up is counted and dropped, as on AWS */
  readonly onFailure?: FailureDestination
}

/** A mapping as a display shows it. */
export interface MappingStatus extends LifeStatus {
  readonly counters: Readonly<MappingCounters>
  /** In the order of the stream's listing. */
  readonly shards: readonly ShardStatus[]
}

interface KnownShard {
  readonly description: ShardDescription
  runner: ShardRunner | undefined
  isDrained: boolean
  isRunning: boolean
}

/**
 * @example
 * const mapping = new EventSourceMapping({
 *   settings: { uuid, functionArn, startingPosition: 'TRIM_HORIZON', batchSize: 500 },
 *   format: kinesisFormat({ streamArn }), reader, invoker, checkpoints, clock,
 * })
 * await mapping.start()
 * console.table(mapping.status().shards)
 * await mapping.stop()
 */
export class EventSourceMapping {
  readonly #options: MappingOptions
  readonly #settings: ResolvedSettings
  readonly #accepts: ShardRunnerOptions['accepts']
  readonly #counters = newCounters()
  readonly #life: MappingLife
  #shards = new Map<string, KnownShard>()
  #checkpoints = new Map<string, Checkpoint>()
  #latestShards = new Set<string>()
  #isListingDue = false

  /** Throws a ConfigurationError for a setting out of AWS's range or a filter pattern that AWS refuses. */
  constructor(options: MappingOptions) {
    this.#options = options
    this.#settings = resolveSettings(options.settings)
    this.#accepts = compileFilters(this.#settings.patterns, options.format)
    this.#life = new MappingLife(options.clock, this.#settings, {
      prepare: () => this.#load(),
      look: () => this.#list(),
      isLookDue: () => this.#isListingDue,
      problem: "the stream's shards cannot be listed",
      ring: () => {
        for (const { runner } of this.#shards.values()) runner?.ring()
      },
    })
  }

  /** Resolves once the checkpoints are loaded; reading begins by itself. Starting a running mapping changes nothing. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /**
   * Ends reading, lets invocations in flight finish, saves, and resolves. A later `start` goes on at the checkpoints; retry
   * budgets begin anew then. Throws only for a bug in Millrace.
   */
  stop(): Promise<void> {
    return this.#life.stop()
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
   * A fault to inject: hands a shard to another poller, as Lambda may at any time. The invocation in flight goes on beside the new
   * poller, which begins after what is saved, or at `from` where an older checkpoint is to be replayed. So records come again,
   * and the effects of the older invocation may land among those of the newer ones: duplicated and out of order. Retry budgets begin
   * anew. A shard that is not being read has no poller, and nothing happens.
   *
   * @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-windows.html "might be processed out of order"
   * @example
   * mapping.failOver('shardId-000000000000', { at: 'trim-horizon' })
   */
  failOver(shardId: string, from?: Checkpoint['position']): void {
    const shard = this.#shards.get(shardId)
    if (shard?.runner === undefined || !shard.isRunning || this.#life.isStopping) return
    const abandoned = shard.runner
    this.#run(shard, from ?? this.#checkpoints.get(shardId)?.position ?? this.#startAt(shardId))
    abandoned.ring()
  }

  status(): MappingStatus {
    return {
      ...this.#life.status(),
      counters: { ...this.#counters },
      shards: [...this.#shards.values()].map((shard) => this.#shardStatus(shard)),
    }
  }

  #shardStatus({ description: { shardId }, runner, isDrained }: KnownShard): ShardStatus {
    if (runner !== undefined) return runner.status()
    const position = this.#checkpoints.get(shardId)?.position
    return {
      shardId,
      state: isDrained ? 'drained' : 'waiting-for-parents',
      reason: undefined,
      position: position?.at === 'after' ? position.sequenceNumber : undefined,
      unfinished: 0,
      millisBehindLatest: undefined,
      oldestUnfinishedAgeMs: 0,
      lanes: [],
    }
  }

  async #load(): Promise<void> {
    this.#checkpoints = new Map(await this.#options.checkpoints.load())
    this.#shards = new Map()
    this.#latestShards = new Set()
  }

  /** Lists the shards, and starts those that may be read. */
  async #list(): Promise<void> {
    this.#isListingDue = false
    const listing = await this.#options.reader.listShards()
    await this.#rememberLatest(listing)
    if (!this.#life.isStopping) this.#adopt(listing)
  }

  /**
   * At the very first listing with LATEST, notes durably which shards it is for. A restart before the first record then goes on from
   * this moment, and not from a later LATEST.
   */
  async #rememberLatest(listing: readonly ShardDescription[]): Promise<void> {
    const { checkpoints, clock } = this.#options
    if (this.#settings.startingPosition !== 'LATEST' || !this.#life.isStarting) return
    if ([...this.#checkpoints.keys()].some((shardId) => !this.#latestShards.has(shardId))) return
    const position = { at: 'timestamp', timestampMs: clock.nowMs() } as const
    // All at once, so that a store that gathers its writes has either all of them or none after a crash.
    const note = async ({ shardId }: ShardDescription) => {
      await checkpoints.save(shardId, { position, drained: false })
      this.#checkpoints.set(shardId, { position, drained: false })
      this.#latestShards.add(shardId)
    }
    await Promise.all(listing.map(note))
  }

  #adopt(listing: readonly ShardDescription[]): void {
    const listed = new Set(listing.map((shard) => shard.shardId))
    for (const [shardId, shard] of this.#shards) {
      if (!listed.has(shardId) && !shard.isRunning) this.#shards.delete(shardId)
    }
    for (const description of listing) {
      const { shardId } = description
      if (this.#shards.has(shardId)) continue
      const isDrained = this.#checkpoints.get(shardId)?.drained ?? false
      this.#shards.set(shardId, { description, runner: undefined, isDrained, isRunning: false })
    }
    for (const shard of this.#shards.values()) {
      if (!shard.isDrained && !shard.isRunning && this.#isReadable(shard.description)) {
        this.#run(shard, this.#startAt(shard.description.shardId))
      }
    }
  }

  /** Parents that the stream no longer holds, and that nobody is reading, do not count. */
  #isReadable({ parentIds }: ShardDescription): boolean {
    return parentIds.every((parentId) => this.#shards.get(parentId)?.isDrained ?? true)
  }

  #run(shard: KnownShard, startAt: ReadPosition): void {
    const { shardId } = shard.description
    const isAbandoned = () => shard.runner !== runner
    const runner: ShardRunner = new ShardRunner({
      ...this.#options,
      settings: this.#settings,
      onFailure: this.#options.onFailure,
      shardId,
      counters: this.#counters,
      accepts: this.#accepts,
      startAt,
      save: async (checkpoint) => {
        if (isAbandoned()) return
        await this.#options.checkpoints.save(shardId, checkpoint)
        this.#checkpoints.set(shardId, checkpoint)
      },
      isStopping: () => this.#life.isStopping || isAbandoned(),
      isPaused: () => this.#life.isPaused,
    })
    shard.runner = runner
    shard.isRunning = true
    const loop = runner.run().then((end) => {
      if (isAbandoned()) return
      shard.isRunning = false
      shard.isDrained = end === 'drained'
      // Its children may be read now; a listing that is on its way may not show them yet.
      this.#isListingDue = true
      this.#life.bell.ring()
    })
    this.#life.run(loop)
  }

  #startAt(shardId: string): ReadPosition {
    const { startingPosition, startingPositionTimestampMs } = this.#settings
    if (this.#latestShards.has(shardId)) return { at: 'latest' }
    const saved = this.#checkpoints.get(shardId)
    if (saved !== undefined) return saved.position
    if (startingPosition !== 'AT_TIMESTAMP') return { at: 'trim-horizon' }
    return { at: 'timestamp', timestampMs: startingPositionTimestampMs ?? 0 }
  }
}
