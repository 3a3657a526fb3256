/** Which failures of an AWS call pass by themselves. The rest need a person: permissions, names, settings. */

export { errorOf } from '../core/errors.ts'

interface AwsError {
  readonly name?: unknown
  readonly code?: unknown
  readonly $fault?: unknown
  readonly $retryable?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** Throttles have status 400 in most AWS protocols, so they are known by name. */
const passingName =
  /throttl|SlowDown|ThroughputExceeded|^RequestLimitExceeded$|^LimitExceededException$|^TooManyRequests|^TimeoutError$|^RequestTimeout|^RequestTimeTooSkewed$|^TransactionConflict|^TransactionInProgress|^ReplicatedWriteConflict|^InternalFailure$|^InternalServerError$|^ServiceUnavailable/i
const networkCode =
  /^(ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ERR_HTTP2_.*)$/

/** True for throttles, time-outs, lost connections and errors of the service: the same request may succeed later. */
export function passesByItself(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { name, code, $fault, $retryable, $metadata } = error as AwsError
  const status = $metadata?.httpStatusCode ?? 0
  if ($retryable !== undefined || $fault === 'server' || status >= 500 || status === 429) return true
  return passingName.test(String(name)) || (typeof code === 'string' && networkCode.test(code))
}
