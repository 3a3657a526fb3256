/** Finds out what stands for AWS on this machine, and says how to start something where nothing does. */
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

const answerMs = 5_000

/** LocalStack answers the first path, MiniStack both. */
const known = [
  { name: 'MiniStack', path: '/_ministack/ready' },
  { name: 'LocalStack', path: '/_localstack/health' },
] as const

/** The name of what listens there. Throws a ConfigurationError that says how to start it where nothing does. */
export async function whatListens(endpoint: string): Promise<string> {
  for (const { name, path } of known) {
    try {
      const { ok } = await fetch(new URL(path, endpoint), { signal: AbortSignal.timeout(answerMs) })
      if (ok) return name
    } catch (error) {
      throw new ConfigurationError(nothingListens(endpoint, describeError(error).message), { cause: error })
    }
  }
  return 'a service that is neither LocalStack nor MiniStack'
}

const nothingListens = (endpoint: string, problem: string): string => `Nothing answers on ${endpoint} (${problem}).
Start one of these, then run this command again:
  MiniStack, without Docker (needs Python 3.10 or newer; it is installed into .millrace):
    .ci/ministack start        and later: .ci/ministack stop
  LocalStack, in Docker (https://docs.localstack.cloud says how to install it):
    localstack start -d        and later: localstack stop
One that listens elsewhere is found by AWS_ENDPOINT_URL, such as http://127.0.0.1:4570.`
