/** A settlement service that is a round trip away: it stores what it is given, and its answer comes that much later. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Settlement } from '../../../functions/payments/settlement.ts'

export interface SettlementService {
  readonly url: string
  close(): Promise<void>
}

/** `onStored` hears what a call brought, and under which path, right before the answer leaves. */
export async function startSettlementService(
  roundTripMs: number,
  onStored: (path: string, values: readonly unknown[]) => void,
): Promise<SettlementService> {
  const server = createServer((request, response) => {
    const answer = (status: number) => void response.writeHead(status).end()
    take(request).then(
      ({ path, values }) =>
        void setTimeout(() => {
          onStored(path, values)
          answer(204)
        }, roundTripMs),
      () => answer(400),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function take(request: IncomingMessage) {
  const settlement = JSON.parse(await text(request)) as Settlement<unknown>
  return { path: request.url ?? '/', values: settlement.map(([, value]) => value) }
}
