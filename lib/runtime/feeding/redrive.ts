/**
 * Dead letters of a feeding stage on their way through its steps once more.
 *
 * Invariants (cited by test/runtime/feeding/redrive.test.ts)
 * 1. They are stepped beside the log: progress of partitions is neither read nor written, so nothing is skipped, moved or held up by
 *    them.
 * 2. An output to a keyed stage travels in a redrive frame, under an identity that follows from the record's coordinates and
 *    the place of the output. Its key takes that identity once, however often the record is redriven.
 * 3. Sinks are sent to, and dead letters written, only when all frames were taken. So a dead letter says rightly what the
 *    record has done to keyed state: of the phase `sink`, all of it.
 * 4. A record that has done that already goes to the sinks alone, and a dead letter of this redrive says so again.
 * 5. A record that was given up in an older generation is dropped: the reset since then has it read again, or counts without it. Its
 *    frames carry the generation, so that they are dropped where the reset comes between. One that goes to the sinks alone changes no
 *    state, so it goes.
 */
import { isRetryable, isTerminal } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import { failureAt, type PartitionBatch, type PartitionFailure, rest } from '../batch.ts'
import { deadLetterIdOf, deadLetterOf, later, type Redrive } from '../dead-letter.ts'
import { DecodeError, leftOut } from '../decode.ts'
import type { FramePublisher } from '../frames/publisher.ts'
import { redriveFrames } from '../frames/redrive-frames.ts'
import { outOfTime, type Stop } from '../lane.ts'
import { type GivenUp, Outbox } from '../outbox.ts'
import { readGeneration } from '../progress/generation.ts'
import { resetUnderway } from '../progress/open.ts'
import { blankSourceProgress } from '../progress/progress.ts'
import { ImpureStepError, runTwice } from '../purity.ts'
import { endOfTimeMs, isSkewed } from '../skew.ts'
import { openFeeds } from '../stage-parts.ts'
import type { BatchTables } from '../tables.ts'
import type { FeedingParts } from './feeding-batch.ts'

/** Redrives records; the answer is the first that is not done, undefined where all are. */
export async function redriveFeedingBatch(
  parts: FeedingParts,
  batch: PartitionBatch,
  redrive: Redrive,
  tables: BatchTables,
  stop: Stop,
): Promise<PartitionFailure | undefined> {
  const attempt = new RedriveAttempt(parts, batch, redrive, tables, stop)
  const undone = await attempt.run()
  return undone && failureAt(batch, undone.index, undone.error)
}

interface Undone {
  readonly index: number
  readonly error: unknown
}

class RedriveAttempt {
  readonly #parts: FeedingParts
  readonly #records: readonly SourceRecord[]
  readonly #redrive: Redrive
  readonly #tables: BatchTables
  readonly #stop: Stop
  readonly #outbox: Outbox
  /** Records that a RetryableError stopped before all their lookup keys were known. */
  readonly #returning = new Map<SourceRecord, unknown>()

  constructor(parts: FeedingParts, batch: PartitionBatch, redrive: Redrive, tables: BatchTables, stop: Stop) {
    this.#parts = parts
    this.#records = rest(batch.records, 0)
    this.#redrive = redrive
    this.#tables = tables
    this.#stop = stop
    this.#outbox = new Outbox({
      ...parts,
      // What its senders know of the log is not asked: redrive frames have neither claims nor marks.
      feeds: openFeeds(parts, batch.partition, blankSourceProgress),
      tables,
      deadLetterOf: (index, failure) => this.#deadLetter(index, failure),
    })
  }

  async run(): Promise<Undone | undefined> {
    if (await this.#isOutdated()) return undefined
    await this.#learnLookups()
    const halt = this.#stepAll()
    try {
      await this.#publish()
    } catch (error) {
      return { index: 0, error }
    }
    const through = { markMs: Number.NEGATIVE_INFINITY, completeThrough: 0, firstOrdinal: 0 }
    const refused = await this.#outbox.deliver(this.#stop, through)
    return refused ? { index: refused.ordinal, error: refused.error } : halt
  }

  /** Whether the application was reset since the records were given up; throws a RetryableError while it is being reset. */
  async #isOutdated(): Promise<boolean> {
    const { store, stage, ports } = this.#parts
    const { generation: of = 1, applied } = this.#redrive
    if (applied) return false
    const now = await readGeneration(store, stage.name, this.#stop.signal)
    if (of > now.generation || (of === now.generation && now.isHeld === true)) throw resetUnderway(stage.name)
    if (of === now.generation) return false
    ports.metrics.count('redrives-dropped', this.#records.length)
    ports.logger.warn('redriven records were given up before a reset and are dropped', {
      records: this.#records.length,
      generation: of,
      generationNow: now.generation,
    })
    return true
  }

  /** One call per lookup table for all keys of the records. */
  async #learnLookups(): Promise<void> {
    const { stage, decode, program } = this.#parts
    const steps = stage.tables.filter(({ kind }) => kind === 'lookup').length
    if (steps === 0) return
    const learn = () => {
      for (const record of this.#records) {
        try {
          const value = decode(record)
          if (value !== leftOut) program.runToLookups(value, record, this.#outbox.target)
        } catch (error) {
          if (error instanceof ImpureStepError) throw error
          // What throws here throws again, and is dealt with, when the record is stepped.
          if (isRetryable(error)) this.#returning.set(record, error)
        }
      }
    }
    await this.#tables.loadLookups(learn, steps * stage.nodes.length + 1, this.#stop.signal)
  }

  #stepAll(): Undone | undefined {
    const { clock } = this.#parts.ports
    for (const [index, record] of this.#records.entries()) {
      if (clock.nowMs() >= this.#stop.atMs) return { index, error: outOfTime() }
      const undone = this.#step(index, record)
      if (undone) return undone
    }
    return undefined
  }

  /** Tries one record until it is through or given up; nobody but us counts how often it failed. */
  #step(index: number, record: SourceRecord): Undone | undefined {
    for (let attempt = 1; ; attempt++) {
      try {
        this.#run(index, record)
        return undefined
      } catch (error) {
        if (error instanceof ImpureStepError) throw error
        this.#outbox.rewind()
        if (isRetryable(error)) return { index, error }
        this.#parts.ports.metrics.count('attempts-failed', 1)
        const [phase, cause] = error instanceof DecodeError ? [error.phase, error.cause] : (['step', error] as const)
        const isFinal = error instanceof DecodeError || isTerminal(error) || attempt >= this.#parts.attempts
        if (isFinal) return this.#giveUp(index, { error: cause, phase, attempts: attempt })
      }
    }
  }

  #run(index: number, record: SourceRecord): void {
    const { ports, program, decode } = this.#parts
    const { target } = this.#outbox
    const ownMarkMs = this.#redrive.ownMarkMs ?? Number.NEGATIVE_INFINITY
    const place = { number: index, ownMarkMs, origin: record, redrive: deadLetterIdOf(record), outputs: 0 }
    this.#outbox.begin(index, place)
    if (this.#returning.has(record)) throw this.#returning.get(record)
    const value = decode(record)
    if (value === leftOut) return
    if (isSkewed(record, this.#parts.stage.source)) place.ownMarkMs = endOfTimeMs
    const run = () => program.run(value, record, target)
    if (ports.checksPurity) {
      runTwice({
        run,
        takeBack: () => this.#outbox.rewind(),
        changes: () => undefined,
        setTrace: (trace) => {
          target.trace = trace
        },
      })
    } else run()
    this.#outbox.settle('')
  }

  #giveUp(index: number, failure: GivenUp): Undone | undefined {
    try {
      this.#outbox.giveUp(index, failure)
      return undefined
    } catch (error) {
      return { index, error }
    }
  }

  #deadLetter(index: number, failure: GivenUp) {
    const { topology, stage, ports } = this.#parts
    const record = this.#records[index] as SourceRecord
    const where = { topology, stage: stage.name, failedAtMs: ports.clock.nowMs() }
    const { ownMarkMs, applied, generation } = this.#redrive
    const more = { ownMarkMs, ...(applied && { applied }), ...later(generation) }
    return { entry: deadLetterOf(record, failure, where, more), record }
  }

  /** Takes the outputs to keyed stages out of their lanes, and sends them where the record has not done so already. */
  async #publish(): Promise<void> {
    const { feeds = [] } = this.#outbox.target
    for (const [i, lane] of feeds.entries()) {
      const outputs = lane.take()
      if (outputs.length === 0 || this.#redrive.applied) continue
      const schemaVersion = this.#parts.stage.feeds[i]?.keyBy.schema.version ?? 1
      const frames = redriveFrames(outputs, { schemaVersion, ...later(this.#redrive.generation) })
      const publisher = this.#parts.publishers[i] as FramePublisher
      if (this.#stop.isOver()) throw outOfTime()
      const inTime = publisher.publish(frames, this.#stop.signal).then(() => true)
      if (!(await Promise.race([inTime, this.#stop.late]))) throw outOfTime()
      this.#parts.ports.metrics.count('frames-out', frames.length)
    }
  }
}
