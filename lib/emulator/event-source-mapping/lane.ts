/**
 * One lane: what waits, the batch in flight and its retries. Of a shard with a parallelization factor of 1 there is one; of a Kafka
 * topic there is one for each poller.
 *
 * Invariants:
 * 1. At most one invocation is in flight, and records leave in the order in which they came.
 * 2. A record leaves only by being done: delivered, or given up and reported.
 * 3. Nothing newer is attempted while a batch, or a part that a split left of it, is unfinished.
 */
import type { Clock } from '../../core/clock.ts'
import { describeError } from '../../core/errors.ts'
import { stableUuid } from '../stable-uuid.ts'
import { nextBatch, windowEndMs } from './batching.ts'
import type { MappingCounters } from './counters.ts'
import type { Doorbell } from './doorbell.ts'
import { failureMessage } from './envelope.ts'
import type { FailureCondition, FailureDestination, InvocationOutcome, Invoker, SourceFormat } from './ports.ts'
import type { PendingRecord } from './progress.ts'
import { readResponse } from './response.ts'
import { type Attempt, type AttemptResult, afterAttempt, firstAttempt, splitByAge } from './retry.ts'
import type { ResolvedSettings } from './settings.ts'

/** What lanes share: the parts of the mapping and the state of their shard. */
export interface LaneContext {
  /** The shard; of Kafka the topic. */
  readonly shardId: string
  readonly settings: ResolvedSettings
  readonly format: SourceFormat
  readonly invoker: Invoker
  readonly onFailure: FailureDestination | undefined
  readonly clock: Clock
  readonly counters: MappingCounters
  /** Rung whenever anything in the shard changes. */
  readonly bell: Doorbell
  isStopping(): boolean
  isPaused(): boolean
  /** No record will follow those that wait already. */
  hasEnded(): boolean
  /** Another lane's retries hold this one up. */
  isHeldUp(lane: Lane): boolean
  /** Marks records as done and saves how far the shard is. Resolves without saving only when the mapping stops meanwhile. */
  commit(records: readonly PendingRecord[]): Promise<void>
}

/** A lane as a display shows it. */
export interface LaneStatus {
  readonly lane: number
  readonly state: 'idle' | 'collecting' | 'invoking' | 'retrying' | 'held-up'
  /** Records read and waiting for a batch. */
  readonly waiting: number
  /** Records of the batch in progress, or of what is left of it. */
  readonly inFlight: number
  /** Attempts that failed in a row. */
  readonly failures: number
  /** Why the last attempt failed. */
  readonly reason: string | undefined
  /** When the next attempt is due, milliseconds since 1970. */
  readonly nextAttemptMs: number | undefined
  /** The function could not even be run. */
  readonly wasNotRun: boolean
}

export class Lane {
  readonly index: number
  readonly #context: LaneContext
  #waiting: PendingRecord[] = []
  #windowStartMs: number
  #work: Attempt<PendingRecord>[] = []
  #isInvoking = false
  #wasNotRun = false
  #invocations = 0
  readonly #startedMs: number

  constructor(index: number, context: LaneContext) {
    this.index = index
    this.#context = context
    this.#startedMs = context.clock.nowMs()
    this.#windowStartMs = this.#startedMs
  }

  /** Whether an attempt at the batch in progress has failed. */
  get isRetrying(): boolean {
    return (this.#work[0]?.failures ?? 0) > 0
  }

  status(): LaneStatus {
    const attempt = this.#work[0]
    const isWaiting = this.isRetrying && !this.#isInvoking
    return {
      lane: this.index,
      state: this.#state(attempt),
      waiting: this.#waiting.length,
      inFlight: this.#work.reduce((sum, part) => sum + part.records.length, 0),
      failures: attempt?.failures ?? 0,
      reason: attempt?.reason,
      nextAttemptMs: isWaiting ? attempt?.dueMs : undefined,
      wasNotRun: this.#wasNotRun,
    }
  }

  #state(attempt: Attempt<PendingRecord> | undefined): LaneStatus['state'] {
    if (this.#isInvoking) return 'invoking'
    if (this.isRetrying) return 'retrying'
    if (attempt !== undefined) return 'held-up'
    return this.#waiting.length > 0 ? 'collecting' : 'idle'
  }

  /** Takes records, in the order of the shard. */
  offer(record: PendingRecord): void {
    this.#waiting.push(record)
  }

  /** Works until the mapping stops, or the shard has ended and all of it is done. */
  async run(): Promise<void> {
    const { clock, bell } = this.#context
    while (!this.#context.isStopping()) {
      if (this.#work.length > 0) {
        await this.#advance()
        continue
      }
      if (this.#waiting.length === 0 && this.#context.hasEnded()) return
      const waitMs = this.#takeBatch()
      if (this.#work.length === 0) await bell.wait(clock, waitMs)
    }
  }

  /** Forms a batch when one is due; else says how long until its window closes, where one is open. */
  #takeBatch(): number | undefined {
    const { settings, format, clock } = this.#context
    const [first] = this.#waiting
    if (first === undefined || this.#context.isPaused()) return undefined
    const { count, isFull } = nextBatch(this.#waiting, { ...settings, emptyEventBytes: format.emptyEventBytes })
    const windowStartMs = settings.windowBegins === 'first-record' ? undefined : this.#windowStartMs
    const waitMs = windowEndMs(windowStartMs, first.readMs, settings.windowMs) - clock.nowMs()
    if (!isFull && waitMs > 0) return waitMs
    this.#work = [firstAttempt(this.#waiting.slice(0, count))]
    this.#waiting = this.#waiting.slice(count)
    return undefined
  }

  /** One move of the batch in progress: drop what is too old, wait, or attempt it. */
  async #advance(): Promise<void> {
    const { clock, bell, settings, format } = this.#context
    const [attempt] = this.#work
    if (attempt === undefined) return
    // No await from the loop's look at the mapping's state to the waits below: a ring in between would be lost.
    if (this.#context.isPaused()) return bell.wait(clock)
    const nowMs = clock.nowMs()
    const maxAgeMs = this.#maxAgeMs()
    const { expired, rest } = splitByAge(attempt, maxAgeMs ?? Number.POSITIVE_INFINITY, nowMs)
    if (expired.length > 0) {
      await this.#dropExpired(attempt, expired, rest)
      return
    }
    const expiryMs = this.#firstExpiryMs(attempt, maxAgeMs)
    if (attempt.failures === 0 && this.#context.isHeldUp(this)) {
      await bell.wait(clock, expiryMs === undefined ? undefined : expiryMs - nowMs)
      return
    }
    if (attempt.dueMs > nowMs) {
      await bell.wait(clock, Math.min(attempt.dueMs, expiryMs ?? attempt.dueMs) - nowMs)
      return
    }
    const batch = this.#regroup(attempt)
    const { result, functionError, requestId } = await this.#attempt(batch)
    const { done, discarded, retry } = afterAttempt(batch, result, settings, clock.nowMs())
    if (discarded !== undefined) {
      const { records, invokeCount } = discarded
      await this.#giveUp(records, format.exhausted ?? 'RetryAttemptsExhausted', {
        invokeCount,
        requestId,
        functionError,
      })
    }
    await this.#finish([...done, ...(discarded?.records ?? [])], retry)
  }

  /** What to attempt again: the same batch, or with `regroups` one that is filled up with what waits, unless a part follows it. */
  #regroup(attempt: Attempt<PendingRecord>): Attempt<PendingRecord> {
    const { settings, format } = this.#context
    if (settings.retriedBatch === 'stays' || attempt.failures === 0 || this.#work.length > 1) return attempt
    const candidates = [...attempt.records, ...this.#waiting]
    const { count } = nextBatch(candidates, { ...settings, emptyEventBytes: format.emptyEventBytes })
    const added = Math.max(0, count - attempt.records.length)
    const batch = { ...attempt, records: [...attempt.records, ...this.#waiting.slice(0, added)] }
    this.#waiting = this.#waiting.slice(added)
    this.#work = [batch]
    return batch
  }

  /** Replaces the batch in progress by what is left of it, and makes what is done durable. */
  async #finish(done: readonly PendingRecord[], left: readonly Attempt<PendingRecord>[]): Promise<void> {
    const { clock, bell, commit } = this.#context
    this.#work.splice(0, 1, ...left)
    if (this.#work.length === 0) this.#windowStartMs = clock.nowMs()
    // The lane is waiting here, so nothing newer is attempted before the checkpoint is saved.
    if (done.length > 0) await commit(done)
    bell.ring()
  }

  async #attempt(attempt: Attempt<PendingRecord>) {
    const { counters, settings, format } = this.#context
    const { records } = attempt
    const requestId = this.#nextRequestId(records)
    this.#isInvoking = true
    const outcome = await this.#invoke(attempt, requestId)
    this.#isInvoking = false
    this.#wasNotRun = outcome.kind === 'not-run'
    if (outcome.kind !== 'not-run') {
      counters.invocations += 1
      counters.invokedEvents += records.length
    }
    const result: AttemptResult & { unrecognised?: string } =
      outcome.kind === 'answered'
        ? readResponse(outcome.payload, records, settings, format)
        : { kind: outcome.kind === 'not-run' ? 'not-run' : 'failure', reason: outcome.reason }
    if (result.kind === 'failure' || result.kind === 'partial') counters.failedInvokeEvents += records.length
    if (result.unrecognised !== undefined) {
      counters.unrecognisedAnswers += 1
      counters.lastUnrecognisedAnswer = result.unrecognised
    }
    const functionError = outcome.kind === 'function-error' ? ('Unhandled' as const) : null
    return { result, functionError, requestId }
  }

  async #invoke(attempt: Attempt<PendingRecord>, requestId: string): Promise<InvocationOutcome> {
    const { invoker, settings, format, shardId } = this.#context
    const { records } = attempt
    const bytes = records.reduce((sum, record) => sum + record.eventBytes, format.emptyEventBytes)
    if (bytes > settings.maxPayloadBytes) {
      const reason = `record ${records[0]?.sequenceNumber} makes an event of ${bytes} bytes, above the limit of ${settings.maxPayloadBytes}`
      return { kind: settings.oversizeRecord, reason }
    }
    try {
      return await invoker.invoke(format.event(records, shardId), {
        requestId,
        functionArn: settings.functionArn,
        shardId,
        lane: this.index,
        attempt: attempt.failures + 1,
      })
    } catch (thrown) {
      return { kind: 'not-run', reason: describeError(thrown).message }
    }
  }

  async #dropExpired(
    attempt: Attempt<PendingRecord>,
    expired: readonly (readonly PendingRecord[])[],
    rest: readonly PendingRecord[],
  ): Promise<void> {
    const { settings, counters } = this.#context
    const { invokeCount } = attempt
    for (const records of expired) {
      // What the stream itself let go of is simply gone: no destination hears of it.
      if (this.#maxAgeMs() !== settings.maxRecordAgeMs) counters.droppedEvents += records.length
      else {
        const requestId = this.#nextRequestId(records)
        await this.#giveUp(records, 'RecordAgeExceeded', { invokeCount, requestId, functionError: null })
      }
    }
    await this.#finish(expired.flat(), rest.length === 0 ? [] : [{ ...attempt, records: rest }])
  }

  #maxAgeMs(): number | undefined {
    const { maxRecordAgeMs, retentionMs } = this.#context.settings
    if (retentionMs === -1) return maxRecordAgeMs
    return Math.min(maxRecordAgeMs ?? retentionMs, retentionMs)
  }

  #firstExpiryMs(attempt: Attempt<PendingRecord>, maxAgeMs: number | undefined): number | undefined {
    if (maxAgeMs === undefined) return undefined
    // A loop, since a spread of 10,000 arguments is near the engine's limit.
    let earliestMs = Number.POSITIVE_INFINITY
    for (const { arrivalMs } of attempt.records) earliestMs = Math.min(earliestMs, arrivalMs)
    return earliestMs + maxAgeMs + 1
  }

  async #giveUp(
    records: readonly PendingRecord[],
    condition: FailureCondition,
    last: { invokeCount: number; requestId: string; functionError: 'Unhandled' | null },
  ): Promise<void> {
    const { onFailure, settings, format, clock, counters, shardId } = this.#context
    if (onFailure === undefined) {
      counters.droppedEvents += records.length
      return
    }
    const options = { nowMs: clock.nowMs(), carriesPayload: onFailure.carriesPayload }
    const message = failureMessage({ records, shardId, condition, ...last }, settings, format, options)
    try {
      await onFailure.send(message)
      counters.onFailureDeliveredEvents += records.length
    } catch (thrown) {
      counters.destinationDeliveryFailures += 1
      counters.droppedEvents += records.length
      counters.lastDeliveryFailure = describeError(thrown).message
    }
  }

  #nextRequestId(records: readonly PendingRecord[]): string {
    this.#invocations += 1
    const { settings, shardId } = this.#context
    const attempt = `${this.#startedMs}/${this.index}/${this.#invocations}`
    return stableUuid('request', settings.uuid, shardId, records[0]?.sequenceNumber ?? '', attempt)
  }
}
