import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type DynamoService, startDynamoService } from '../../lib/local/services/dynamodb.ts'
import { type KinesisService, startKinesisService } from '../../lib/local/services/kinesis.ts'

/** A request to a service that is not embedded. */
export interface Call {
  readonly method: string
  readonly url: URL
  /** The header `x-amz-target`, empty where there is none. */
  readonly target: string
  readonly body: Buffer
}

export interface Answer {
  /** @default 200 */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** What stand-ins of AWS are behind: one URL on 127.0.0.1 for the embedded Kinesis and DynamoDB, and for what `answer` stands in for. */
export class EmbeddedAws {
  readonly #server: Server
  readonly #kinesis: KinesisService
  readonly #dynamodb: DynamoService

  private constructor(server: Server, kinesis: KinesisService, dynamodb: DynamoService) {
    this.#server = server
    this.#kinesis = kinesis
    this.#dynamodb = dynamodb
  }

  static async start(answer: (call: Call) => Answer | Promise<Answer>): Promise<EmbeddedAws> {
    const aws: EmbeddedAws = new EmbeddedAws(
      createServer((request, response) => {
        aws.#answer(request, answer).then(
          ({ status = 200, headers = {}, body }) => response.writeHead(status, headers).end(body),
          (error) => response.writeHead(500).end(String(error)),
        )
      }),
      await startKinesisService(),
      await startDynamoService(),
    )
    // A command that waits between its looks would meet a connection at the moment at which Node ends it.
    aws.#server.keepAliveTimeout = 0
    await new Promise<void>((resolve) => aws.#server.listen(0, '127.0.0.1', resolve))
    return aws
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
    await this.#kinesis.close()
    await this.#dynamodb.close()
  }

  async #answer(request: IncomingMessage, answer: (call: Call) => Answer | Promise<Answer>): Promise<Answer> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const target = String(request.headers['x-amz-target'] ?? '')
    if (target.startsWith('Kinesis_')) return forward(this.#kinesis.url, request, body)
    if (target.startsWith('DynamoDB_')) return forward(this.#dynamodb.url, request, body)
    return answer({ method: request.method ?? '', url: new URL(request.url ?? '', this.url), target, body })
  }
}

async function forward(url: string, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const headers = {
    'x-amz-target': `${request.headers['x-amz-target']}`,
    'content-type': `${request.headers['content-type']}`,
  }
  const answer = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) })
  const contentType = answer.headers.get('content-type') ?? ''
  return {
    status: answer.status,
    headers: { 'content-type': contentType },
    body: Buffer.from(await answer.arrayBuffer()),
  }
}
