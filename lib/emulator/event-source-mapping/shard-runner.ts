/**
 * One shard of a mapping: reads ahead within bounds, filters, spreads records over the lanes and saves how far it is.
 *
 * Invariants:
 * 1. The saved position never passes a record that is not done (see ShardProgress) and is written by one save at a time.
 * 2. Reading goes on after the last record that was read, whatever failed in between.
 * 3. `run` says `drained` only after the checkpoint that says so is saved.
 */
import { describeError } from '../../core/errors.ts'
import { Doorbell } from './doorbell.ts'
import { Lane, type LaneContext, type LaneStatus } from './lane.ts'
import type { Checkpoint, ReadPosition, ShardRead, ShardReader, SourceRecord } from './ports.ts'
import { type PendingRecord, ShardProgress } from './progress.ts'
import { backoffMs } from './retry.ts'

/** A shard as a display shows it. */
export interface ShardStatus {
  readonly shardId: string
  /**
   * `retrying`: the function fails; `blocked`: the source cannot be read, the checkpoint cannot be saved or the function cannot be
   * run. Both come with a reason and go on trying.
   */
  readonly state: 'waiting-for-parents' | 'running' | 'retrying' | 'blocked' | 'drained' | 'stopped'
  readonly reason: string | undefined
  /** Everything up to this sequence number is done and saved. */
  readonly position: string | undefined
  /** Records read and not yet done. */
  readonly unfinished: number
  /** How far the last read was behind the tip; `undefined` before the first. */
  readonly millisBehindLatest: number | undefined
  /** Age of the oldest record that was read and is not done; 0 when there is none. */
  readonly oldestUnfinishedAgeMs: number
  readonly lanes: readonly LaneStatus[]
}

export interface ShardRunnerOptions extends Omit<LaneContext, 'bell' | 'hasEnded' | 'isHeldUp' | 'commit'> {
  readonly reader: ShardReader
  readonly accepts: (record: SourceRecord) => boolean
  readonly startAt: ReadPosition
  /** Keeps the shard's checkpoint. */
  save(checkpoint: Checkpoint): Promise<void>
}

export class ShardRunner {
  readonly #options: ShardRunnerOptions
  readonly #bell = new Doorbell()
  readonly #progress = new ShardProgress()
  readonly #lanes: readonly Lane[]
  #nextPosition: ReadPosition
  #millisBehindLatest: number | undefined
  #bufferedRecords = 0
  #bufferedBytes = 0
  #hasEnded = false
  #isDrained = false
  #savedPosition: string | undefined
  #saving: Promise<void> | undefined
  #sourceProblem: string | undefined
  #checkpointProblem: string | undefined

  constructor(options: ShardRunnerOptions) {
    this.#options = options
    this.#nextPosition = options.startAt
    const context: LaneContext = {
      ...options,
      bell: this.#bell,
      hasEnded: () => this.#hasEnded,
      isHeldUp: (lane) => this.#isHeldUp(lane),
      commit: (records) => this.#commit(records),
    }
    const { parallelizationFactor } = options.settings
    this.#lanes = Array.from({ length: parallelizationFactor }, (_, index) => new Lane(index, context))
  }

  /** Lets every waiting loop look again: after a stop, a pause or a resumption. */
  ring(): void {
    this.#bell.ring()
  }

  status(): ShardStatus {
    const { shardId, clock } = this.#options
    const lanes = this.#lanes.map((lane) => lane.status())
    const failing = lanes.find((lane) => lane.wasNotRun && lane.failures > 0) ?? lanes.find((lane) => lane.failures > 0)
    const oldest = this.#progress.oldestUnfinished
    return {
      shardId,
      state: this.#state(failing),
      reason: this.#checkpointProblem ?? this.#sourceProblem ?? failing?.reason,
      position: this.#savedPosition,
      unfinished: this.#bufferedRecords,
      millisBehindLatest: this.#millisBehindLatest,
      oldestUnfinishedAgeMs: oldest === undefined ? 0 : Math.max(0, clock.nowMs() - oldest.arrivalMs),
      lanes,
    }
  }

  #state(failing: LaneStatus | undefined): ShardStatus['state'] {
    if (this.#isDrained) return 'drained'
    if (this.#checkpointProblem !== undefined || this.#sourceProblem !== undefined) return 'blocked'
    if (failing !== undefined) return failing.wasNotRun ? 'blocked' : 'retrying'
    return this.#options.isStopping() ? 'stopped' : 'running'
  }

  /** Works until the mapping stops or the shard is drained. */
  async run(): Promise<'drained' | 'stopped'> {
    await Promise.all([this.#read(), ...this.#lanes.map((lane) => lane.run())])
    const isDone = this.#hasEnded && this.#bufferedRecords === 0
    if (!isDone || !(await this.#saveUntilDone(() => this.#checkpoint(true)))) return 'stopped'
    this.#isDrained = true
    return 'drained'
  }

  async #read(): Promise<void> {
    const { reader, settings, clock } = this.#options
    let iterator: string | undefined
    let failures = 0
    while (!this.#options.isStopping()) {
      const limit = Math.min(10_000, settings.maxBufferedRecords - this.#bufferedRecords)
      if (this.#options.isPaused() || limit <= 0 || this.#bufferedBytes >= settings.maxBufferedBytes) {
        await this.#bell.wait(clock)
        continue
      }
      try {
        iterator ??= await this.#open()
        const read = await reader.read(iterator, limit)
        failures = 0
        this.#sourceProblem = undefined
        await this.#take(read)
        if (read.nextIterator === null) break
        iterator = read.nextIterator
        await this.#sleep(read.millisBehindLatest > 0 ? settings.backlogPollIntervalMs : settings.pollIntervalMs)
      } catch (thrown) {
        iterator = undefined
        failures += 1
        this.#sourceProblem = `cannot be read: ${describeError(thrown).message}`
        await this.#sleep(backoffMs(failures, settings))
      }
    }
    this.#bell.ring()
  }

  async #open(): Promise<string> {
    const { reader, shardId, clock } = this.#options
    const openedMs = clock.nowMs()
    const iterator = await reader.open(shardId, this.#nextPosition)
    // A second LATEST would skip what arrived since the first.
    if (this.#nextPosition.at === 'latest') this.#nextPosition = { at: 'timestamp', timestampMs: openedMs }
    return iterator
  }

  async #take(read: ShardRead): Promise<void> {
    const { accepts, counters, format, shardId } = this.#options
    this.#millisBehindLatest = read.millisBehindLatest
    this.#hasEnded = read.nextIterator === null
    for (const record of read.records) {
      const isAccepted = accepts(record)
      const eventBytes = isAccepted ? format.eventBytes(record, shardId) : 0
      const pending: PendingRecord = { ...record, eventBytes, isDone: !isAccepted }
      this.#progress.add(pending)
      this.#nextPosition = { at: 'after', sequenceNumber: record.sequenceNumber }
      counters.polledEvents += 1
      if (!isAccepted) {
        counters.filteredOutEvents += 1
        continue
      }
      this.#bufferedRecords += 1
      this.#bufferedBytes += eventBytes
      this.#laneFor(record.partitionKey).offer(pending)
    }
    this.#bell.ring()
    await this.#save()
  }

  #laneFor(partitionKey: string): Lane {
    const { laneOf, parallelizationFactor } = this.#options.settings
    const index = laneOf(partitionKey, parallelizationFactor)
    const lane = this.#lanes[index]
    if (lane !== undefined) return lane
    throw new RangeError(`emulation.laneOf gave ${index}: give an integer from 0 to ${parallelizationFactor - 1}.`)
  }

  #isHeldUp(lane: Lane): boolean {
    if (this.#options.settings.failingLane === 'blocks-lane') return false
    return this.#lanes.some((other) => other !== lane && other.isRetrying)
  }

  async #commit(records: readonly PendingRecord[]): Promise<void> {
    this.#progress.finish(records)
    await this.#save()
    this.#bufferedRecords -= records.length
    for (const record of records) this.#bufferedBytes -= record.eventBytes
    this.#bell.ring()
  }

  /** Saves the position where it has moved; several callers share a save. */
  async #save(): Promise<void> {
    while (this.#progress.position !== this.#savedPosition) {
      this.#saving ??= this.#saveUntilDone(() => this.#checkpoint(false)).then(() => {
        this.#saving = undefined
      })
      await this.#saving
      if (this.#checkpointProblem !== undefined) return
    }
  }

  #checkpoint(drained: boolean): Checkpoint {
    const sequenceNumber = this.#progress.position
    if (sequenceNumber !== undefined) return { position: { at: 'after', sequenceNumber }, drained }
    const { startAt } = this.#options
    return { position: startAt.at === 'latest' ? { at: 'trim-horizon' } : startAt, drained }
  }

  /** Tries until the checkpoint is saved; when the mapping stops meanwhile, once more. False when it is not saved. */
  async #saveUntilDone(checkpoint: () => Checkpoint): Promise<boolean> {
    const { settings } = this.#options
    for (let failures = 1; ; failures += 1) {
      const isLast = this.#options.isStopping()
      const position = this.#progress.position
      try {
        await this.#options.save(checkpoint())
        this.#savedPosition = position
        this.#checkpointProblem = undefined
        return true
      } catch (thrown) {
        this.#checkpointProblem = `its checkpoint cannot be saved: ${describeError(thrown).message}`
        if (isLast) return false
        await this.#sleep(backoffMs(failures, settings))
      }
    }
  }

  /** Waits the whole time, unless the mapping stops. */
  async #sleep(ms: number): Promise<void> {
    const { clock } = this.#options
    const endMs = clock.nowMs() + ms
    while (!this.#options.isStopping() && clock.nowMs() < endMs) await this.#bell.wait(clock, endMs - clock.nowMs())
  }
}
