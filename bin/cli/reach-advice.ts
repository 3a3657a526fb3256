/** What to do where AWS, or what stands for it, cannot be called: the SDK says what is wrong, and seldom what helps. */
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

const advice: readonly (readonly [problem: RegExp, remedy: string])[] = [
  [
    /Region is missing/,
    'Say where the application is, such as `AWS_REGION=eu-central-1 millrace ...`; an emulator is given by its --endpoint URL.',
  ],
  [
    /Could not load credentials|Could not resolve credentials|Token is expired|security token included in the request is (invalid|expired)/,
    'Log in as for the AWS CLI (`aws sso login`, AWS_PROFILE); with an emulator any made-up AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY do.',
  ],
  [/ECONNREFUSED/, 'Nothing listens there: start it, or check host and port of the endpoint.'],
  [/ENOTFOUND|EAI_AGAIN/, 'There is no host of that name: check the endpoint, the region and the network.'],
]

/** The error with what to do, where that is known; else the error itself. */
export function withAdvice(error: unknown): unknown {
  const text = textOf(error)
  const [, remedy] = advice.find(([problem]) => problem.test(text)) ?? []
  if (remedy === undefined || text.includes(remedy)) return error
  const message = error instanceof ConfigurationError ? error.message : text
  const code = error instanceof ConfigurationError ? error.code : undefined
  return new ConfigurationError(`${message.replace(/\.?$/, '.')} ${remedy}`, {
    cause: error,
    ...(code === undefined ? {} : { code }),
  })
}

/** Where a host has several addresses, the error that says so has no message, and its parts have. */
function textOf(error: unknown): string {
  const { message } = describeError(error)
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  const own = message === '' && typeof code === 'string' ? code : message
  return error instanceof ConfigurationError && cause !== undefined ? `${own}\n${textOf(cause)}` : own
}
