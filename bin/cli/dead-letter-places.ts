/** Where dead letters are: with a local run, in a stream, or in a queue. */
import { join } from 'node:path'
import { DescribeStreamSummaryCommand, type KinesisClient } from '@aws-sdk/client-kinesis'
import { HeldQueue } from '../../lib/aws/dead-letter-queue.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { DeadLetterLog } from '../../lib/local/dead-letter-log.ts'
import { QueueLetters } from '../../lib/local/dead-letter-queue-log.ts'
import type { LetterLog } from '../../lib/local/dead-letter-redrive.ts'
import { SettlementFile } from '../../lib/local/dead-letter-settlement.ts'
import { KinesisShardReader } from '../../lib/local/kinesis-shard-reader.ts'
import type { LocalEndpoints } from '../../lib/local/local-endpoints.ts'
import { localKinesisClient } from '../../lib/local/local-streams.ts'
import { type Arguments, usage } from './arguments.ts'
import { kinesisClient, sqsClient } from './dead-letter-clients.ts'
import type { ListedLetter } from './dead-letter-text.ts'
import { directoryOf, reachRun, redriveDirectory, runNamed } from './local-run.ts'

/** Dead letters, and the file that remembers which were redriven. */
export interface LetterPlace {
  readonly title: string
  /** Where the file and the lock of its redrives are. */
  readonly directory: string
  readonly log: LetterLog & Pick<DeadLetterLog, 'letters' | 'unreadable'> & { readonly undeleted?: number }
  readonly settlements: SettlementFile
}

/** The dead letters of a local run, and what a redrive needs to know of it. */
export interface LocalPlace extends LetterPlace {
  readonly app: string
  readonly endpoints: LocalEndpoints
  readonly client: KinesisClient
  readonly deadLetterStream: string
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
  if (endpoint !== undefined && stream === undefined && queue === undefined) {
    throw usage('--endpoint goes with --stream or --queue.')
  }
  const place =
    stream !== undefined || queue !== undefined
      ? await openRemoteLetters(args, closing)
      : await openLocalLetters(await runNamed(args.text('app')), closing)
  const { title, log, settlements } = place
  const letters = log.letters.map((letter) => ({
    ...letter,
    redrivenAtMs: settlements.isSettled(letter) ? settlements.settlementOf(letter)?.redrivenAtMs : undefined,
  }))
  return { title, letters, unreadable: log.unreadable }
}

/** Opens the dead letters of a stream or a queue, on AWS or on an endpoint. The messages of a queue are held until the closing. */
export function openRemoteLetters(args: Arguments, closing: Closing): Promise<LetterPlace> {
  const [stream, queue = '', endpoint] = [args.text('stream'), args.text('queue'), args.text('endpoint')]
  return stream === undefined ? queueLetters(queue, endpoint, closing) : streamLetters(stream, endpoint, closing)
}

/** Opens the dead letters of a local run, whether it is up or not. */
export async function openLocalLetters(app: string, closing: Closing): Promise<LocalPlace> {
  const directory = directoryOf(app)
  const endpoints = await reachRun(directory, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const deadLetterStream = `${app}-dead-letters`
  const log = await readStream(client, deadLetterStream)
  const settlements = await SettlementFile.open(join(directory, 'redriven.ndjson'))
  return { app, title: `${app} (${directory})`, directory, endpoints, client, deadLetterStream, log, settlements }
}

/** Where redrives of that stream or queue keep what they must remember. */
export function remoteDirectory(args: Arguments): string {
  const [stream, queue = ''] = [args.text('stream'), args.text('queue')]
  return stream === undefined ? redriveDirectory('queue', queueName(queue)) : redriveDirectory('stream', stream)
}

async function streamLetters(stream: string, endpoint: string | undefined, closing: Closing): Promise<LetterPlace> {
  const client = kinesisClient(endpoint)
  closing.defer(() => client.destroy())
  const log = await readStream(client, stream)
  const { StreamDescriptionSummary } = await client.send(new DescribeStreamSummaryCommand({ StreamName: stream }))
  const [, , , region = '', account = ''] = (StreamDescriptionSummary?.StreamARN ?? '').split(':')
  const directory = redriveDirectory('stream', stream)
  const settlements = await settlementsOf(directory, [region, account], endpoint)
  return { title: `stream ${stream}`, directory, log, settlements }
}

/** The same name may stand for a stream or queue elsewhere, so the file is called after account, region and endpoint. */
function settlementsOf(
  directory: string,
  whose: readonly string[],
  endpoint: string | undefined,
): Promise<SettlementFile> {
  const where = [...whose, ...(endpoint === undefined ? [] : [URL.parse(endpoint)?.host ?? endpoint])]
  return SettlementFile.open(join(directory, `redriven-${where.join('-').replaceAll(/[^\w.-]/g, '_')}.ndjson`))
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

async function queueLetters(queueUrl: string, endpoint: string | undefined, closing: Closing): Promise<LetterPlace> {
  const client = sqsClient(endpoint)
  closing.defer(() => client.destroy())
  const queue = new HeldQueue({ client, queueUrl })
  // One that cannot be given back is visible again when its time is up.
  closing.defer(() => queue.release().catch(() => undefined))
  const log = new QueueLetters(queue)
  try {
    await log.refresh()
  } catch (error) {
    throw new ConfigurationError(`The queue ${queueUrl} cannot be read: ${oneLine(error)}`, { cause: error })
  }
  const url = URL.parse(queueUrl)
  const [account = ''] = queuePath(queueUrl).split('/')
  const directory = redriveDirectory('queue', queueName(queueUrl))
  const settlements = await settlementsOf(directory, [url?.host ?? '', account], endpoint)
  return { title: `queue ${queueUrl}`, directory, log, settlements }
}

const queueName = (queueUrl: string): string => queuePath(queueUrl).split('/').at(-1) ?? ''

/** `<account>/<name>`: hosts differ by who looks, inside and outside of an emulator. */
export const queuePath = (queueUrl: string): string =>
  (URL.parse(queueUrl)?.pathname ?? '').split('/').slice(-2).join('/')

function oneLine(error: unknown): string {
  const { name, message } = describeError(error)
  return `${name === 'Error' ? '' : `${name}: `}${message.split('\n')[0]}`
}
