/** Where dead letters are: with a local run, in a stream, or in a queue. */
import { join } from 'node:path'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { SQSClient } from '@aws-sdk/client-sqs'
import { clientSettings } from '../../lib/aws/client-settings.ts'
import { lookAtQueue } from '../../lib/aws/dead-letter-queue.ts'
import { deadLetterHandle, readDeadLetter } from '../../lib/aws/dead-letter-reading.ts'
import { createKinesisClient } from '../../lib/aws/kinesis-client.ts'
import { createSQSClient } from '../../lib/aws/sqs-client.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { DeadLetterLog } from '../../lib/local/dead-letter-log.ts'
import { SettlementFile } from '../../lib/local/dead-letter-settlement.ts'
import { KinesisShardReader } from '../../lib/local/kinesis-shard-reader.ts'
import { localIdentity, localKinesisClient } from '../../lib/local/local-streams.ts'
import { type Arguments, usage } from './arguments.ts'
import type { ListedLetter } from './dead-letter-text.ts'
import { directoryOf, reachStreams, runNamed } from './local-run.ts'

/** The dead letters of a local run, and what a redrive needs to know of it. */
export interface LetterPlace {
  readonly app: string
  readonly title: string
  readonly directory: string
  readonly endpoint: string
  readonly client: KinesisClient
  readonly deadLetterStream: string
  readonly log: DeadLetterLog
  readonly settlements: SettlementFile
}

export interface Letters {
  readonly title: string
  readonly letters: readonly ListedLetter[]
  /** What is among them and is none. */
  readonly unreadable: readonly { readonly place: string; readonly problem: string }[]
}

/** Opens what the flags `app`, `stream`, `queue` and `endpoint` mean. */
export async function openLetters(args: Arguments, closing: Closing): Promise<Letters> {
  const [stream, queue, endpoint] = [args.text('stream'), args.text('queue'), args.text('endpoint')]
  const places = ['app', 'stream', 'queue'].filter((flag) => args.has(flag))
  if (places.length > 1) throw usage(`--${places.join(' and --')} name different places: give one.`)
  if (stream !== undefined) return streamLetters(stream, endpoint, closing)
  if (queue !== undefined) return queueLetters(queue, endpoint, closing)
  if (endpoint !== undefined) throw usage('--endpoint goes with --stream or --queue.')
  const { title, log, settlements } = await openLocalLetters(await runNamed(args.text('app')), closing)
  const letters = log.letters.map((letter) => ({
    ...letter,
    redrivenAtMs: settlements.isSettled(letter) ? settlements.settlementOf(letter)?.redrivenAtMs : undefined,
  }))
  return { title, letters, unreadable: log.unreadable }
}

/** Opens the dead letters of a local run, whether it is up or not. */
export async function openLocalLetters(app: string, closing: Closing): Promise<LetterPlace> {
  const directory = directoryOf(app)
  const endpoint = await reachStreams(directory, closing)
  const client = localKinesisClient(endpoint)
  closing.defer(() => client.destroy())
  const deadLetterStream = `${app}-dead-letters`
  const log = await readStream(client, deadLetterStream)
  const settlements = await SettlementFile.open(join(directory, 'redriven.ndjson'))
  return { app, title: `${app} (${directory})`, directory, endpoint, client, deadLetterStream, log, settlements }
}

async function streamLetters(stream: string, endpoint: string | undefined, closing: Closing): Promise<Letters> {
  const client = endpoint === undefined ? createKinesisClient() : localKinesisClient(endpoint)
  closing.defer(() => client.destroy())
  const log = await readStream(client, stream)
  const letters = log.letters.map((letter) => ({ ...letter, redrivenAtMs: undefined }))
  return { title: `stream ${stream}`, letters, unreadable: log.unreadable }
}

async function readStream(client: KinesisClient, streamName: string): Promise<DeadLetterLog> {
  const log = new DeadLetterLog(new KinesisShardReader({ client, streamName, clock: systemClock }))
  try {
    await log.refresh()
  } catch (error) {
    throw new ConfigurationError(`The dead letters cannot be read: ${oneLine(error)}`, { cause: error })
  }
  return log
}

async function queueLetters(queueUrl: string, endpoint: string | undefined, closing: Closing): Promise<Letters> {
  const client = sqsClient(endpoint)
  closing.defer(() => client.destroy())
  try {
    const read = (await lookAtQueue({ client, queueUrl })).map(({ messageId, body }) => ({
      place: messageId,
      entry: readDeadLetter(body),
    }))
    // A record that was given up several times is one dead letter, for which its last entry speaks.
    const entries = read.flatMap(({ entry }) => ('problem' in entry ? [] : entry))
    const last = new Map(
      entries.toSorted((one, other) => one.failedAtMs - other.failedAtMs).map((entry) => [entry.id, entry]),
    )
    const letters = [...last.values()].map((entry) => ({
      handle: deadLetterHandle(entry.id),
      entry,
      redrivenAtMs: undefined,
    }))
    const unreadable = read.flatMap(({ place, entry }) => ('problem' in entry ? { place, ...entry } : []))
    return { title: `queue ${queueUrl}`, letters, unreadable }
  } catch (error) {
    throw new ConfigurationError(`The queue ${queueUrl} cannot be read: ${oneLine(error)}`, { cause: error })
  }
}

function sqsClient(endpoint: string | undefined): SQSClient {
  if (endpoint === undefined) return createSQSClient()
  const { region, accessKeyId, secretAccessKey } = localIdentity
  return new SQSClient({
    ...clientSettings({ endpoint, region }),
    useQueueUrlAsEndpoint: false,
    credentials: { accessKeyId, secretAccessKey },
  })
}

function oneLine(error: unknown): string {
  const { name, message } = describeError(error)
  return `${name === 'Error' ? '' : `${name}: `}${message.split('\n')[0]}`
}
