/**
 * The outputs of one attempt on their way out: to sinks, to keyed stages and to the dead letters.
 *
 * 1. A step's outputs are kept together: `rewind` takes back all of them, `settle` keeps them.
 * 2. `deliver` sends all that waits and says whether all of it was taken. What was not comes again with its record.
 * 3. An output that a sink refuses for good becomes a dead letter of its own: its record is applied, as its state may be.
 *    That dead letter is sent before `deliver` answers, whatever else of other steps was refused: others may count on its record.
 *    Where something of its own step comes again, it does too (refused-outputs.ts 2).
 */
import { describeError, framesOf, RetryableError } from '../core/errors.ts'
import type { RecordInfo } from '../core/record.ts'
import type { DeadLetter, GivenUp } from './dead-letter.ts'
import type { FeedLane, StepPlace } from './feed-lane.ts'
import { comparePositions, type Position } from './frames/position.ts'
import type { FramePublisher } from './frames/publisher.ts'
import type { Sender } from './frames/sender.ts'
import { Lane, type Made, type NotDelivered, noAnswer, outcomesOf, type Stop } from './lane.ts'
import type { Ports } from './ports.ts'
import type { RunTarget } from './program.ts'
import type { SentPositions } from './progress/progress.ts'
import { type GivenUpOutput, RefusedOutputs } from './refused-outputs.ts'
import type { StageSink } from './sinks.ts'
import type { BatchTables } from './tables.ts'

export type { GivenUp } from './dead-letter.ts'

export interface OutboxParts {
  readonly ports: Ports
  readonly sinks: readonly StageSink[]
  readonly feeds: readonly { readonly publisher: FramePublisher; readonly sender: Sender; readonly lane: FeedLane }[]
  readonly tables: BatchTables
  readonly maxOutputsPerRecord: number
  /** The dead letter of the record at a place in the batch, or of an output of that step, and the record itself. */
  readonly deadLetterOf: (
    ordinal: number,
    failure: GivenUp,
    step?: StepPlace,
  ) => { readonly entry: DeadLetter; readonly record: RecordInfo }
}

/** What was not taken: from which record of the batch on, and why. */
export interface Undelivered {
  readonly ordinal: number
  readonly error: unknown
}

/** How many dead letters of one attempt get a log line of their own. */
const deadLettersLogged = 10

export class Outbox {
  readonly target: RunTarget
  readonly #parts: OutboxParts
  readonly #deadLetters: Lane
  #deadLettersMade = 0

  constructor(parts: OutboxParts) {
    this.#parts = parts
    this.#deadLetters = new Lane('dead letters', parts.ports.deadLetters as StageSink['sink'], undefined, {
      keepsValues: false,
    })
    this.target = {
      lanes: parts.sinks.map(({ name, sink, key }) => new Lane(name, sink, key)),
      feeds: parts.feeds.map(({ lane }) => lane),
      tables: parts.tables,
      ordinal: 0,
      pending: 0,
      maxPerRecord: parts.maxOutputsPerRecord,
    }
  }

  /** A step begins. */
  begin(ordinal: number, place: StepPlace): void {
    const { target } = this
    target.ordinal = ordinal
    target.place = place
    target.late = 0
    target.emissions?.clear()
    for (const lane of target.lanes) lane.mark = lane.items.length
    for (const lane of target.feeds ?? []) lane.mark = lane.items.length
  }

  /** Takes back what the step has put out. */
  rewind(): void {
    const { target } = this
    for (const lane of target.lanes) target.pending -= lane.rewind()
    for (const lane of target.feeds ?? []) target.pending -= lane.rewind()
    if (target.place) target.place.outputs = 0
    target.late = 0
    target.emissions?.clear()
  }

  /** Keeps what the step has put out; `key` names whose step it was. */
  settle(key: string): void {
    const { lanes, feeds = [], emissions, late } = this.target
    if (late) this.#parts.ports.metrics.count('records-late', late)
    if (emissions === undefined || emissions.size === 0) return
    for (const lane of lanes) lane.latest.settle(lane.mark, lane.items.length, key, emissions)
    for (const lane of feeds) lane.latest.settle(lane.mark, lane.items.length, key, emissions)
  }

  /** Makes the record at that place a dead letter. Throws where the dead letters cannot take it. */
  giveUp(ordinal: number, failure: GivenUp): void {
    const { entry, record } = this.#parts.deadLetterOf(ordinal, failure)
    this.putDeadLetter(ordinal, entry, record, failure.error)
  }

  /** Adds a dead letter that belongs to the record at that place; `index` tells several of one record apart. Throws where the dead letters cannot take it. */
  putDeadLetter(ordinal: number, entry: DeadLetter, record: RecordInfo, error: unknown, index = 0): void {
    this.#deadLetters.put({ value: entry, key: entry.id, record, index }, ordinal)
    this.target.pending++
    this.#log(entry, error)
  }

  /**
   * The last position that was claimed in each slot of each feed, for whoever goes on behind `end`: what was sent beyond
   * it will be computed and claimed again.
   */
  sent(end: Position): SentPositions {
    const upTo = (sent: ReadonlyMap<number, Position>) =>
      new Map([...sent].map(([slot, last]) => [slot, comparePositions(last, end) > 0 ? end : last]))
    return new Map(this.#parts.feeds.map(({ lane, sender }) => [lane.stage, upTo(sender.sent())]))
  }

  /** Sends everything. `firstOrdinal` is the first record whose outputs wait. */
  async deliver(
    stop: Stop,
    batch: { readonly markMs: number; readonly completeThrough: number; readonly firstOrdinal: number },
  ): Promise<Undelivered | undefined> {
    // Frames find the signal aborted, and lanes ask for themselves.
    stop.isOver()
    const refused: Undelivered[] = []
    const outputs = new RefusedOutputs(this.target.lanes)
    const work: Promise<void>[] = []
    for (const lane of [...this.target.lanes, this.#deadLetters]) {
      if (lane.items.length > 0) work.push(this.#deliverLane(lane, stop, refused, outputs))
    }
    for (const { lane, sender, publisher } of this.#parts.feeds) {
      const records = lane.take()
      if (records.length === 0) continue
      const frames = sender.frames(records, batch)
      work.push(
        publisher.publish(frames, stop.signal).then(
          () => this.#parts.ports.metrics.count('frames-out', frames.length),
          (error) => void refused.push({ ordinal: batch.firstOrdinal, error }),
        ),
      )
    }
    await Promise.race([Promise.all(work), stop.late.then(() => void refused.push(tooLate(batch.firstOrdinal)))])
    await outputs.giveUp(
      (output) => this.#giveUpOutput(output, refused),
      () => this.#deliverLane(this.#deadLetters, stop, refused, outputs),
    )
    this.target.pending = 0
    return refused.reduce<Undelivered | undefined>(
      (first, one) => (first && first.ordinal <= one.ordinal ? first : one),
      undefined,
    )
  }

  async #deliverLane(lane: Lane, stop: Stop, refused: Undelivered[], outputs: RefusedOutputs): Promise<void> {
    const { metrics } = this.#parts.ports
    const { items, madeOf } = lane.take()
    const outcomes = await outcomesOf(lane, items, stop)
    let delivered = 0
    for (let i = 0; i < items.length; i++) {
      const outcome = outcomes[i]
      if (outcome?.status === 'delivered') delivered++
      else this.#notDelivered(lane, madeOf(i), outcome ?? noAnswer(lane), refused, outputs)
    }
    if (delivered > 0) metrics.count(lane === this.#deadLetters ? 'dead-letters' : 'records-out', delivered)
  }

  #notDelivered(lane: Lane, made: Made, outcome: NotDelivered, refused: Undelivered[], outputs: RefusedOutputs): void {
    // A dead letter that its own sink rejects has nowhere else to go, so its record comes again.
    if (outcome.status === 'rejected' && lane !== this.#deadLetters) {
      outputs.add(lane, made, outcome.error)
      return
    }
    if (lane !== this.#deadLetters) outputs.comesAgain(made)
    refused.push({ ordinal: made.ordinal, error: outcome.error })
  }

  #giveUpOutput({ ordinal, step, failure, index }: GivenUpOutput, refused: Undelivered[]): DeadLetter | undefined {
    try {
      const { entry, record } = this.#parts.deadLetterOf(ordinal, failure, step)
      this.putDeadLetter(ordinal, entry, record, failure.error, index)
      return entry
    } catch (error) {
      refused.push({ ordinal, error })
      return undefined
    }
  }

  #log({ stage, source, partition, position, subPosition, reason }: DeadLetter, error: unknown): void {
    const { code, phase, attempts } = reason
    if (this.#deadLettersMade++ >= deadLettersLogged) return
    const place = { stage, source, partition, position, subPosition }
    const fields = { ...place, ...errorFields(error), code, phase, attempts }
    this.#parts.ports.logger.warn('a record became a dead letter', fields)
  }
}

const tooLate = (ordinal: number): Undelivered => ({
  ordinal,
  error: new RetryableError('what was sent was not answered before the deadline', { code: 'deadline' }),
})

/** Our own errors that somebody must act on: their messages name the stage, the table or the key, and the remedy. */
const toldInFull: ReadonlySet<string> = new Set([
  'commit-too-large',
  'foreign-item',
  'foreign-table',
  'frame-newer',
  'frame-refused',
  'lineage-unusable',
  'log-changed',
  'newer-format',
  'newer-schema',
  'partition-unknown',
  'progress-unreadable',
  'sink-misconfigured',
  'slots-changed',
  'state-changed',
  'state-table-unusable',
  'state-too-large',
])

/** What a log line may say of an error: not its message, which may quote a value, unless it is one of ours to act on. */
export const errorFields = (error: unknown): Readonly<Record<string, unknown>> => {
  const { name, code, message, step } = describeError(error)
  const frames = framesOf(error)
  return {
    error: name,
    code,
    ...(code !== undefined && toldInFull.has(code) ? { message } : {}),
    ...(step === undefined ? {} : { step }),
    ...(frames.length === 0 ? {} : { frames }),
  }
}
