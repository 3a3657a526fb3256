/**
 * One batch of one partition on its way through a keyed stage. The invariants stand in keyed-runner.ts; the pure steps in
 * line-steps.ts, the drafts of keys in batch-keys.ts, publishing and committing in keyed-flush.ts.
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import { failureAt, type Halt, isBehind, moved, type PartitionBatch, type PartitionFailure, rest } from '../batch.ts'
import { Pace } from '../invocation.ts'
import { outOfTime, type Stop } from '../lane.ts'
import { haltBeyond, NotedProgress } from '../noted-progress.ts'
import { errorFields, type GivenUp, Outbox } from '../outbox.ts'
import type { Line } from '../progress/fold.ts'
import { openKeyedProgress } from '../progress/open.ts'
import { type FiringCut, type KeyedProgress, reachedMarkMs } from '../progress/progress.ts'
import { keyedFormat } from '../progress/progress-format.ts'
import { openFeeds } from '../stage-parts.ts'
import type { BatchTables } from '../tables.ts'
import { BatchKeys } from './batch-keys.ts'
import { DueKeys, type FiringKey, passedBy } from './due-keys.ts'
import { KeyStep } from './key-step.ts'
import { KeyedFlush, TooLarge } from './keyed-flush.ts'
import { hasRecord, type RecordLine, type SteppedLoaded } from './keyed-line.ts'
import { KeyedLog } from './keyed-log.ts'
import type { KeyedParts } from './keyed-parts.ts'
import { firedOutputDeadLetter, lineDeadLetter } from './line-dead-letter.ts'
import { LineSteps, markLagOf } from './line-steps.ts'
import { OperatorStates } from './operator-states.ts'

/** Keys that are loaded, fired and committed at a time where very many fire at one number. */
const mostFiringKeys = 1_000

/** Runs a batch of one partition; the answer is where it goes on, undefined where all of it is done. */
export async function runKeyedBatch(
  parts: KeyedParts,
  batch: PartitionBatch,
  tables: BatchTables,
  stop: Stop,
): Promise<PartitionFailure | undefined> {
  const { store, lineage, stage, log: identity } = parts
  const { partition } = batch
  const records = rest(batch.records, 0)
  const careful = new Set<string>()
  for (;;) {
    const opening = { store, stage: stage.name, partition, lineage, slots: stage.slots, signal: stop.signal }
    const found = await openKeyedProgress(opening)
    const first = records.findIndex(({ position }) => isBehind(position, found.progress.completed))
    const opened = await identity.check(found, partition, first !== 0, stop.signal)
    if (first < 0) return undefined
    try {
      const log = new KeyedLog(records.slice(first), opened.progress, parts)
      const unread = log.foldAll()
      const progress = new NotedProgress(parts, partition, opened, keyedFormat)
      const lastNumber = progress.suspect(log, careful.size > 0)
      const attempt = new KeyedAttempt({ parts, partition, log, progress, lastNumber, tables, stop, careful })
      const { done, error } = await attempt.run(unread)
      const index = records.findIndex(({ position }) => isBehind(position, done))
      return index < 0 ? undefined : failureAt(batch, index, error ?? moved())
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
      for (const key of error.keys) careful.add(key)
    }
  }
}

interface AttemptParts {
  readonly parts: KeyedParts
  readonly partition: string
  readonly log: KeyedLog
  readonly progress: NotedProgress<KeyedProgress>
  /** The last number that is to be stepped. */
  readonly lastNumber: number
  readonly tables: BatchTables
  readonly stop: Stop
  readonly careful: ReadonlySet<string>
}

class KeyedAttempt {
  readonly #parts: KeyedParts
  readonly #partition: string
  readonly #log: KeyedLog
  readonly #progress: NotedProgress<KeyedProgress>
  readonly #lastNumber: number
  readonly #stop: Stop
  readonly #outbox: Outbox
  readonly #steps: LineSteps
  readonly #operatorStates: OperatorStates
  readonly #due: DueKeys
  readonly #keys: BatchKeys
  readonly #flush: KeyedFlush
  readonly #pace: Pace
  /** The last key that fired at the number of another's record. */
  #fired: FiringCut | undefined

  constructor({ parts, partition, log, progress, lastNumber, tables, stop, careful }: AttemptParts) {
    this.#parts = parts
    this.#partition = partition
    this.#log = log
    this.#progress = progress
    this.#lastNumber = lastNumber
    this.#stop = stop
    this.#pace = new Pace(parts.ports.clock, stop)
    const { now } = progress
    const outbox = this.#newOutbox(tables)
    const steps = new LineSteps(parts, outbox, now.failing, (index) => log.watermarkBefore(index), careful)
    const operatorStates = new OperatorStates(parts.stage.operatorStates.size > 0, now.operatorStates)
    const due = new DueKeys(parts, now, stop.signal)
    const { signal } = stop
    const { doneThrough } = now
    const keys = new BatchKeys({
      parts,
      partition,
      log,
      steps,
      operatorStates,
      due,
      outbox,
      careful,
      doneThrough,
      signal,
    })
    this.#outbox = outbox
    this.#steps = steps
    this.#operatorStates = operatorStates
    this.#due = due
    this.#keys = keys
    this.#flush = new KeyedFlush({ parts, log, progress, keys, due, outbox, careful, stop })
  }

  #newOutbox(tables: BatchTables): Outbox {
    const { topology, stage, ports } = this.#parts
    return new Outbox({
      ...this.#parts,
      feeds: openFeeds(this.#parts, this.#partition, this.#progress.now),
      tables,
      deadLetterOf: (index, failure, step) => {
        const line = this.#log.lines[index] as Line
        const where = { topology, stage: stage.name, failedAtMs: ports.clock.nowMs() }
        if (step instanceof KeyStep && step.isOfTimers) {
          return firedOutputDeadLetter({ line, key: step.draft.key, keyHash: step.keyHash }, failure, where)
        }
        const { generation } = this.#progress.now
        return lineDeadLetter(line, this.#log.entries[line.entry] as SourceRecord, failure, where, generation)
      },
    })
  }

  /** `unread` is why the batch ends before its last entry, if it does. */
  async run(unread: Halt | undefined): Promise<{ readonly done: string | undefined; readonly error: unknown }> {
    return this.#finish((await this.#tryAll()) ?? haltBeyond(this.#lastNumber, this.#log.lastNumber) ?? unread)
  }

  /** Where a port fails, progress is still written: for what is done, and so that no note of this attempt stays. */
  async #tryAll(): Promise<Halt | undefined> {
    try {
      // A version that this attempt wrote itself, over a suspect, is still the cache's own.
      await this.#keys.load(this.#progress.openedVersion)
      const last = this.#log.lines.at(-1)
      if (last) await this.#due.find(last)
      await this.#progress.note(this.#stop)
      return await this.#stepAll()
    } catch (error) {
      if (error instanceof TooLarge || error instanceof ConfigurationError) throw error
      this.#flush.failed()
      return { number: this.#flush.doneThrough + 1, error, counts: false }
    }
  }

  /** Awaits nothing where nothing is to be loaded or sent: most lines are stepped in one go. */
  async #stepAll(): Promise<Halt | undefined> {
    const { lines } = this.#log
    const { doneThrough } = this.#progress.now
    let number = doneThrough
    for (let index = 0; index < lines.length; index++) {
      const line = lines[index] as Line
      if (line.number > this.#lastNumber) break
      if (this.#pace.isOver()) {
        return (await this.#send(number)) ?? { number: line.number, error: outOfTime(), counts: false }
      }
      this.#operatorStates.add(line, index, this.#steps)
      if (line.number <= doneThrough) continue
      if (this.#isSendDue(line)) {
        const halt = await this.#send(number)
        if (halt) return halt
        this.#pace.restart()
      }
      const firing = this.#due.take(line)
      const fired = firing.length > 0 ? await this.#fireOthers(line, index, firing, number) : undefined
      const stepped = fired ?? this.#stepLine(line, index)
      const halt = stepped instanceof Promise ? await stepped : stepped
      if (halt) return (await this.#send(number)) ?? halt
      number = line.number
    }
    return this.#send(number)
  }

  #isSendDue(line: Line): boolean {
    if (this.#outbox.target.pending >= this.#parts.maxPendingOutputs || this.#pace.isDue()) return true
    return line.record !== undefined && this.#keys.isFull(line.record.key)
  }

  #send(through: number): Promise<Halt | undefined> {
    return this.#flush.flush(through, this.#fired)
  }

  /** Fires what is due of other keys at a line, in the order of their hashes; a part of them at a time where they are many. */
  async #fireOthers(line: Line, index: number, firing: readonly FiringKey[], done: number): Promise<Halt | undefined> {
    const { mostKeysPerCommit, maxPendingOutputs, ports } = this.#parts
    const others = firing.filter(({ key }) => key !== line.record?.key)
    const keysInPart = Math.min(mostKeysPerCommit, mostFiringKeys)
    for (let from = 0; from < others.length; from += keysInPart) {
      const some = others.slice(from, from + keysInPart).filter(({ keyHash }) => !this.#hasFired(line.number, keyHash))
      await this.#keys.loadMore(some.map(({ key }) => key))
      for (const [i, { key, keyHash }] of some.entries()) {
        const isFull = this.#keys.changed.size >= mostKeysPerCommit || this.#keys.isCarefulAndChanged(key)
        if (isFull || this.#outbox.target.pending >= maxPendingOutputs) {
          const halt = await this.#send(done)
          if (halt) return halt
          // Sending lets go of keys that fired before; of those to come some may be among them.
          await this.#keys.loadMore(some.slice(i).map((next) => next.key))
        }
        if (this.#pace.isOver()) return { number: line.number, error: outOfTime(), counts: false }
        const halt = await this.#keys.fire({ line, index, key, keyHash })
        if (halt) return halt
        this.#fired = { number: line.number, keyHash }
      }
      this.#keys.letGo(some.map(({ key }) => key))
      if (from + keysInPart >= others.length) break
      const halt = await this.#send(done)
      if (halt) return halt
      if (ports.clock.nowMs() >= this.#stop.atMs) return { number: line.number, error: outOfTime(), counts: false }
    }
    return undefined
  }

  #hasFired(number: number, keyHash: string): boolean {
    const { firing } = this.#progress.now
    return firing?.number === number && keyHash <= firing.keyHash
  }

  #stepLine(line: Line, index: number): Halt | undefined | Promise<Halt | undefined> {
    if (line.failure !== undefined)
      return this.#giveUp(line, index, { error: line.failure, phase: 'decode', attempts: 1 })
    if (!hasRecord(line)) return undefined
    if (line.overtaken) this.#parts.ports.metrics.count('records-overtaken', 1)
    const stepped = this.#keys.step(line, index)
    if (stepped === 'done' && line.record.redrive === undefined) return undefined
    return this.#stepped(line, index, stepped)
  }

  async #stepped(
    line: RecordLine,
    index: number,
    outcome: SteppedLoaded | Promise<SteppedLoaded>,
  ): Promise<Halt | undefined> {
    const stepped = await outcome
    // A redriven record that its key took before is not applied: what is due of the key fires at its number all the same.
    if (stepped === 'done') return this.#fireOwn(line, index)
    if ('halt' in stepped) return { number: line.number, error: stepped.halt, counts: stepped.counts }
    return this.#giveUpRecord(line, index, { error: stepped.givenUp, phase: 'step', attempts: stepped.attempts })
  }

  async #giveUpRecord(line: RecordLine, index: number, failure: GivenUp): Promise<Halt | undefined> {
    const halt = this.#giveUp(line, index, failure) ?? (await this.#fireOwn(line, index))
    if (halt === undefined) this.#keys.skip(line)
    return halt
  }

  /** Fires what is due of a record's own key where the record itself is not applied; nothing where it was. */
  #fireOwn(line: RecordLine, index: number): Promise<Halt | undefined> {
    return this.#keys.fire({ line, index, key: line.record.key, keyHash: undefined })
  }

  #giveUp(line: Line, index: number, failure: GivenUp): Halt | undefined {
    try {
      this.#outbox.giveUp(index, failure)
      return undefined
    } catch (error) {
      return { number: line.number, error, counts: false }
    }
  }

  async #finish(halt: Halt | undefined): Promise<{ readonly done: string | undefined; readonly error: unknown }> {
    const { now } = this.#progress
    const entries = this.#log.entriesThrough(this.#flush.doneThrough)
    const result = this.#log.progressBehind(entries)
    const doneThrough = Math.max(this.#flush.doneThrough, result.number)
    this.#due.keepEarliest(this.#keys.ownDrafts())
    const next: KeyedProgress = {
      ...result,
      operatorStates: this.#operatorStates.afterEntries(this.#log.lines, entries),
      doneThrough,
      failing: this.#progress.failingAfter(halt, doneThrough),
      suspect: this.#progress.suspectAfter(doneThrough),
      sent: this.#flush.sent,
      earliest: this.#due.earliest(halt !== undefined, passedBy(result)),
      firing: this.#flush.openCut(doneThrough),
    }
    this.#report(halt, entries, result.watermarkMs)
    const isFurther = entries > 0 || doneThrough > now.doneThrough || next.firing !== now.firing
    const isNews = isFurther || next.failing !== now.failing || next.suspect !== now.suspect
    if (!isNews) return { done: now.completed, error: halt?.error }
    const stored = await this.#progress.finish(next, this.#stop.closing)
    const { ownVersion } = this.#progress
    if (ownVersion !== undefined && !this.#flush.isAhead)
      this.#parts.warm.put(this.#partition, ownVersion, this.#keys.drafts)
    await this.#afterProgress(stored)
    return { done: stored.completed, error: halt?.error }
  }

  /** What may wait: if it fails, it is done later or does no harm. */
  async #afterProgress(stored: KeyedProgress): Promise<void> {
    const { marks, ports, stage } = this.#parts
    try {
      await this.#due.deletePassed(stored, this.#stop.closing)
    } catch (error) {
      ports.logger.warn('due entries were left in the table; they do no harm', errorFields(error))
    }
    const upstream = { partition: this.#partition, generation: stored.generation }
    await marks.tell(upstream, reachedMarkMs(stored) - markLagOf(stage), this.#stop.closing)
  }

  #report(halt: Halt | undefined, entriesDone: number, watermarkMs: number): void {
    const { metrics, logger, clock } = this.#parts.ports
    const { recordsStepped } = this.#keys
    const { keysWritten } = this.#flush
    metrics.count('records-in', recordsStepped)
    if (Number.isFinite(watermarkMs)) metrics.gauge('watermark-lag', clock.nowMs() - watermarkMs, 'milliseconds')
    if (this.#log.duplicates > 0) metrics.count('duplicates-dropped', this.#log.duplicates)
    if (this.#log.redrivesDropped > 0) metrics.count('redrives-dropped', this.#log.redrivesDropped)
    if (keysWritten > 0) {
      metrics.count('keys-written', keysWritten)
      metrics.gauge('collapse', recordsStepped / keysWritten, 'count')
      metrics.gauge('largest-item', this.#flush.largestItemBytes, 'bytes')
      const { openWindows } = this.#flush
      if (openWindows !== undefined) metrics.gauge('open-windows', openWindows, 'count')
    }
    if (halt === undefined) return
    metrics.count('records-returned', this.#log.entries.length - entriesDone)
    const { number } = halt
    logger.warn('a partition goes back to its stream from here', {
      partition: this.#partition,
      number,
      ...errorFields(halt.error),
    })
  }
}
