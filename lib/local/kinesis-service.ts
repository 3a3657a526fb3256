/**
 * The embedded Kinesis: the model of lib/emulator/kinesis behind HTTP on 127.0.0.1, for the AWS SDK.
 *
 * 1. The model alone decides; this file carries requests in and answers out.
 * 2. With a directory, no answer leaves before everything that it may show is in the journal. When that cannot be written the
 *    request fails with InternalFailure, and no change is accepted until the file can be written again; nothing is lost.
 * 3. Closing answers what is in flight, saves, and lets go of port and file.
 */
import { mkdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ConfigurationError, describeError } from '../core/errors.ts'
import {
  createKinesisModel,
  isKinesisOperation,
  KinesisError,
  type KinesisModel,
  type KinesisModelOptions,
  unknownOperation,
} from '../emulator/kinesis/index.ts'
import { takeLock } from './directory-lock.ts'
import { type KinesisJournal, openKinesisJournal, type WriteAt } from './kinesis-journal.ts'
import { decodeRequest, encodeAnswer } from './kinesis-wire.ts'

const HOST = '127.0.0.1'
const TARGET = 'Kinesis_20131202.'
/** 10 MiB of records in base64, their keys and the JSON around them. */
const LARGEST_BODY_BYTES = 16 * 1_048_576
/** Longer than clients idle, so that they rarely meet a connection that is just being closed. */
const KEEP_ALIVE_MS = 60_000
const JOURNAL_FILE = 'kinesis.journal'

export interface KinesisServiceOptions extends Omit<KinesisModelOptions, 'clock' | 'onEffect'> {
  /** 0 takes any free port. @default 0 */
  readonly port?: number
  /** Where streams and records outlive the service. @default they do not */
  readonly directory?: string
  /** @default the machine's clock */
  readonly clock?: KinesisModelOptions['clock']
  /** How the journal writes. @default to the file */
  readonly writeAt?: WriteAt
}

export interface KinesisService {
  /** The endpoint for the SDK, `http://127.0.0.1:<port>`. */
  readonly url: string
  /** The model itself, to look at. What is changed here without the service is saved with the next request. */
  readonly model: KinesisModel
  /** Idempotent. Rejects when the last changes could not be saved. */
  close(): Promise<void>
}

/**
 * Starts the embedded Kinesis. The SDK's Kinesis client speaks HTTP/2 unless it is told otherwise, and this service HTTP/1.1.
 *
 * @throws ConfigurationError when the port is taken, or the journal in `directory` is damaged.
 * @example
 * const service = await startKinesisService({ directory: '.millrace' })
 * const client = new KinesisClient({ endpoint: service.url, region: 'us-east-1', requestHandler: new NodeHttpHandler() })
 * await service.close()
 */
export async function startKinesisService(options: KinesisServiceOptions = {}): Promise<KinesisService> {
  const { port = 0, directory, writeAt, ...modelOptions } = options
  let journal: KinesisJournal | undefined
  const model = createKinesisModel({
    ...modelOptions,
    clock: modelOptions.clock ?? { nowMs: () => Date.now() },
    onEffect: (effect) => journal?.add(effect),
  })
  const restoring = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    restoring.promise
      .then(() => answer(model, journal, request))
      .then(({ status, body }) => send(response, status, body, !server.listening))
      // A connection that broke has nobody to answer to.
      .catch(() => response.destroy())
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await listen(server, port)
  let release = async () => {}
  try {
    if (directory !== undefined) {
      await mkdir(directory, { recursive: true })
      release = await takeLock(join(directory, 'kinesis.lock'))
      journal = await openKinesisJournal(join(directory, JOURNAL_FILE), (effect) => model.restore(effect), writeAt)
    }
  } catch (error) {
    server.close()
    server.closeAllConnections()
    await release()
    throw error
  }
  restoring.resolve()
  let closed: Promise<void> | undefined
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    model,
    close() {
      closed ??= stopListening(server)
        .then(() => journal?.close())
        .finally(release)
      return closed
    },
  }
}

async function listen(server: Server, port: number): Promise<void> {
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
      `The embedded Kinesis cannot listen on port ${port} of ${HOST}: ${reason}. Stop that program, or give another port (0 takes any free one).`,
      { cause: error },
    )
  }
}

function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

async function answer(
  model: KinesisModel,
  journal: KinesisJournal | undefined,
  request: IncomingMessage,
): Promise<{ status: number; body: string }> {
  try {
    const bytes = await readBody(request)
    await journal?.saved()
    const result = perform(model, operationOf(request), bytes)
    await journal?.saved()
    return { status: 200, body: encodeAnswer(result) }
  } catch (error) {
    const known = error instanceof KinesisError ? error : internalFailure(error)
    const status = known.name === 'InternalFailure' ? 500 : 400
    return { status, body: JSON.stringify({ __type: known.name, message: known.message }) }
  }
}

function send(response: ServerResponse, status: number, body: string, closing: boolean): void {
  response.writeHead(status, {
    'content-type': 'application/x-amz-json-1.1',
    'content-length': Buffer.byteLength(body),
    ...(closing ? { connection: 'close' } : {}),
  })
  response.end(body)
}

function operationOf(request: IncomingMessage): string {
  const target = String(request.headers['x-amz-target'] ?? '')
  return target.startsWith(TARGET) ? target.slice(TARGET.length) : target
}

function perform(model: KinesisModel, operation: string, body: Buffer): unknown {
  if (!isKinesisOperation(operation)) throw unknownOperation(operation)
  // decodeRequest has checked the fields against the operation's table.
  return model.call(operation, decodeRequest(operation, body) as never)
}

function internalFailure(error: unknown): KinesisError {
  return new KinesisError('InternalFailure', `The embedded Kinesis failed: ${describeError(error).message}`)
}

/** Reads a body to its end even when it is too large, because a client that is still sending does not hear a refusal. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= LARGEST_BODY_BYTES) chunks.push(chunk)
  }
  if (bytes <= LARGEST_BODY_BYTES) return Buffer.concat(chunks, bytes)
  throw new KinesisError(
    'SerializationException',
    `The request has ${bytes} bytes, more than ${LARGEST_BODY_BYTES}: send at most 10 MiB of records.`,
  )
}
