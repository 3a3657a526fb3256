/**
 * One batch on its way through a stateless stage: decode, step, deliver, answer. The invariants stand in stage-runner.ts.
 */
import { isRetryable, isTerminal } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import type { StatelessStage } from '../plan/plan.ts'
import { type BatchResult, type PartitionBatch, type PartitionFailure, rest } from './batch.ts'
import { type DeadLetter, deadLetterOf, type GivenUp } from './dead-letter.ts'
import { DecodeError, type Decoder, leftOut } from './decode.ts'
import { Lane, type Made, type NotDelivered, noAnswer, outcomesOf, outOfTime, type Stop } from './lane.ts'
import { errorFields } from './outbox.ts'
import type { Ports } from './ports.ts'
import type { RunTarget, StageProgram } from './program.ts'
import { ImpureStepError, runTwice } from './purity.ts'
import { type GivenUpOutput, RefusedOutputs } from './refused-outputs.ts'
import type { Sink } from './sink.ts'
import type { StageSink } from './sinks.ts'
import type { BatchTables } from './tables.ts'

/** What the batches of a stage have in common. */
export interface BatchParts {
  readonly topology: string
  readonly stage: StatelessStage
  readonly ports: Ports
  readonly sinks: readonly StageSink[]
  readonly decode: Decoder
  readonly program: StageProgram
  readonly tries: number
  readonly maxPendingOutputs: number
  readonly maxOutputsPerRecord: number
}

/** How many dead letters of one batch get a log line of their own. */
const deadLettersLogged = 10

/** How many partitions that go back get a log line of their own: each message of a queue is one. */
const failuresLogged = 10

/** One batch on its way. */
export class BatchRun {
  readonly #parts: BatchParts
  readonly #batch: readonly PartitionBatch[]
  readonly #stop: Stop
  readonly #keepsRecords: boolean
  readonly #target: RunTarget
  readonly #deadLetters: Lane
  /** Per partition: the first record that is not done, and why. */
  readonly #failures = new Map<number, PartitionFailure>()
  /** The ordinal of each partition's first record: ordinals count through all partitions. */
  readonly #firstOrdinals: readonly number[]
  /** Records that a RetryableError stopped before all their lookup keys were known. */
  readonly #returning = new Map<SourceRecord, unknown>()
  #lookedAtMs = 0
  #untilLook = 0
  #recordsOut = 0
  #deadLettersMade = 0
  #deadLettersOut = 0

  constructor(parts: BatchParts, batch: readonly PartitionBatch[], tables: BatchTables, stop: Stop) {
    this.#parts = parts
    this.#stop = stop
    // What the lookups learn of a record is kept by the record, so each must then be made once.
    this.#keepsRecords = parts.stage.tables.some((table) => table.kind === 'lookup')
    this.#batch = this.#keepsRecords
      ? batch.map(({ partition, records }) => ({ partition, records: rest(records, 0) }))
      : batch
    const lanes = parts.sinks.map(({ name, sink, key }) => new Lane(name, sink, key, { keepsValues: false }))
    this.#target = { lanes, tables, ordinal: 0, pending: 0, maxPerRecord: parts.maxOutputsPerRecord }
    this.#deadLetters = new Lane('dead letters', parts.ports.deadLetters as Sink, undefined, { keepsValues: false })
    let ordinal = 0
    this.#firstOrdinals = batch.map(({ records }) => {
      const first = ordinal
      ordinal += records.length
      return first
    })
  }

  /** Runs the records as far as the lookups until no lookup wants a key: one call per lookup table. */
  async loadLookups(): Promise<void> {
    const steps = this.#parts.stage.nodes.filter(
      (node) => node.type === 'enrich' && node.table.kind === 'lookup',
    ).length
    await this.#target.tables.loadLookups(() => this.#learnAllKeys(), steps * steps, this.#stop.signal)
  }

  /** Learns keys for half of the time that is left: what it does not get to comes again, so that the rest can be done. */
  #learnAllKeys(): void {
    const { clock } = this.#parts.ports
    const startMs = clock.nowMs()
    const untilMs = startMs + (this.#stop.atMs - startMs) / 2
    for (let partition = 0; partition < this.#batch.length; partition++) {
      const { records } = this.#batch[partition] as PartitionBatch
      for (let index = 0; index < this.#end(partition); index++) {
        if (clock.nowMs() > untilMs) this.#fail(partition, index, outOfTime())
        else this.#learnKeys(records.at(index) as SourceRecord)
      }
    }
  }

  /** What throws here throws again, and is dealt with, when the record is stepped. */
  #learnKeys(record: SourceRecord): void {
    const { program, decode, tries } = this.#parts
    if (this.#returning.has(record)) return
    for (let attempt = 1; attempt <= tries; attempt++) {
      try {
        // Decoded anew for every run, so that a step which changes its value finds it as it came.
        const value = decode(record)
        if (value !== leftOut) program.runToLookups(value, record, this.#target)
        return
      } catch (error) {
        if (error instanceof ImpureStepError) throw error
        // Its keys are not known, so it must come again even if it would not throw any more.
        if (isRetryable(error)) this.#returning.set(record, error)
        if (isRetryable(error) || isTerminal(error) || error instanceof DecodeError) return
      }
    }
  }

  async run(): Promise<BatchResult> {
    for (let partition = 0; partition < this.#batch.length; partition++) {
      let index = 0
      while (index < this.#end(partition)) {
        index = this.#stepSome(partition, index)
        if (this.#target.pending >= this.#parts.maxPendingOutputs) await this.#deliver()
      }
    }
    await this.#deliver()
    this.#report()
    return { failures: [...this.#failures.values()] }
  }

  /** Steps a partition's records until enough outputs wait or one cannot be done, and says where it came to. */
  #stepSome(partition: number, from: number): number {
    const { records } = this.#batch[partition] as PartitionBatch
    const firstOrdinal = this.#firstOrdinals[partition] as number
    const { maxPendingOutputs } = this.#parts
    const target = this.#target
    for (let index = from; index < this.#end(partition); index++) {
      if (this.#outOfTime()) {
        this.#fail(partition, index, outOfTime())
        return index
      }
      target.ordinal = firstOrdinal + index
      this.#step(partition, index, records.at(index) as SourceRecord)
      if (target.pending >= maxPendingOutputs) return index + 1
    }
    return this.#end(partition)
  }

  /** Where the partition's batch ends: behind its last record, or at its first failure. */
  #end(partition: number): number {
    if (this.#failures.size === 0) return (this.#batch[partition] as PartitionBatch).records.length
    return this.#failures.get(partition)?.index ?? (this.#batch[partition] as PartitionBatch).records.length
  }

  /** Looks at the clock for every record while records are slow, and for every eighth while they are fast. */
  #outOfTime(): boolean {
    if (this.#untilLook-- > 0) return false
    const nowMs = this.#parts.ports.clock.nowMs()
    this.#untilLook = nowMs > this.#lookedAtMs ? 0 : 7
    this.#lookedAtMs = nowMs
    return nowMs >= this.#stop.atMs
  }

  #fail(partition: number, index: number, error: unknown): void {
    const known = this.#failures.get(partition)
    if (known && known.index <= index) return
    const { partition: name, records } = this.#batch[partition] as PartitionBatch
    this.#failures.set(partition, { partition: name, index, notDone: rest(records, index), error })
  }

  /** Tries one record until it is through, given up or to be returned. */
  #step(partition: number, index: number, record: SourceRecord): void {
    const { lanes } = this.#target
    for (let i = 0; i < lanes.length; i++) (lanes[i] as Lane).mark = (lanes[i] as Lane).items.length
    for (let attempt = 1; ; attempt++) {
      try {
        if (this.#keepsRecords && this.#returning.has(record)) throw this.#returning.get(record)
        const value = this.#parts.decode(record)
        if (value !== leftOut) this.#run(value, record)
        return
      } catch (error) {
        if (error instanceof ImpureStepError) throw error
        for (const lane of lanes) this.#target.pending -= lane.rewind()
        if (isRetryable(error)) {
          this.#fail(partition, index, error)
          return
        }
        this.#parts.ports.metrics.count('attempts-failed', 1)
        const [phase, cause] = error instanceof DecodeError ? [error.phase, error.cause] : (['step', error] as const)
        const final = error instanceof DecodeError || isTerminal(error) || attempt >= this.#parts.tries
        if (!final) continue
        this.#giveUp(partition, index, record, { error: cause, phase, attempts: attempt })
        return
      }
    }
  }

  #run(value: unknown, record: SourceRecord): void {
    const { program, ports } = this.#parts
    const target = this.#target
    if (!ports.checksPurity) {
      program.run(value, record, target)
      return
    }
    runTwice({
      run: () => program.run(value, record, target),
      takeBack: () => {
        for (const lane of target.lanes) target.pending -= lane.rewind()
      },
      changes: () => undefined,
      setTrace: (trace) => {
        target.trace = trace
      },
    })
  }

  /** Makes a record a dead letter; a dead letter that cannot even be written returns the record. */
  #giveUp(partition: number, index: number, record: SourceRecord, failure: GivenUp, place = 0): DeadLetter | undefined {
    const { topology, stage, ports } = this.#parts
    const entry = deadLetterOf(record, failure, { topology, stage: stage.name, failedAtMs: ports.clock.nowMs() })
    try {
      const ordinal = (this.#firstOrdinals[partition] as number) + index
      this.#deadLetters.put({ value: entry, key: entry.id, record, index: place }, ordinal)
      this.#logDeadLetter(entry, failure.error)
      return entry
    } catch (error) {
      this.#fail(partition, index, error)
      return undefined
    }
  }

  #logDeadLetter(entry: DeadLetter, error: unknown): void {
    if (this.#deadLettersMade++ >= deadLettersLogged) return
    const { source, partition, position, subPosition, reason } = entry
    const { code, phase, attempts } = reason
    this.#parts.ports.logger.warn('a record became a dead letter', {
      source,
      partition,
      position,
      subPosition,
      ...errorFields(error),
      code,
      phase,
      attempts,
    })
  }

  /** Delivers what waits: outputs and dead letters together, then the dead letters of what sinks rejected. */
  async #deliver(): Promise<void> {
    this.#target.pending = 0
    const refused = new RefusedOutputs(this.#target.lanes)
    const waiting = [...this.#target.lanes, this.#deadLetters].filter((lane) => lane.items.length > 0)
    if (waiting.length > 1) await Promise.all(waiting.map((lane) => this.#deliverLane(lane, refused)))
    else if (waiting[0]) await this.#deliverLane(waiting[0], refused)
    await refused.giveUp(
      (output) => this.#giveUpOutput(output),
      () => this.#deliverLane(this.#deadLetters, refused),
    )
  }

  #giveUpOutput({ ordinal, failure, index: place }: GivenUpOutput): DeadLetter | undefined {
    const { partition, index } = this.#placeOf(ordinal)
    const record = (this.#batch[partition] as PartitionBatch).records.at(index) as SourceRecord
    return this.#giveUp(partition, index, record, failure, place)
  }

  async #deliverLane(lane: Lane, refused: RefusedOutputs): Promise<void> {
    const { items, madeOf } = lane.take()
    const outcomes = await outcomesOf(lane, items, this.#stop)
    for (let i = 0; i < items.length; i++) {
      const outcome = outcomes[i]
      if (outcome?.status !== 'delivered') this.#notDelivered(lane, madeOf(i), outcome ?? noAnswer(lane), refused)
      else if (lane === this.#deadLetters) this.#deadLettersOut++
      else this.#recordsOut++
    }
  }

  #notDelivered(lane: Lane, made: Made, outcome: NotDelivered, refused: RefusedOutputs): void {
    // A dead letter that its own sink rejects has nowhere else to go, so the record goes back to the source; so does one
    // whose outcome is none that we know.
    if (outcome.status === 'rejected' && lane !== this.#deadLetters) {
      refused.add(lane, made, outcome.error)
      return
    }
    if (lane !== this.#deadLetters) refused.comesAgain(made)
    const { partition, index } = this.#placeOf(made.ordinal)
    this.#fail(partition, index, outcome.error)
  }

  #placeOf(ordinal: number): { readonly partition: number; readonly index: number } {
    const partition = this.#firstOrdinals.findLastIndex(
      (first, at) => first <= ordinal && this.#batch[at]?.records.length !== 0,
    )
    return { partition, index: ordinal - (this.#firstOrdinals[partition] as number) }
  }

  #report(): void {
    const { metrics, logger } = this.#parts.ports
    const all = this.#batch.reduce((sum, { records }) => sum + records.length, 0)
    const returned = [...this.#failures.values()].reduce((sum, failure) => sum + failure.notDone.length, 0)
    metrics.count('records-in', all - returned)
    metrics.count('records-out', this.#recordsOut)
    if (this.#deadLettersOut > 0) metrics.count('dead-letters', this.#deadLettersOut)
    if (returned > 0) metrics.count('records-returned', returned)
    if (this.#deadLettersMade > deadLettersLogged) {
      logger.warn('more records of the batch became dead letters', { count: this.#deadLettersMade - deadLettersLogged })
    }
    const failures = [...this.#failures.values()]
    if (failures.length > failuresLogged) {
      logger.warn('more partitions go back to their source', { count: failures.length - failuresLogged })
    }
    for (const failure of failures.slice(0, failuresLogged)) {
      logger.warn('a partition goes back to its source from here', {
        partition: failure.partition,
        index: failure.index,
        ...errorFields(failure.error),
      })
    }
  }
}
