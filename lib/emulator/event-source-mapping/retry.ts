/**
 * What happens to a batch after an attempt, as pure functions.
 *
 * Invariants:
 * 1. `done`, `discarded` and `retry` together are the batch, each in its order: nothing is dropped, doubled or reordered.
 * 2. Only an invocation that ran and made no progress spends the budget of 1 + R; progress starts a fresh one, a split spends nothing.
 * 3. A split makes both parts smaller, so splitting ends.
 */
import type { ResolvedSettings } from './settings.ts'

/** A batch on its way: the records that are left of it and what it has spent. */
export interface Attempt<R> {
  readonly records: readonly R[]
  /** Invocations that ran, made no progress and did not split the batch: what MaximumRetryAttempts limits. */
  readonly invokeCount: number
  /** Failures in a row, throttles included: what the backoff grows with. */
  readonly failures: number
  /** Not before this time, milliseconds since 1970. */
  readonly dueMs: number
  /** What went wrong last, for the display. */
  readonly reason?: string
}

/** What an attempt came to. `function` failures carry functionError `Unhandled`, answered ones `null`. */
export type AttemptResult =
  | { readonly kind: 'success' }
  | { readonly kind: 'not-run'; readonly reason: string }
  | { readonly kind: 'failure'; readonly reason: string }
  | { readonly kind: 'partial'; readonly left: readonly number[]; readonly reason: string }

export interface Aftermath<R> {
  readonly done: readonly R[]
  /** The batch that has spent its budget; it goes to the on-failure destination. */
  readonly discarded: Attempt<R> | undefined
  /** What to attempt next, in order, before anything newer. */
  readonly retry: readonly Attempt<R>[]
}

export type RetryRules = Pick<ResolvedSettings, 'bisect' | 'maxRetryAttempts' | 'backoff'>

export function firstAttempt<R>(records: readonly R[]): Attempt<R> {
  return { records, invokeCount: 0, failures: 0, dueMs: 0 }
}

/** @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html */
export function afterAttempt<R>(
  attempt: Attempt<R>,
  result: AttemptResult,
  rules: RetryRules,
  nowMs: number,
): Aftermath<R> {
  const { records } = attempt
  if (result.kind === 'success') return { done: records, discarded: undefined, retry: [] }
  const again = (part: Partial<Attempt<R>>): Attempt<R> => {
    const failures = part.failures ?? attempt.failures + 1
    return { ...attempt, failures, dueMs: nowMs + backoffMs(failures, rules), reason: result.reason, ...part }
  }
  if (result.kind === 'not-run') return { done: [], discarded: undefined, retry: [again({})] }
  if (result.kind === 'partial' && result.left.length < records.length) {
    const left = new Set(result.left)
    const rest = again({ records: records.filter((_, i) => left.has(i)), invokeCount: 0, failures: 1 })
    return { done: records.filter((_, i) => !left.has(i)), discarded: undefined, retry: [rest] }
  }
  if (result.kind === 'failure' && rules.bisect && records.length > 1) {
    const middle = Math.ceil(records.length / 2)
    const first = again({ records: records.slice(0, middle), failures: 1 })
    const second = { ...first, records: records.slice(middle), failures: 0, dueMs: nowMs }
    return { done: [], discarded: undefined, retry: [first, second] }
  }
  const spent = again({ invokeCount: attempt.invokeCount + 1 })
  const isExhausted = rules.maxRetryAttempts !== undefined && spent.invokeCount > rules.maxRetryAttempts
  return isExhausted ? { done: [], discarded: spent, retry: [] } : { done: [], discarded: undefined, retry: [spent] }
}

/** The wait after so many failures in a row. */
export function backoffMs(failures: number, rules: Pick<RetryRules, 'backoff'>): number {
  const { initialMs, factor, maxMs } = rules.backoff
  return Math.min(maxMs, initialMs * factor ** (failures - 1))
}

/**
 * Takes the records out of a batch that are too old, as runs of neighbours: each record is judged for itself, so one old record
 * never takes five fresh ones with it.
 */
export function splitByAge<R extends { readonly arrivalMs: number }>(
  attempt: Attempt<R>,
  maxAgeMs: number,
  nowMs: number,
): { readonly expired: readonly (readonly R[])[]; readonly rest: readonly R[] } {
  const expired: R[][] = []
  const rest: R[] = []
  let wasExpired = false
  for (const record of attempt.records) {
    const isExpired = nowMs - record.arrivalMs > maxAgeMs
    if (!isExpired) rest.push(record)
    else if (wasExpired) expired.at(-1)?.push(record)
    else expired.push([record])
    wasExpired = isExpired
  }
  return { expired, rest }
}
