/**
 * One batch of one source partition on its way through a stage that feeds keyed stages. The invariants stand in
 * feeding-runner.ts.
 */
import { ConfigurationError, isRetryable, isTerminal } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import type { FeedingStage } from '../../plan/plan.ts'
import { Lateness } from '../../time/lateness.ts'
import { failureAt, type Halt, isBehind, moved, type PartitionBatch, type PartitionFailure, rest } from '../batch.ts'
import { deadLetterOf, later } from '../dead-letter.ts'
import { DecodeError, type Decoder, leftOut } from '../decode.ts'
import { endOf } from '../frames/position.ts'
import { Pace } from '../invocation.ts'
import { outOfTime, type Stop } from '../lane.ts'
import { haltBeyond, NotedProgress } from '../noted-progress.ts'
import { errorFields, type GivenUp, Outbox } from '../outbox.ts'
import { type OpenedProgress, openSourceProgress } from '../progress/open.ts'
import type { SentPositions, SourceProgress } from '../progress/progress.ts'
import { sourceFormat } from '../progress/progress-format.ts'
import { ImpureStepError, runTwice } from '../purity.ts'
import { endOfTimeMs, isSkewed } from '../skew.ts'
import { openFeeds, type StageParts } from '../stage-parts.ts'
import { killed, skipped, verdictOf } from '../suspect.ts'
import type { BatchTables } from '../tables.ts'

export interface FeedingParts extends StageParts<FeedingStage> {
  readonly decode: Decoder
}

/** What is true when an entry of the log, a record or an aggregate of several, has been stepped. */
type EntryEnd = Pick<SourceProgress, 'number' | 'largestEventTimeMs' | 'largestArrivedAtMs'> & {
  readonly completed: string
}

/** Runs a batch of one partition; the answer is where it goes on, undefined where all of it is done. */
export async function runFeedingBatch(
  parts: FeedingParts,
  batch: PartitionBatch,
  tables: BatchTables,
  stop: Stop,
): Promise<PartitionFailure | undefined> {
  const { store, lineage, stage, log } = parts
  const { partition } = batch
  const found = await openSourceProgress({ store, stage: stage.name, partition, lineage, signal: stop.signal })
  const { completed } = found.progress
  const records = rest(batch.records, 0)
  const first = records.findIndex(({ position }) => isBehind(position, completed))
  const opened = await log.check(found, partition, first !== 0, stop.signal)
  if (first < 0) return undefined
  const attempt = new FeedingAttempt(parts, partition, records.slice(first), opened, tables, stop)
  const { done, error } = await attempt.run()
  const index = records.findIndex(({ position }) => isBehind(position, done))
  return index < 0 ? undefined : failureAt(batch, index, error ?? moved())
}

class FeedingAttempt {
  readonly #parts: FeedingParts
  readonly #partition: string
  readonly #records: readonly SourceRecord[]
  readonly #tables: BatchTables
  readonly #stop: Stop
  readonly #outbox: Outbox
  readonly #progress: NotedProgress<SourceProgress>
  /** Behind each record that was stepped, the largest event time so far, and when its record arrived. */
  readonly #largestMs: number[] = []
  readonly #arrivedMs: number[] = []
  /** Records that a RetryableError stopped before all their lookup keys were known. */
  readonly #returning = new Map<SourceRecord, unknown>()
  readonly #pace: Pace
  readonly #lateness = new Lateness()
  #doneThrough: number
  /** What was sent, as of `#doneThrough`. */
  #sent: SentPositions
  #largestEventTimeMs: number
  #largestArrivedAtMs: number

  constructor(
    parts: FeedingParts,
    partition: string,
    records: readonly SourceRecord[],
    opened: OpenedProgress<SourceProgress>,
    tables: BatchTables,
    stop: Stop,
  ) {
    this.#parts = parts
    this.#partition = partition
    this.#records = records
    this.#tables = tables
    this.#stop = stop
    const { progress } = opened
    this.#pace = new Pace(parts.ports.clock, stop)
    this.#doneThrough = progress.doneThrough
    this.#sent = progress.sent
    this.#largestEventTimeMs = progress.largestEventTimeMs
    this.#largestArrivedAtMs = progress.largestArrivedAtMs
    this.#progress = new NotedProgress(parts, partition, opened, sourceFormat)
    this.#outbox = new Outbox({
      ...parts,
      feeds: openFeeds(parts, partition, progress),
      tables,
      deadLetterOf: (ordinal, failure) => this.#deadLetter(ordinal, failure),
    })
  }

  async run(): Promise<{ readonly done: string | undefined; readonly error: unknown }> {
    const last = this.#progress.now.number + this.#records.length
    const lastNumber = this.#progress.suspect({ lastNumber: last, loneArrivalMs: this.#loneArrivalMs() })
    // Before anything is decoded: that may kill, too.
    await this.#progress.note(this.#stop)
    const halt = (await this.#tryAll(lastNumber)) ?? haltBeyond(lastNumber, last)
    return this.#finish(halt)
  }

  /** Where a port fails, progress is still written: for what is done, and so that no note of this attempt stays. */
  async #tryAll(lastNumber: number): Promise<Halt | undefined> {
    try {
      await this.#learnLookups(lastNumber)
      return await this.#stepAll(lastNumber)
    } catch (error) {
      if (error instanceof ConfigurationError) throw error
      return { number: this.#doneThrough + 1, error, counts: false }
    }
  }

  /**
   * When the batch's only entry arrived, a record or an aggregate of several; undefined where it has several entries. A batch that is
   * never bisected is suspected as one: then it is when its first entry did.
   */
  #loneArrivalMs(): number | undefined {
    const [entry] = this.#records as [SourceRecord]
    const isAlone = this.#records.every(({ position }) => position === entry.position)
    return isAlone || !this.#parts.isBisected ? entry.arrivalTimeMs : undefined
  }

  /** One call per lookup table for all keys of what is to be stepped: the others may hold one that kills. */
  async #learnLookups(lastNumber: number): Promise<void> {
    const { stage } = this.#parts
    const steps = stage.tables.filter(({ kind }) => kind === 'lookup').length
    if (steps === 0) return
    const { target } = this.#outbox
    const { number, doneThrough, failing } = this.#progress.now
    const toStep = this.#records.filter((_, i) => {
      const its = number + i + 1
      return (
        its > doneThrough && its <= lastNumber && verdictOf(failing, its, this.#parts.attempts) !== 'give-up-unseen'
      )
    })
    const learn = () => {
      for (const record of toStep) {
        if (this.#returning.has(record)) continue
        try {
          const value = this.#counts(record) ? this.#parts.decode(record) : leftOut
          if (value !== leftOut) this.#parts.program.runToLookups(value, record, target)
        } catch (error) {
          if (error instanceof ImpureStepError) throw error
          // What throws here throws again, and is dealt with, when the record is stepped.
          if (isRetryable(error)) this.#returning.set(record, error)
        }
      }
    }
    await this.#tables.loadLookups(learn, steps * stage.nodes.length + 1, this.#stop.signal)
  }

  async #stepAll(lastNumber: number): Promise<Halt | undefined> {
    const { maxPendingOutputs } = this.#parts
    const progress = this.#progress.now
    let firstWaiting = 0
    for (let i = 0; i < this.#records.length; i++) {
      const number = progress.number + i + 1
      if (number > lastNumber) break
      const halt = this.#pace.isOver() ? { number, error: outOfTime(), counts: false } : this.#step(i, number)
      if (halt) return (await this.#deliver(firstWaiting, number - 1)) ?? halt
      this.#largestMs.push(this.#largestEventTimeMs)
      this.#arrivedMs.push(this.#largestArrivedAtMs)
      if (this.#outbox.target.pending < maxPendingOutputs && !this.#pace.isDue()) continue
      const refused = await this.#deliver(firstWaiting, number)
      if (refused) return refused
      firstWaiting = i + 1
      this.#pace.restart()
    }
    return this.#deliver(firstWaiting, Math.min(lastNumber, progress.number + this.#records.length))
  }

  /** Steps one record, or takes it for a dead letter; a halt where it can be neither now. */
  #step(index: number, number: number): Halt | undefined {
    const record = this.#records[index] as SourceRecord
    const isDone = number <= this.#progress.now.doneThrough
    const ownMarkMs = this.#ownMarkMs(index)
    const verdict = verdictOf(this.#progress.now.failing, number, this.#parts.attempts)
    if (verdict === 'give-up-unseen')
      return this.#giveUp(index, number, { error: killed(), phase: 'step', attempts: this.#parts.attempts })
    const place = { number, ownMarkMs, origin: record, redrive: undefined, outputs: 0 }
    this.#outbox.begin(index, place)
    try {
      // One that is done already still counts with its event time towards what comes behind it in its entry.
      const value = this.#decode(record)
      if (isDone) return undefined
      if (value !== leftOut && isSkewed(record, this.#parts.stage.source)) {
        place.ownMarkMs = endOfTimeMs
        this.#parts.ports.metrics.count('records-skewed', 1)
      }
      if (this.#returning.has(record)) throw this.#returning.get(record)
      this.#run(record, value)
      if (verdict === 'step') return undefined
      // It did not throw this time, but others may already act on the verdict.
      this.#outbox.rewind()
      return this.#giveUp(index, number, { error: skipped(), phase: 'step', attempts: this.#parts.attempts })
    } catch (error) {
      if (error instanceof ImpureStepError) throw error
      this.#outbox.rewind()
      // What could not be decoded then cannot be decoded now; only what may come right counts with its event time after all.
      if (isDone) return isRetryable(error) ? { number, error, counts: false } : undefined
      return this.#failed(index, number, error, verdict === 'give-up')
    }
  }

  /** A record that arrived before the time of the last reset takes its number, and nothing else. */
  #counts({ arrivalTimeMs }: SourceRecord): boolean {
    const { startsAtMs } = this.#progress.now
    return startsAtMs === undefined || arrivalTimeMs >= startsAtMs
  }

  #decode(record: SourceRecord): unknown {
    if (!this.#counts(record)) return leftOut
    const value = this.#parts.decode(record)
    if (value === leftOut || isSkewed(record, this.#parts.stage.source)) return value
    if (record.eventTimeMs > this.#largestEventTimeMs) {
      this.#largestEventTimeMs = record.eventTimeMs
      this.#largestArrivedAtMs = record.arrivalTimeMs
    }
    if (this.#parts.stage.source.eventTime) this.#lateness.add(this.#largestEventTimeMs - record.eventTimeMs)
    return value
  }

  #run(record: SourceRecord, value: unknown): void {
    if (value === leftOut) return
    const { target } = this.#outbox
    const { program, ports } = this.#parts
    if (ports.checksPurity) {
      runTwice({
        run: () => program.run(value, record, target),
        takeBack: () => this.#outbox.rewind(),
        changes: () => undefined,
        setTrace: (trace) => {
          target.trace = trace
        },
      })
    } else program.run(value, record, target)
    this.#outbox.settle('')
  }

  #failed(index: number, number: number, error: unknown, isLast: boolean): Halt | undefined {
    const { attempts, ports } = this.#parts
    if (isRetryable(error)) return { number, error, counts: false }
    ports.metrics.count('attempts-failed', 1)
    const [phase, cause] = error instanceof DecodeError ? [error.phase, error.cause] : (['step', error] as const)
    if (error instanceof DecodeError || isTerminal(error))
      return this.#giveUp(index, number, { error: cause, phase, attempts: 1 })
    if (isLast) return this.#giveUp(index, number, { error: cause, phase, attempts })
    return { number, error, counts: true }
  }

  #giveUp(index: number, number: number, failure: GivenUp): Halt | undefined {
    try {
      this.#outbox.giveUp(index, failure)
      return undefined
    } catch (error) {
      return { number, error, counts: false }
    }
  }

  #deadLetter(index: number, failure: GivenUp) {
    const { topology, stage, ports } = this.#parts
    const record = this.#records[index] as SourceRecord
    const where = { topology, stage: stage.name, failedAtMs: ports.clock.nowMs() }
    const markMs = this.#ownMarkMs(index)
    return {
      entry: deadLetterOf(record, failure, where, {
        ownMarkMs: Number.isFinite(markMs) ? markMs : null,
        ...later(this.#progress.now.generation),
      }),
      record,
    }
  }

  /** The own mark of a record, all before which were stepped: what came before it says what it is late for. */
  #ownMarkMs(index: number): number {
    const largestMs = this.#largestMs[index - 1] ?? this.#progress.now.largestEventTimeMs
    return largestMs - this.#parts.stage.source.outOfOrdernessMs
  }

  /** The last entry of the log that is done as a whole: only where one ends can the partition go on. */
  #entryEnd(): EntryEnd | undefined {
    const { number } = this.#progress.now
    for (let i = Math.min(this.#largestMs.length, this.#doneThrough - number) - 1; i >= 0; i--) {
      const { position } = this.#records[i] as SourceRecord
      if (this.#records[i + 1]?.position === position) continue
      return {
        completed: position,
        number: number + i + 1,
        largestEventTimeMs: this.#largestMs[i] as number,
        largestArrivedAtMs: this.#arrivedMs[i] as number,
      }
    }
    return undefined
  }

  async #deliver(firstOrdinal: number, completeThrough: number): Promise<Halt | undefined> {
    const progress = this.#progress.now
    const markMs = progress.largestEventTimeMs - this.#parts.stage.source.outOfOrdernessMs
    await this.#progress.clear(completeThrough, this.#stop)
    const refused = await this.#outbox.deliver(this.#stop, { markMs, completeThrough, firstOrdinal })
    const done = refused === undefined ? completeThrough : progress.number + refused.ordinal
    if (done > this.#doneThrough) {
      this.#doneThrough = done
      this.#sent = this.#outbox.sent(endOf(done))
    }
    return refused && { number: done + 1, error: refused.error, counts: false }
  }

  async #finish(halt: Halt | undefined): Promise<{ readonly done: string | undefined; readonly error: unknown }> {
    const progress = this.#progress.now
    const end = this.#entryEnd()
    const doneThrough = Math.max(this.#doneThrough, end?.number ?? 0)
    const failing = this.#progress.failingAfter(halt, doneThrough)
    const next: SourceProgress = {
      ...progress,
      ...end,
      doneThrough,
      sent: this.#sent,
      failing,
      suspect: this.#progress.suspectAfter(doneThrough),
    }
    this.#report(halt, end)
    const isFurther = end !== undefined || doneThrough > progress.doneThrough
    const isNews = isFurther || failing !== progress.failing || next.suspect !== progress.suspect
    const { completed: done } = isNews ? await this.#progress.finish(next, this.#stop.closing) : progress
    if (this.#progress.ownVersion !== undefined && end !== undefined) {
      const markMs = next.largestEventTimeMs - this.#parts.stage.source.outOfOrdernessMs
      const upstream = { partition: this.#partition, generation: next.generation }
      await this.#parts.marks.tell(upstream, markMs, this.#stop.closing)
    }
    return { done, error: halt?.error }
  }

  #report(halt: Halt | undefined, end: EntryEnd | undefined): void {
    const { metrics, logger, clock } = this.#parts.ports
    const done = (end?.number ?? this.#progress.now.number) - this.#progress.now.number
    metrics.count('records-in', done)
    for (const { latenessMs, records } of this.#lateness.counts()) {
      metrics.gauge('event-lateness', latenessMs, 'milliseconds', records)
    }
    if (end) {
      const markMs = end.largestEventTimeMs - this.#parts.stage.source.outOfOrdernessMs
      if (Number.isFinite(markMs)) metrics.gauge('watermark-lag', clock.nowMs() - markMs, 'milliseconds')
    }
    if (halt === undefined) return
    metrics.count('records-returned', this.#records.length - done)
    const { number } = halt
    logger.warn('a partition goes back to its source from here', {
      partition: this.#partition,
      number,
      ...errorFields(halt.error),
    })
  }
}
