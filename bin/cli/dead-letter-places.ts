/** Where dead letters are: with a local run, in a stream, in a queue, or in a topic. */
import { join } from 'node:path'
import { DescribeStreamSummaryCommand, type KinesisClient } from '@aws-sdk/client-kinesis'
import { HeldQueue } from '../../lib/aws/dead-letters/queue.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { ShardReader } from '../../lib/emulator/event-source-mapping/index.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { DeployedFunction } from '../../lib/local/dead-letters/lambda.ts'
import { DeadLetterLog } from '../../lib/local/dead-letters/log.ts'
import { QueueLetters } from '../../lib/local/dead-letters/queue-log.ts'
import type { LetterLog } from '../../lib/local/dead-letters/redrive.ts'
import { SettlementFile } from '../../lib/local/dead-letters/settlement.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'
import { TopicReader } from '../../lib/local/reading/topic-reader.ts'
import type { LocalEndpoints } from '../../lib/local/run/endpoints.ts'
import { localKinesisClient } from '../../lib/local/run/streams.ts'
import type { StageBindings, StreamPlace } from '../../lib/plan/stage-bindings.ts'
import { type Arguments, usage } from './arguments.ts'
import { kinesisClient, lambdaClient, sqsClient } from './dead-letter-clients.ts'
import type { ListedLetter } from './dead-letter-text.ts'
import { kafkaClients } from './kafka-clients.ts'
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

const remoteFlags = ['stream', 'queue', 'topic'] as const

/** Whether the flags name a place elsewhere than with a local run. Throws where they name several. */
export function isElsewhere(args: Arguments): boolean {
  const places = ['app', ...remoteFlags].filter((flag) => args.has(flag))
  if (places.length > 1) throw usage(`--${places.join(' and --')} name different places: give one.`)
  return remoteFlags.some((flag) => args.has(flag))
}

/** Opens what the flags `app`, `stream`, `queue`, `topic`, `function` and `endpoint` mean. */
export async function openLetters(args: Arguments, closing: Closing): Promise<Letters> {
  const elsewhere = isElsewhere(args)
  if (args.has('endpoint') && !elsewhere) throw usage('--endpoint goes with --stream, --queue or --topic.')
  if (args.has('function') && !args.has('topic')) throw usage('--function goes with --topic.')
  const place = elsewhere
    ? await openRemoteLetters(args, closing)
    : await openLocalLetters(await runNamed(args.text('app')), closing)
  const { title, log, settlements } = place
  const letters = log.letters.map((letter) => ({
    ...letter,
    redrivenAtMs: settlements.isSettled(letter) ? settlements.settlementOf(letter)?.redrivenAtMs : undefined,
  }))
  return { title, letters, unreadable: log.unreadable }
}

/** Opens the dead letters of a stream, a queue or a topic, on AWS or on an endpoint. The messages of a queue are held until the closing. */
export function openRemoteLetters(args: Arguments, closing: Closing): Promise<LetterPlace> {
  const [stream, queue = '', endpoint] = [args.text('stream'), args.text('queue'), args.text('endpoint')]
  if (args.has('topic')) return topicLetters(args, closing)
  return stream === undefined ? queueLetters(queue, endpoint, closing) : streamLetters(stream, endpoint, closing)
}

/** Opens the dead letters of a local run, whether it is up or not. */
export async function openLocalLetters(app: string, closing: Closing): Promise<LocalPlace> {
  const directory = directoryOf(app)
  const endpoints = await reachRun(directory, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const deadLetterStream = `${app}-dead-letters`
  const log = await readLog(new KinesisShardReader({ client, streamName: deadLetterStream, clock: systemClock }))
  const settlements = await SettlementFile.open(join(directory, 'redriven.ndjson'))
  return { app, title: `${app} (${directory})`, directory, endpoints, client, deadLetterStream, log, settlements }
}

/** Where redrives of that stream, queue or topic keep what they must remember. */
export function remoteDirectory(args: Arguments): string {
  const [stream, queue = '', topic] = [args.text('stream'), args.text('queue'), args.text('topic')]
  if (topic !== undefined) return redriveDirectory('topic', topic)
  return stream === undefined ? redriveDirectory('queue', queueName(queue)) : redriveDirectory('stream', stream)
}

async function streamLetters(stream: string, endpoint: string | undefined, closing: Closing): Promise<LetterPlace> {
  const client = kinesisClient(endpoint)
  closing.defer(() => client.destroy())
  const log = await readLog(new KinesisShardReader({ client, streamName: stream, clock: systemClock }))
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

/** The function whose dead letters are in the topic says how its cluster is reached. */
async function topicLetters(args: Arguments, closing: Closing): Promise<LetterPlace> {
  const [topic = '', name, endpoint] = [args.text('topic'), args.text('function'), args.text('endpoint')]
  if (name === undefined) throw usage('--topic needs --function NAME, which knows how its cluster is reached.')
  const lambda = lambdaClient(endpoint)
  closing.defer(() => lambda.destroy())
  const { bindings } = await DeployedFunction.open(lambda, name)
  const { deadLetters } = bindings
  if (deadLetters.kind !== 'kafka' || deadLetters.topic !== topic) throw otherPlace(name, bindings)
  const kafka = await kafkaClients(endpoint, closing)()
  const reader = new TopicReader({ reader: kafka.reader(deadLetters.cluster), topic, clock: systemClock })
  const log = await readLog(reader)
  const directory = redriveDirectory('topic', topic)
  // Another topic of that name has other offsets, here or in another cluster, and another id.
  const { id } = await reader.describe()
  const settlements = await SettlementFile.open(join(directory, `redriven-${id}.ndjson`))
  return { title: `topic ${topic}`, directory, log, settlements }
}

/** That the dead letters of a function are elsewhere than was said. */
export function otherPlace(name: string, { deadLetters }: StageBindings): ConfigurationError {
  const wrong = (where: string) =>
    new ConfigurationError(`The function ${name} gives its dead letters to ${where}: name that place.`)
  switch (deadLetters.kind) {
    case 'kafka':
      return wrong(`the topic ${deadLetters.topic}`)
    case 's3':
      return wrong(`the bucket ${deadLetters.bucket}, from which redrive does not read them`)
    case 'sqs':
      return wrong(`the queue ${deadLetters.queueUrl}`)
    case 'kinesis':
      return wrong(`the stream ${streamNameOf(deadLetters)}`)
  }
}

export const streamNameOf = (place: StreamPlace): string =>
  'streamArn' in place ? (place.streamArn.split('stream/')[1] ?? '') : place.streamName

async function readLog(reader: ShardReader): Promise<DeadLetterLog> {
  const log = new DeadLetterLog(reader)
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
