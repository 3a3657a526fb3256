/**
 * A batch of a Kinesis or DynamoDB stream, record by record, in order: for Lambda functions that are written by hand.
 *
 *   log    a1  b1  a2  c1  a3          a2 fails while c1 runs: c1 is awaited, a3 is not begun,
 *   done    x   x   !   x   -          and the answer names a2; Lambda sends a2, c1 and a3 again
 *
 * 1. Records of one key run one after another, in the order of the log; of different keys `concurrency` at a time, those
 *    that come first in the log before others.
 * 2. After a failure no record behind it is begun. Records before it are still run, as the answer covers them.
 * 3. The answer names the first record that is not done. All before it are done, or dead letters that were taken.
 * 4. Nothing counts as done because an error was caught: a dead letter that cannot be written is a failure of its record.
 * 5. When the margin before the deadline begins, no record is begun and the signal aborts; what is in flight is awaited for
 *    half of the margin. What is not done then comes again.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
 */
import type { Context, DynamoDBRecord, DynamoDBStreamEvent, KinesisStreamEvent, KinesisStreamRecord } from 'aws-lambda'
import { ConfigurationError, describeError, isTerminal, RetryableError } from '../../core/errors.ts'
import { withinDeadline } from '../../runtime/invocation.ts'
import type { Stop } from '../../runtime/lane.ts'
import type { Logger, RunnerClock } from '../../runtime/ports.ts'
import { EventError } from '../events/event-error.ts'
import { systemClock } from '../system-clock.ts'

/** The events whose batches are ordered logs. */
export type OrderedEvent = KinesisStreamEvent | DynamoDBStreamEvent

/** What a step is told beside its record. */
export interface OrderedStep {
  /** The sequence number, in decimal digits: the position that `upsertOnce` takes. */
  readonly position: string
  readonly key: string
  /** Aborts when the time is nearly over: pass it on to whatever waits. */
  readonly signal: AbortSignal
}

/** How a batch is run. */
export interface OrderedBatchOptions<R> {
  /** The invocation's context, which knows how much time is left. */
  readonly context: Pick<Context, 'getRemainingTimeInMillis'>
  /**
   * Takes a record whose step threw a `TerminalError`, with its original data, before the batch goes on. What it throws
   * keeps the record in the stream.
   */
  readonly deadLetter: (record: R, error: unknown) => Promise<void> | void
  /** Told which record returns the batch, and of each dead letter, without their data: a Powertools `Logger`, or `console`. */
  readonly logger: Pick<Logger, 'warn'>
  /** Records of different keys in flight at a time. With more than one, records behind a failure may have run. @default 1 */
  readonly concurrency?: number
  /** Records with equal keys stay in order. @default the partition key, or the item's key attributes */
  readonly keyOf?: (record: R) => string
  /** How long before the deadline no record is begun any more. @default 1000, or half of a shorter time */
  readonly deadlineMarginMs?: number
  /** @default the machine's clock */
  readonly clock?: RunnerClock
}

/** What the function returns to Lambda, as it is. */
export interface OrderedBatchAnswer {
  readonly batchItemFailures: { readonly itemIdentifier: string }[]
}

/**
 * Runs a step on each record of a batch, those of one key in order, and answers with the first that is not done, from
 * which on Lambda sends the batch again. Records behind it may have run, and come again too: make steps idempotent, as
 * `upsertOnce` does.
 *
 * A step that throws a TerminalError makes its record a dead letter, and the batch goes on. Any other error, such as a
 * RetryableError, returns the record. How often Lambda tries again, and what becomes of the record then, the event
 * source mapping says. **The mapping must have `ReportBatchItemFailures`: without it Lambda ignores the answer, and what
 * failed is lost.**
 *
 * Rejects with an {@link EventError} where the event is not what Lambda sends, and with a {@link ConfigurationError}
 * where an option makes no sense; Lambda then sends the whole batch again.
 *
 * @example
 * export const handler = (event: KinesisStreamEvent, context: Context) =>
 *   processInOrder(
 *     event,
 *     async ({ kinesis }, { key, position, signal }) => {
 *       const { price } = JSON.parse(Buffer.from(kinesis.data, 'base64').toString())
 *       await upsertOnce(table, { hotel: key }, position, (row?: Revenue) => ({ revenue: (row?.revenue ?? 0) + price }), { signal })
 *     },
 *     { context, logger, deadLetter: (record, error) => sendToQueue(record, error) },
 *   )
 */
export async function processInOrder<E extends OrderedEvent>(
  event: E,
  step: (record: E['Records'][number], at: OrderedStep) => Promise<void> | void,
  options: OrderedBatchOptions<E['Records'][number]>,
): Promise<OrderedBatchAnswer> {
  const { context, concurrency = 1, deadlineMarginMs = 1_000, clock = systemClock, logger } = options
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new ConfigurationError(`concurrency is ${concurrency}: give a whole number above 0.`)
  }
  if (!Array.isArray(event?.Records)) throw malformed('the event', 'has no list of Records')
  const places = event.Records.map((record, index) => placeOf(record, index, options.keyOf))
  const deadlineMs = clock.nowMs() + context.getRemainingTimeInMillis()
  const failure = await withinDeadline(clock, deadlineMs, deadlineMarginMs, (stop) =>
    new OrderedBatch(places, { ...options, step, concurrency, clock, stop }).run(),
  )
  if (failure === undefined) return { batchItemFailures: [] }
  const { record, position } = places[failure.index] as Place<E['Records'][number]>
  logger.warn('the batch goes back to its stream from here', fieldsOf(record, failure.error))
  return { batchItemFailures: [{ itemIdentifier: position }] }
}

/** A record with what says where it belongs. */
interface Place<R> {
  readonly record: R
  readonly position: string
  readonly key: string
}

/** The first record that is not done, and why. */
interface Failure {
  readonly index: number
  readonly error: unknown
}

interface BatchParts<R> extends Pick<OrderedBatchOptions<R>, 'deadLetter' | 'logger'> {
  readonly step: (record: R, at: OrderedStep) => Promise<void> | void
  readonly concurrency: number
  readonly clock: RunnerClock
  readonly stop: Stop
}

class OrderedBatch<R extends KinesisStreamRecord | DynamoDBRecord> {
  readonly #places: readonly Place<R>[]
  readonly #parts: BatchParts<R>
  /** The first record that was not looked at yet. */
  #next = 0
  /** By key that has a record in flight, the records that wait for it. */
  readonly #waiting = new Map<string, number[]>()
  readonly #inFlight = new Set<number>()
  #failure: Failure | undefined

  constructor(places: readonly Place<R>[], parts: BatchParts<R>) {
    this.#places = places
    this.#parts = parts
  }

  async run(): Promise<Failure | undefined> {
    const { concurrency, stop } = this.#parts
    const lanes = Promise.all(Array.from({ length: concurrency }, () => this.#runLane()))
    await Promise.race([lanes, stop.late])
    // What is still in flight was not awaited to its end.
    for (const index of this.#inFlight) this.#fail(index, outOfTime())
    return this.#failure
  }

  /** Begins one record after another, until none may be begun. */
  async #runLane(): Promise<void> {
    let index = this.#nextOfFreeKey()
    while (index !== undefined && this.#mayBegin(index)) {
      const { key } = this.#places[index] as Place<R>
      this.#inFlight.add(index)
      await this.#runRecord(index)
      this.#inFlight.delete(index)
      // A record that waited for this one comes before all that were not looked at.
      index = this.#nextOf(key) ?? this.#nextOfFreeKey()
    }
  }

  #mayBegin(index: number): boolean {
    if (this.#failure !== undefined && this.#failure.index < index) return false
    const { clock, stop } = this.#parts
    if (clock.nowMs() < stop.atMs && !stop.signal.aborted) return true
    this.#fail(index, outOfTime())
    return false
  }

  /** The first record that was not looked at yet and whose key has none in flight; those on the way to it wait. */
  #nextOfFreeKey(): number | undefined {
    while (this.#next < this.#places.length) {
      const index = this.#next++
      const { key } = this.#places[index] as Place<R>
      const waiting = this.#waiting.get(key)
      if (waiting === undefined) {
        this.#waiting.set(key, [])
        return index
      }
      waiting.push(index)
    }
    return undefined
  }

  /** The record that waited for one of its key. */
  #nextOf(key: string): number | undefined {
    const following = this.#waiting.get(key)?.shift()
    if (following === undefined) this.#waiting.delete(key)
    return following
  }

  async #runRecord(index: number): Promise<void> {
    const { record, position, key } = this.#places[index] as Place<R>
    const { step, deadLetter, logger, stop } = this.#parts
    try {
      try {
        await step(record, { position, key, signal: stop.signal })
      } catch (error) {
        if (!isTerminal(error)) throw error
        await deadLetter(record, error)
        logger.warn('a record became a dead letter', fieldsOf(record, error))
      }
    } catch (error) {
      this.#fail(index, error)
    }
  }

  #fail(index: number, error: unknown): void {
    if (this.#failure === undefined || index < this.#failure.index) this.#failure = { index, error }
  }
}

const outOfTime = () =>
  new RetryableError('the invocation has no time left for the record: it comes again', { code: 'deadline' })

function placeOf<R extends KinesisStreamRecord | DynamoDBRecord>(
  record: R,
  index: number,
  keyOf: ((record: R) => string) | undefined,
): Place<R> {
  const { kinesis, dynamodb } = record as Partial<KinesisStreamRecord> & DynamoDBRecord
  const position = kinesis?.sequenceNumber ?? dynamodb?.SequenceNumber
  if (typeof position !== 'string' || position === '') {
    throw malformed(`record ${index} of the event`, 'has no sequence number')
  }
  return { record, position, key: keyOf?.(record) ?? kinesis?.partitionKey ?? itemKey(dynamodb?.Keys) }
}

/** The key attributes of an item as one text, whatever order they come in. */
const itemKey = (keys: NonNullable<DynamoDBRecord['dynamodb']>['Keys']): string =>
  JSON.stringify(Object.entries(keys ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)))

const malformed = (what: string, problem: string): EventError =>
  new EventError('malformed-event', `${what} ${problem}: it did not come from a Kinesis or DynamoDB stream`)

/** An error's message may quote a value, so it is not told. */
function fieldsOf({ eventID }: KinesisStreamRecord | DynamoDBRecord, thrown: unknown) {
  const { name, code } = describeError(thrown)
  return { eventID, error: name, code }
}
