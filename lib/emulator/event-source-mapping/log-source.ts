/**
 * One shard or partition as a mapping reads it: ahead within bounds, filtered, and with its position saved as lanes get done.
 *
 * Invariants:
 * 1. The saved position never passes a record that is not done (see ShardProgress) and is written by one save at a time.
 * 2. Reading goes on after the last record that was read, whatever failed in between.
 */
import type { Clock } from '../../core/clock.ts'
import { describeError } from '../../core/errors.ts'
import type { MappingCounters } from './counters.ts'
import type { Doorbell } from './doorbell.ts'
import type { Checkpoint, ReadPosition, ShardRead, ShardReader, SourceFormat, SourceRecord } from './ports.ts'
import { type PendingRecord, ShardProgress } from './progress.ts'
import { backoffMs } from './retry.ts'
import type { ResolvedSettings } from './settings.ts'

export interface LogSourceOptions {
  /** The shard, or the number of the partition in decimal digits. */
  readonly shardId: string
  readonly settings: ResolvedSettings
  readonly format: SourceFormat
  readonly reader: ShardReader
  readonly clock: Clock
  readonly counters: MappingCounters
  readonly accepts: (record: SourceRecord) => boolean
  readonly startAt: ReadPosition
  /** Keeps the checkpoint. */
  save(checkpoint: Checkpoint): Promise<void>
  isStopping(): boolean
  isPaused(): boolean
}

/** Where the records go that were read, and who is told. */
export interface LogSourceUser {
  /** Rung whenever anything changes. */
  readonly bell: Doorbell
  /** Takes a record that is to be delivered. */
  offer(record: PendingRecord): void
}

export class LogSource {
  readonly #options: LogSourceOptions
  readonly #user: LogSourceUser
  readonly #progress = new ShardProgress()
  #nextPosition: ReadPosition
  #millisBehindLatest: number | undefined
  #bufferedRecords = 0
  #bufferedBytes = 0
  #hasEnded = false
  #savedPosition: string | undefined
  #saving: Promise<void> | undefined
  #sourceProblem: string | undefined
  #checkpointProblem: string | undefined

  constructor(options: LogSourceOptions, user: LogSourceUser) {
    this.#options = options
    this.#user = user
    this.#nextPosition = options.startAt
  }

  /** No record will follow those that were read. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Records read and not yet done. */
  get unfinished(): number {
    return this.#bufferedRecords
  }

  /** Everything up to this sequence number is done and saved. */
  get position(): string | undefined {
    return this.#savedPosition
  }

  /** How far the last read was behind the tip; undefined before the first. */
  get millisBehindLatest(): number | undefined {
    return this.#millisBehindLatest
  }

  /** Why the source cannot be read or its checkpoint not be saved. */
  get problem(): string | undefined {
    return this.#checkpointProblem ?? this.#sourceProblem
  }

  /** Age of the oldest record that was read and is not done; 0 when there is none. */
  get oldestUnfinishedAgeMs(): number {
    const oldest = this.#progress.oldestUnfinished
    return oldest === undefined ? 0 : Math.max(0, this.#options.clock.nowMs() - oldest.arrivalMs)
  }

  /** Reads until the mapping stops or the shard ends. */
  async read(): Promise<void> {
    const { reader, settings, clock } = this.#options
    let iterator: string | undefined
    let failures = 0
    while (!this.#options.isStopping()) {
      const limit = Math.min(10_000, settings.maxBufferedRecords - this.#bufferedRecords)
      if (this.#options.isPaused() || limit <= 0 || this.#bufferedBytes >= settings.maxBufferedBytes) {
        await this.#user.bell.wait(clock)
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
    this.#user.bell.ring()
  }

  /** Marks records as done and saves how far that is. Resolves without saving only when the mapping stops meanwhile. */
  async commit(records: readonly PendingRecord[]): Promise<void> {
    this.#progress.finish(records)
    await this.#save()
    this.#bufferedRecords -= records.length
    for (const record of records) this.#bufferedBytes -= record.eventBytes
    this.#user.bell.ring()
  }

  /** Saves that all of the shard is done. False where the mapping stopped before it could. */
  async saveDrained(): Promise<boolean> {
    if (!this.#hasEnded || this.#bufferedRecords > 0) return false
    return this.#saveUntilDone(() => this.#checkpoint(true))
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
    const { accepts, counters, format, shardId, clock } = this.#options
    this.#millisBehindLatest = read.millisBehindLatest
    this.#hasEnded = read.nextIterator === null
    for (const record of read.records) {
      const isAccepted = accepts(record)
      const eventBytes = isAccepted ? format.eventBytes(record, shardId) : 0
      const pending: PendingRecord = { ...record, eventBytes, readMs: clock.nowMs(), isDone: !isAccepted }
      this.#progress.add(pending)
      this.#nextPosition = { at: 'after', sequenceNumber: record.sequenceNumber }
      counters.polledEvents += 1
      if (!isAccepted) {
        counters.filteredOutEvents += 1
        continue
      }
      this.#bufferedRecords += 1
      this.#bufferedBytes += eventBytes
      this.#user.offer(pending)
    }
    this.#user.bell.ring()
    await this.#save()
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
  #sleep(ms: number): Promise<void> {
    return this.#user.bell.waitOut(this.#options.clock, ms, () => this.#options.isStopping())
  }
}
