/** The time that an invocation has: when it must stop, and when it can wait no longer. */

import { ConfigurationError } from '../core/errors.ts'
import { failureAt, type PartitionBatch, type PartitionFailure } from './batch.ts'
import type { Stop } from './lane.ts'
import { errorFields } from './outbox.ts'
import type { Ports, RunnerClock } from './ports.ts'

/**
 * The time of an attempt at a batch. What was stepped is to be sent after half of the time that is left, although there is
 * more to step: so there is always some left in which to send and commit it, and a batch of slow steps comes on.
 *
 * The clock is looked at for each record while records are slow, and for every eighth while they are fast.
 */
export class Pace {
  readonly #clock: RunnerClock
  readonly #atMs: number
  #nextMs = 0
  /** When the clock was looked at last. */
  #nowMs = Number.NEGATIVE_INFINITY
  #untilLook = 0

  constructor(clock: RunnerClock, { atMs }: Stop) {
    this.#clock = clock
    this.#atMs = atMs
    this.restart()
  }

  /** Whether nothing new may begin. To be asked for each record. */
  isOver(): boolean {
    if (this.#untilLook-- <= 0) {
      const nowMs = this.#clock.nowMs()
      this.#untilLook = nowMs > this.#nowMs ? 0 : 7
      this.#nowMs = nowMs
    }
    return this.#nowMs >= this.#atMs
  }

  /** Whether what waits is to be sent, as of the last look. */
  isDue(): boolean {
    return this.#nowMs >= this.#nextMs
  }

  /** What waited was sent. */
  restart(): void {
    const nowMs = this.#clock.nowMs()
    this.#nextMs = nowMs + (this.#atMs - nowMs) / 2
    // How fast the next records are is not known: the first two are looked at.
    this.#nowMs = Number.NEGATIVE_INFINITY
    this.#untilLook = 0
  }
}

/**
 * Runs a batch until the margin before its deadline. Then the signal aborts, so that nothing new begins; half of the margin
 * is for what is in flight, the other half for the answer itself.
 */
export async function withinDeadline<T>(
  clock: RunnerClock,
  deadlineMs: number,
  longestMarginMs: number,
  work: (stop: Stop) => Promise<T>,
): Promise<T> {
  const startMs = clock.nowMs()
  const marginMs = Math.min(longestMarginMs, (deadlineMs - startMs) / 2)
  const atMs = deadlineMs - marginMs
  const abort = new AbortController()
  const closing = new AbortController()
  const late = Promise.withResolvers<undefined>()
  let cancel = clock.timer(atMs - startMs, () => {
    abort.abort()
    cancel = clock.timer(marginMs / 2, () => {
      closing.abort()
      late.resolve(undefined)
    })
  })
  try {
    return await work({
      signal: abort.signal,
      atMs,
      closing: closing.signal,
      late: late.promise,
      isOver() {
        if (clock.nowMs() > deadlineMs) abort.abort()
        return abort.signal.aborted
      },
    })
  } finally {
    cancel()
  }
}

/** Runs a partition's batch so that its failure does not become that of others: all of it comes again. */
export async function partitionAlone(
  { logger, metrics }: Ports,
  batch: PartitionBatch,
  run: () => Promise<PartitionFailure | undefined>,
): Promise<PartitionFailure | undefined> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    metrics.count('records-returned', batch.records.length)
    logger.warn('a batch goes back to its source', { partition: batch.partition, ...errorFields(error) })
    return failureAt(batch, 0, error)
  }
}
