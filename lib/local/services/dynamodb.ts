/**
 * The embedded DynamoDB with its streams: the model of lib/emulator/dynamodb behind HTTP on 127.0.0.1, for the AWS SDK.
 *
 * The model alone decides; this file carries requests in and answers out. What is kept in a directory, and when, journaled-service.ts
 * says; a request whose change cannot be kept fails with InternalServerError.
 */
import { crc32 } from 'node:zlib'
import { describeError } from '../../core/errors.ts'
import {
  createDynamoModel,
  DynamoError,
  type DynamoModel,
  type DynamoModelOptions,
  isDynamoOperation,
  unknownOperation,
} from '../../emulator/dynamodb/index.ts'
import { toWire } from './aws-json.ts'
import { type DynamoJournal, openDynamoJournal } from './dynamodb-journal.ts'
import { decodeRequest, encodeError } from './dynamodb-wire.ts'
import type { WriteAt } from './effect-journal.ts'
import { startJournaledService } from './journaled-service.ts'
import type { LoopbackAnswer, LoopbackRequest } from './loopback-server.ts'

/** 16 MB of items in base64, and the JSON around them. */
const LARGEST_BODY_BYTES = 32 * 1_048_576
const SWEEP_EVERY_MS = 10_000

const streamOperations: ReadonlySet<string> = new Set([
  'DescribeStream',
  'GetRecords',
  'GetShardIterator',
  'ListStreams',
])

export interface DynamoServiceOptions extends Omit<DynamoModelOptions, 'clock' | 'onEffect'> {
  /** 0 takes any free port. @default 0 */
  readonly port?: number
  /** Where tables and items outlive the service. @default they do not */
  readonly directory?: string
  /** @default the machine's clock */
  readonly clock?: DynamoModelOptions['clock']
  /** How often items that TTL says have expired are deleted; 0 leaves it to `model.sweepExpired()`. @default 10000 */
  readonly sweepEveryMs?: number
  /** How the journal writes. @default to the file */
  readonly writeAt?: WriteAt
}

export interface DynamoService {
  /** The endpoint for the SDK's clients of DynamoDB and of its streams, `http://127.0.0.1:<port>`. */
  readonly url: string
  /** The model itself, to look at. What is changed here without the service is saved with the next request. */
  readonly model: DynamoModel
  /** Idempotent. Rejects when the last changes could not be saved. */
  close(): Promise<void>
}

/**
 * Starts the embedded DynamoDB.
 *
 * @throws ConfigurationError when the port is taken, or the journal in `directory` is damaged.
 * @example
 * const service = await startDynamoService({ directory: '.millrace' })
 * const client = new DynamoDBClient({ endpoint: service.url, region: 'us-east-1' })
 * await service.close()
 */
export async function startDynamoService(options: DynamoServiceOptions = {}): Promise<DynamoService> {
  const { port = 0, directory, writeAt, sweepEveryMs = SWEEP_EVERY_MS, ...modelOptions } = options
  let journal: DynamoJournal | undefined
  const model = createDynamoModel({
    ...modelOptions,
    clock: modelOptions.clock ?? { nowMs: () => Date.now() },
    onEffect: (effect) => journal?.add(effect),
  })
  const service = await startJournaledService({
    service: 'DynamoDB',
    port,
    contentType: 'application/x-amz-json-1.0',
    largestBodyBytes: LARGEST_BODY_BYTES,
    directory,
    name: 'dynamodb',
    openJournal: async (path) => {
      journal = await openDynamoJournal(path, (effect) => model.restore(effect), writeAt)
      return journal
    },
    perform: (request) => withChecksum(200, JSON.stringify(toWire(perform(model, request)))),
    refuse,
  })
  const sweeping = sweepEveryMs > 0 ? setInterval(() => model.sweepExpired(), sweepEveryMs).unref() : undefined
  return {
    url: service.url,
    model,
    close() {
      clearInterval(sweeping)
      return service.close()
    },
  }
}

function refuse(error: unknown): LoopbackAnswer {
  const known = error instanceof DynamoError ? error : internalError(error)
  return withChecksum(known.name === 'InternalServerError' ? 500 : 400, encodeError(known))
}

function withChecksum(status: number, body: string): LoopbackAnswer {
  return { status, body, headers: { 'x-amz-crc32': String(crc32(body)) } }
}

function perform(model: DynamoModel, { target, body }: LoopbackRequest): unknown {
  const [service, operation = target] = target.split('.')
  const expected = streamOperations.has(operation) ? 'DynamoDBStreams_20120810' : 'DynamoDB_20120810'
  if (service !== expected || !isDynamoOperation(operation)) throw unknownOperation(operation)
  if (body === undefined) {
    throw new DynamoError(
      'SerializationException',
      `The request has more than ${LARGEST_BODY_BYTES} bytes: a batch holds at most 16 MB.`,
    )
  }
  // decodeRequest has checked the fields against the operation's table.
  return model.call(operation, decodeRequest(operation, body) as never)
}

function internalError(error: unknown): DynamoError {
  return new DynamoError('InternalServerError', `The embedded DynamoDB failed: ${describeError(error).message}`)
}
