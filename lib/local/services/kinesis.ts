/**
 * The embedded Kinesis: the model of lib/emulator/kinesis behind HTTP on 127.0.0.1, for the AWS SDK.
 *
 * The model alone decides; this file carries requests in and answers out. What is kept in a directory, and when, journaled-service.ts
 * says; a request whose change cannot be kept fails with InternalFailure.
 */
import { describeError } from '../../core/errors.ts'
import {
  createKinesisModel,
  isKinesisOperation,
  KinesisError,
  type KinesisModel,
  type KinesisModelOptions,
  unknownOperation,
} from '../../emulator/kinesis/index.ts'
import { startJournaledService } from './journaled-service.ts'
import { type KinesisJournal, openKinesisJournal, type WriteAt } from './kinesis-journal.ts'
import { decodeRequest, encodeAnswer } from './kinesis-wire.ts'
import type { LoopbackAnswer, LoopbackRequest } from './loopback-server.ts'

const TARGET = 'Kinesis_20131202.'
/** 10 MiB of records in base64, their keys and the JSON around them. */
const LARGEST_BODY_BYTES = 16 * 1_048_576

export interface KinesisServiceOptions extends Omit<KinesisModelOptions, 'clock' | 'onEffect'> {
  /** 0 takes any free port. @default 0 */
  readonly port?: number
  /** Where streams and records outlive the service. @default they do not */
  readonly directory?: string
  /** Called once the port is taken, before the directory is looked at: what it drops there is gone only if the service can start. */
  readonly onBound?: (() => Promise<void>) | undefined
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
  const { port = 0, directory, onBound, writeAt, ...modelOptions } = options
  let journal: KinesisJournal | undefined
  const model = createKinesisModel({
    ...modelOptions,
    clock: modelOptions.clock ?? { nowMs: () => Date.now() },
    onEffect: (effect) => journal?.add(effect),
  })
  const service = await startJournaledService({
    service: 'Kinesis',
    port,
    contentType: 'application/x-amz-json-1.1',
    largestBodyBytes: LARGEST_BODY_BYTES,
    directory,
    onBound,
    name: 'kinesis',
    openJournal: async (path) => {
      journal = await openKinesisJournal(path, (effect) => model.restore(effect), writeAt)
      return journal
    },
    perform: (request) => ({ status: 200, body: encodeAnswer(perform(model, request)) }),
    refuse,
  })
  return { ...service, model }
}

function refuse(error: unknown): LoopbackAnswer {
  const known = error instanceof KinesisError ? error : internalFailure(error)
  const status = known.name === 'InternalFailure' ? 500 : 400
  return { status, body: JSON.stringify({ __type: known.name, message: known.message }) }
}

function perform(model: KinesisModel, { target, body }: LoopbackRequest): unknown {
  const operation = target.startsWith(TARGET) ? target.slice(TARGET.length) : target
  if (!isKinesisOperation(operation)) throw unknownOperation(operation)
  if (body === undefined) {
    throw new KinesisError(
      'SerializationException',
      `The request has more than ${LARGEST_BODY_BYTES} bytes: send at most 10 MiB of records.`,
    )
  }
  // decodeRequest has checked the fields against the operation's table.
  return model.call(operation, decodeRequest(operation, body) as never)
}

function internalFailure(error: unknown): KinesisError {
  return new KinesisError('InternalFailure', `The embedded Kinesis failed: ${describeError(error).message}`)
}
