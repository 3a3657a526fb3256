/**
 * The errors that decide what becomes of a record, and the one that accuses ourselves.
 *
 * Every message says what happened, with which value, and what to do about it.
 */

/** What an error says should become of its record; the same in every copy of this package that a process may hold. */
const fate = Symbol.for('millrace.fate')

/** Anything Millrace throws on purpose. `code` is stable and fit for a metric dimension or a filter. */
export class MillraceError extends Error {
  override readonly name: string = 'MillraceError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Throw it from a step when a record can never succeed: the record becomes a dead letter at once and the batch goes on.
 *
 * @example
 * orders.map((order) => {
 *   if (order.currency === 'XXX') throw new TerminalError(`order ${order.id} has no currency`)
 *   return order
 * })
 */
export class TerminalError extends MillraceError {
  override readonly name: string = 'TerminalError'
  readonly [fate] = 'terminal'

  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'terminal', message, options)
  }
}

/**
 * Throw it when the record may succeed later: it goes back to Lambda, with everything after it, and is never counted
 * as a failed attempt.
 *
 * @example
 * throw new RetryableError('the price list is still loading')
 */
export class RetryableError extends MillraceError {
  override readonly name: string = 'RetryableError'
  readonly [fate] = 'retryable'

  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'retryable', message, options)
  }
}

/**
 * A mistake in what the user declared or configured. Its stack is its message: the message says where the mistake is, and
 * no line of ours would help to mend it.
 *
 * @example
 * throw new ConfigurationError('sink "audit" is not bound: add bind(audit, ...) for it.')
 */
export class ConfigurationError extends MillraceError {
  override readonly name: string = 'ConfigurationError'

  constructor(message: string, options?: ErrorOptions & { code?: string }) {
    super(options?.code ?? 'configuration', message, options)
    this.stack = `ConfigurationError: ${message}`
  }
}

const fateOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null ? (thrown as { [fate]?: unknown })[fate] : undefined

/** True for a {@link TerminalError} of any copy of this package: a process may hold its ESM and its CommonJS build. */
export function isTerminal(thrown: unknown): boolean {
  return fateOf(thrown) === 'terminal'
}

/** True for a {@link RetryableError} of any copy of this package. */
export function isRetryable(thrown: unknown): boolean {
  return fateOf(thrown) === 'retryable'
}

/** Throws when something that our own code guarantees is not so. The message is for us, not for the user. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new MillraceError('invariant', `This is a bug in Millrace: ${message}`)
}

/** Which step of the topology threw an error, noted on the error itself, as that is all that everyone on its way has. */
const thrower = Symbol.for('millrace.step')

/**
 * Notes which step threw, and gives back what was thrown. Whoever notes it first stands, as steps call one another: of those
 * that an error passes the first one threw it. What cannot be noted on (a text, a frozen error) stays as it is.
 *
 * @example
 * try { next(step(value, record), record) } catch (error) { throw thrownBy('map', error) }
 */
export function thrownBy(step: string, thrown: unknown): unknown {
  if (isError(thrown) && throwerOf(thrown) === undefined) Reflect.defineProperty(thrown, thrower, { value: step })
  return thrown
}

const throwerOf = (error: Error): string | undefined => (error as { readonly [thrower]?: string })[thrower]

/** What is known of a thrown value, whatever was thrown: `throw undefined` and `Promise.reject(null)` included. */
export interface ErrorDescription {
  readonly name: string
  readonly message: string
  readonly code?: string
  /** The step of the topology that threw it, such as `source "orders" > map`, where that is known. */
  readonly step?: string
}

/** True for errors of any realm: in jest, what Node itself throws is no instance of the test's own `Error`. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]'
}

/** Describes any thrown value without ever throwing itself. */
export function describeError(thrown: unknown): ErrorDescription {
  try {
    if (!isError(thrown)) return { name: 'NonError', message: `a step threw ${String(thrown)}, which is not an Error` }
    const { name, message, code } = thrown as Error & { readonly code?: unknown }
    const step = throwerOf(thrown)
    return {
      name: String(name),
      message: String(message),
      ...(typeof code === 'string' ? { code } : {}),
      ...(step === undefined ? {} : { step }),
    }
  } catch {
    return { name: 'NonError', message: 'a step threw a value that cannot be shown' }
  }
}

/** The thrown value as an Error, whatever was thrown. */
export const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(describeError(thrown).message)

/** As many as lead from what threw to the code of the user, mostly. */
const mostFrames = 6

/**
 * Where an error was thrown, the innermost first: `file:line:column` alone, as messages and names may quote what was processed.
 * Empty where the stack says something else than the error.
 */
export function framesOf(thrown: unknown): readonly string[] {
  try {
    if (!isError(thrown)) return []
    const { stack, message } = thrown
    if (stack === undefined) return []
    // A message of several lines may hold what looks like frames.
    const told = stack.slice(/^[^\n:]*(?:: )?/.exec(stack)?.[0].length)
    if (!told.startsWith(`${message}\n`)) return []
    const frames = told.slice(message.length).matchAll(/^ +at (?:.*\()?([^()\n]+:\d+:\d+)\)?$/gm)
    return [...frames].map(([, place = '']) => place.replace(/^async /, '')).slice(0, mostFrames)
  } catch {
    return []
  }
}
