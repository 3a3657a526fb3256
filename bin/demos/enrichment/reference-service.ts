/** The service that functions/enrichment reads prices and customers from. It counts its calls: the truth that metrics are held against. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Customer, Price } from '../../../functions/enrichment/reference-data.ts'
import type { Clock } from '../../../lib/core/clock.ts'

export interface ReferenceService {
  readonly url: string
  /** Calls so far, and customers that were asked for in them. */
  readonly calls: { readonly prices: number; readonly customers: number; readonly customersAskedFor: number }
  close(): Promise<void>
}

/** Every call takes so long. */
const answerMs = 10
/** A new price list comes so often. */
const listEveryMs = 1_000
export const articles = 200

/** The price of an article in a list. */
export const priceCents = (article: string, list: number): number =>
  100 * Number(article.slice('article-'.length)) + list

/** Every 50th customer has left, so there is no row. */
export function customerOf(id: string): Customer | undefined {
  const number = Number(id.slice('customer-'.length))
  if (number % 50 === 0) return undefined
  return { tier: number % 3 === 0 ? 'gold' : 'silver' }
}

export async function startReferenceService(clock: Clock): Promise<ReferenceService> {
  const startMs = clock.nowMs()
  const calls = { prices: 0, customers: 0, customersAskedFor: 0 }
  const rowsFor = async (request: IncomingMessage): Promise<readonly (readonly [string, Price | Customer])[]> => {
    if (request.url === '/prices') {
      calls.prices += 1
      const list = 1 + Math.floor((clock.nowMs() - startMs) / listEveryMs)
      const names = Array.from({ length: articles }, (_, number) => `article-${number}`)
      return names.map((article) => [article, { cents: priceCents(article, list), list }] as const)
    }
    const ids = JSON.parse(await text(request)) as readonly string[]
    calls.customers += 1
    calls.customersAskedFor += ids.length
    return ids.flatMap((id) => {
      const customer = customerOf(id)
      return customer ? [[id, customer] as const] : []
    })
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const rows = await rowsFor(request)
    await clock.sleep(answerMs)
    response.end(JSON.stringify(rows))
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(400).end())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
