/**
 * One call to the state table: what is tried again, what is told to the caller, and as what.
 *
 * 1. A read that failed for something that passes by itself is tried again, until the signal aborts.
 * 2. A write is tried again only where it certainly had no effect: a throttle, a conflict with a transaction, a connection
 *    that was never made. Any other failure may hide a write that took place, so the call rejects and the caller reads again.
 *    Only where a second time changes nothing is a write tried again like a read.
 * 3. After an abort nothing is sent. What is in flight then is awaited, never cut off.
 * 4. A failure that needs a person (a missing table, a permission) is retryable and says what to do: the records stay
 *    where they are until somebody has done it.
 */
import type { ConsumedCapacity } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/clock.ts'
import { RetryableError } from '../../core/errors.ts'
import { errorOf, passesByItself } from '../aws-failure.ts'
import { backoffMs } from '../ordered-delivery.ts'

/** What one call consumed, as DynamoDB says; failed conditions cost as well, but DynamoDB does not tell. */
export interface CapacityReport {
  readonly kind: 'read' | 'write'
  readonly units: number
}

export interface StateCallPorts {
  readonly stage: string
  readonly tableName: string
  readonly clock: Clock
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number
  /** Called with what each answered call consumed. @default nothing, and DynamoDB is not asked */
  readonly onCapacity?: (report: CapacityReport) => void
  /** Called for each call that DynamoDB refused because the table takes no more for now. @default nothing */
  readonly onThrottle?: () => void
}

const throttled =
  /throttl|ThroughputExceeded|^RequestLimitExceeded$|^TooManyRequests|^TransactionConflict|^ReplicatedWriteConflict/i
/** What says that the table, or a partition of it, takes no more for now: conflicts of transactions do not. */
const tooMuch = /throttl|ThroughputExceeded|^RequestLimitExceeded$|^TooManyRequests/i
const neverConnected = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/

interface Refusal extends Error {
  readonly code?: unknown
  readonly CancellationReasons?: readonly { readonly Code?: string }[]
}

const blamedIn = ({ CancellationReasons = [] }: Refusal): readonly string[] =>
  CancellationReasons.map(({ Code = 'None' }) => Code).filter((code) => code !== 'None')

const isThrottle = (error: Refusal): boolean =>
  tooMuch.test(error.name) || blamedIn(error).some((code) => tooMuch.test(code))

/** True where a write that was answered so certainly had no effect and may have one later. */
function hadNoEffect(error: Refusal): boolean {
  if (throttled.test(error.name) || neverConnected.test(String(error.code))) return true
  if (error.name !== 'TransactionCanceledException') return false
  const blamed = blamedIn(error)
  return blamed.length > 0 && blamed.every((code) => throttled.test(code))
}

export class StateCalls {
  readonly #ports: StateCallPorts

  constructor(ports: StateCallPorts) {
    this.#ports = ports
  }

  /** What to put into a request to be told its capacity. */
  get capacityWanted(): { ReturnConsumedCapacity?: 'TOTAL' } {
    return this.#ports.onCapacity === undefined ? {} : { ReturnConsumedCapacity: 'TOTAL' }
  }

  read<Answer extends Consuming>(call: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    return this.#attempt('read', call, passesByItself, signal)
  }

  /** Rejects with the SDK's own error where a condition failed. */
  write<Answer extends Consuming>(call: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    return this.#attempt('write', call, hadNoEffect, signal)
  }

  /** A write that may take place twice. */
  writeAgain<Answer extends Consuming>(call: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    return this.#attempt('write', call, (error) => hadNoEffect(error) || passesByItself(error), signal)
  }

  /** Waits before attempt number `attempt` + 1; the signal cuts it short. */
  async rest(attempt: number, signal: AbortSignal): Promise<void> {
    await this.#ports.clock.sleep(backoffMs(attempt, this.#ports.random ?? Math.random), signal)
  }

  /** What to reject with after an abort. Nothing that was asked of a write has happened. */
  deadline(cause?: Error): RetryableError {
    return new RetryableError(
      `${this.#label} could not be used before the deadline${cause ? ` (${cause.message})` : ''}`,
      {
        code: 'state-deadline',
        cause,
      },
    )
  }

  async #attempt<Answer extends Consuming>(
    kind: CapacityReport['kind'],
    call: () => Promise<Answer>,
    again: (error: Refusal) => boolean,
    signal: AbortSignal,
  ): Promise<Answer> {
    let last: Error | undefined
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        const answer = await call()
        this.#report(kind, answer)
        return answer
      } catch (thrown) {
        last = errorOf(thrown)
        if (isThrottle(last)) this.#ports.onThrottle?.()
        if (!again(last)) throw this.#translated(kind, last)
      }
      await this.rest(attempt, signal)
    }
    throw this.deadline(last)
  }

  #report(kind: CapacityReport['kind'], { ConsumedCapacity }: Consuming): void {
    if (ConsumedCapacity === undefined) return
    const tables = Array.isArray(ConsumedCapacity) ? ConsumedCapacity : [ConsumedCapacity]
    const units = tables.reduce((sum, table: ConsumedCapacity) => sum + (table.CapacityUnits ?? 0), 0)
    this.#ports.onCapacity?.({ kind, units })
  }

  #translated(kind: CapacityReport['kind'], error: Refusal): Error {
    if (isFailedCondition(error)) return error
    if (kind === 'write' && passesByItself(error)) {
      return new RetryableError(
        `${this.#label} did not answer a write (${error.name}: ${error.message}), which may have taken effect`,
        { code: 'state-unanswered', cause: error },
      )
    }
    const reasons = error.CancellationReasons?.map(({ Code }) => Code).join(', ')
    return new RetryableError(
      `${this.#label} cannot be used (${error.name}: ${error.message}${reasons ? `; ${reasons}` : ''}): check its name, that its keys are the texts "pk" and "sk", and the permissions of the function`,
      { code: 'state-table-unusable', cause: error },
    )
  }

  get #label(): string {
    return `the state table "${this.#ports.tableName}" of stage "${this.#ports.stage}"`
  }
}

/** What answers have in common. */
interface Consuming {
  readonly ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[] | undefined
}

/** True where the condition of a write, or of an action of a transaction, failed. */
export function isFailedCondition(error: unknown): boolean {
  const { name, CancellationReasons } = error as Refusal
  if (name === 'ConditionalCheckFailedException') return true
  return name === 'TransactionCanceledException' && CancellationReasons?.[0]?.Code === 'ConditionalCheckFailed'
}
