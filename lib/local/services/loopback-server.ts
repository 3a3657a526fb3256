/**
 * What the embedded services share: an HTTP/1.1 server on 127.0.0.1 that answers requests one body for another.
 *
 * Closing answers what is in flight, and tells its clients not to come back on the same connection.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigurationError } from '../../core/errors.ts'

const HOST = '127.0.0.1'
/** Longer than clients idle, so that they rarely meet a connection that is just being closed. */
const KEEP_ALIVE_MS = 60_000

export interface LoopbackRequest {
  /** The header `x-amz-target`, empty where there is none. */
  readonly target: string
  /** Undefined where it has more than the server's `largestBodyBytes`. */
  readonly body: Buffer | undefined
}

export interface LoopbackAnswer {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface LoopbackOptions {
  /** As messages name it: `DynamoDB`. */
  readonly service: string
  /** 0 takes any free port. */
  readonly port: number
  readonly contentType: string
  readonly largestBodyBytes: number
  /** Must not reject: a connection whose request it rejects is cut. */
  answer(request: LoopbackRequest): Promise<LoopbackAnswer>
}

export interface LoopbackServer {
  readonly url: string
  /** Resolves when everything in flight is answered. */
  close(): Promise<void>
}

/**
 * Listens on 127.0.0.1.
 *
 * @throws ConfigurationError when the port is taken.
 * @example
 * const server = await listenOnLoopback({ service: 'DynamoDB', port: 0, contentType: 'text/plain', largestBodyBytes: 1_000, answer })
 */
export async function listenOnLoopback(options: LoopbackOptions): Promise<LoopbackServer> {
  const server = createServer((request, response) => {
    readBody(request, options.largestBodyBytes)
      .then((body) => options.answer({ target: String(request.headers['x-amz-target'] ?? ''), body }))
      .then((answer) => send(response, options.contentType, answer, !server.listening))
      // A connection that broke has nobody to answer to.
      .catch(() => response.destroy())
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await listen(server, options)
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}

async function listen(server: Server, { service, port }: LoopbackOptions): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, HOST, () => {
        server.off('error', reject)
        resolve()
      })
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EADDRINUSE' ? 'another program listens there' : message
    throw new ConfigurationError(
      `The embedded ${service} cannot listen on port ${port} of ${HOST}: ${reason}. Stop that program, or give another port (0 takes any free one).`,
      { cause: error },
    )
  }
}

/** Reads a body to its end even when it is too large, because a client that is still sending does not hear a refusal. */
async function readBody(request: IncomingMessage, largestBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= largestBytes) chunks.push(chunk)
  }
  return bytes <= largestBytes ? Buffer.concat(chunks, bytes) : undefined
}

function send(response: ServerResponse, contentType: string, answer: LoopbackAnswer, closing: boolean): void {
  response.writeHead(answer.status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(answer.body),
    ...answer.headers,
    ...(closing ? { connection: 'close' } : {}),
  })
  response.end(answer.body)
}
