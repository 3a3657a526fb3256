/**
 * A sink of the user's own: hands outputs to a settlement service, all of a batch in one call. The service stores each payment by
 * its name, so a repeated one changes nothing there. Its address is in the environment variable `SETTLEMENT_URL`.
 */
import { Agent, type IncomingMessage, request } from 'node:http'
import { delivered, type Output, RetryableError, type Sink } from '../../lib/index.ts'

/** Outputs of one batch as the service takes them: `[payment, value]` each. */
export type Settlement<T> = readonly (readonly [payment: string, value: T])[]

/** @param path where the service takes these outputs, such as `/validated` */
export function settlementSink<T extends { readonly payment: string }>(path: string): Sink<T, Settlement<T>[number]> {
  const agent = new Agent({ keepAlive: true })
  return {
    prepare: ({ value }: Output<T>) => [value.payment, value],
    async deliver(items, { signal }) {
      const problem = await post(path, JSON.stringify(items), agent, signal)
      if (problem === undefined) return items.map(() => delivered)
      return items.map(() => ({ status: 'retry', error: problem }))
    },
  }
}

/** Resolves with undefined once the service has stored everything. */
function post(path: string, body: string, agent: Agent, signal: AbortSignal): Promise<Error | undefined> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve) => {
    const unreachable = (cause: unknown) =>
      resolve(new RetryableError('the settlement service cannot be reached', { cause }))
    const answered = (answer: IncomingMessage) => {
      const status = answer.statusCode ?? 0
      const isStored = status >= 200 && status < 300
      answer.on('error', unreachable).resume()
      answer.on('end', () =>
        resolve(isStored ? undefined : new RetryableError(`the settlement service answered ${status}`)),
      )
    }
    try {
      const url = new URL(path, process.env.SETTLEMENT_URL)
      request(url, { method: 'POST', agent, headers, signal }, answered).on('error', unreachable).end(body)
    } catch (error) {
      unreachable(error)
    }
  })
}
