/** `millrace dead-letters redrive`: of a local run by its own files, elsewhere by the deployed function. */
import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createDynamoDBClient } from '../../lib/aws/clients/dynamodb.ts'
import { readDeadLetterObject } from '../../lib/aws/dead-letters/object.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { LocalFunction } from '../../lib/local/dead-letters/function.ts'
import { lookUpRecord } from '../../lib/local/dead-letters/kinesis-record-lookup.ts'
import { DeployedFunction } from '../../lib/local/dead-letters/lambda.ts'
import type { LoggedDeadLetter } from '../../lib/local/dead-letters/log.ts'
import { type RedriveOptions, type RedriveOutcome, redrive } from '../../lib/local/dead-letters/redrive.ts'
import { withOthersOfTheirRecords } from '../../lib/local/dead-letters/same-record.ts'
import { lookUpTopicRecord } from '../../lib/local/dead-letters/topic-record-lookup.ts'
import { grouped } from '../../lib/local/display/run-display.ts'
import { takeLock } from '../../lib/local/files/directory-lock.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { plan } from '../../lib/plan/plan.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { type Arguments, usage } from './arguments.ts'
import type { Say } from './command.ts'
import { kinesisClient, lambdaClient, s3Client } from './dead-letter-clients.ts'
import { generationsOf } from './dead-letter-generations.ts'
import {
  isElsewhere,
  type LetterPlace,
  type LocalPlace,
  openLocalLetters,
  openRemoteLetters,
  otherPlace,
  queuePath,
  remoteDirectory,
  streamNameOf,
} from './dead-letter-places.ts'
import { outcomeText, theLetter } from './dead-letter-text.ts'
import { interruption } from './interruption.ts'
import { kafkaClients } from './kafka-clients.ts'
import { directoryOf, readRunFacts, runNamed } from './local-run.ts'
import { handlerBeside, loadUserCode } from './user-code.ts'
import { counted } from './words.ts'

/** What differs by where the function is. */
type Target = Pick<
  RedriveOptions,
  'topology' | 'sources' | 'generations' | 'function' | 'streams' | 'readSource' | 'visibleAfterMs'
>

/** Redrives what the flags choose, and resolves with the exit code. */
export async function runRedrive(args: Arguments, say: Say, closing: Closing): Promise<number> {
  checkFlags(args)
  return args.has('function') ? redriveDeployed(args, say, closing) : redriveLocal(args, say, closing)
}

function checkFlags(args: Arguments): void {
  if (!args.has('all') && !args.has('reason') && !args.has('id')) throw usage('Say which: --all, --reason or --id.')
  if (args.has('all') && (args.has('reason') || args.has('id')))
    throw usage('--all goes with neither --reason nor --id.')
  const elsewhere = isElsewhere(args)
  if (elsewhere && !args.has('function'))
    throw usage('--stream, --queue and --topic need --function NAME, which takes the records.')
  for (const flag of elsewhere ? ['topology', 'handler'] : ['function', 'endpoint']) {
    if (args.has(flag)) throw usage(`--${flag} goes ${elsewhere ? 'without' : 'with'} --stream, --queue or --topic.`)
  }
}

async function redriveLocal(args: Arguments, say: Say, closing: Closing): Promise<number> {
  const app = await runNamed(args.text('app'))
  // Before anything is read: another redrive may be settling what this one would find open.
  closing.defer(await takeLock(join(directoryOf(app), 'redrive.lock')))
  const place = await openLocalLetters(app, closing)
  const chosen = choose(args, place, say)
  if (chosen.length === 0) return nothing(say)
  const logFile = join(place.directory, 'redrive.log')
  const target = await localTarget(args, place, logFile, closing)
  const code = await redriveTo(target, args, place, chosen, say, closing)
  say(`Log of the function: ${logFile}.`)
  return code
}

async function localTarget(args: Arguments, place: LocalPlace, logFile: string, closing: Closing): Promise<Target> {
  const { directory, endpoints, client, deadLetterStream } = place
  const { planned, handlerFile, tables } = await application(args, place)
  const own = await LocalFunction.start({
    ...{ planned, entry: handlerFile, directory, endpoints, client, deadLetterStream, tables },
    // A log that cannot be written must not end the redrive.
    onLine: (line) => void appendFile(logFile, `${line}\n`).catch(() => undefined),
  })
  closing.defer(() => own.stop())
  const sources = planned.graph.sources.map(({ name }) => name)
  const streams = own.keyedStreams()
  const dynamodb = localDynamoDBClient(endpoints.dynamodb)
  closing.defer(() => dynamodb.destroy())
  const generations = await generationsOf(own.stages(), dynamodb)
  const readSource: Target['readSource'] = (entry) => own.readSource(entry)
  return { topology: planned.topology, sources, generations, function: own, streams, readSource }
}

/** The application as its files are now: what was fixed is what runs. */
async function application(args: Arguments, { directory, app }: LocalPlace) {
  const facts = await readRunFacts(directory)
  const topologyFile = args.text('topology') ?? facts?.topologyFile
  if (topologyFile === undefined) throw usage(`${directory} does not say whose it is: add --topology FILE.`)
  const beside = args.has('topology') ? undefined : facts?.handlerFile
  const handlerFile = args.text('handler') ?? beside ?? handlerBeside(topologyFile)
  const { topology } = await loadUserCode(topologyFile, handlerFile)
  if (topology.name === app) {
    const planned = plan(topology)
    // A sink that the topology has lost since needs no table.
    const isSink = ([name]: readonly [string, unknown]) => planned.graph.sinks.some((sink) => sink.name === name)
    const tables = Object.fromEntries(Object.entries(facts?.tables ?? {}).filter(isSink))
    return { planned, handlerFile, tables }
  }
  throw new ConfigurationError(`${topologyFile} exports topology "${topology.name}", not "${app}": give --topology.`)
}

/** A stream shows what was put a moment ago, and a queue what was sent, only after a while. */
const visibleAfterMs = 1_000

async function redriveDeployed(args: Arguments, say: Say, closing: Closing): Promise<number> {
  const endpoint = args.text('endpoint')
  const lambda = lambdaClient(endpoint)
  closing.defer(() => lambda.destroy())
  const own = await DeployedFunction.open(lambda, args.text('function') ?? '')
  const { topology, sources, feeds = [] } = own.bindings
  if (!areThere(args, own.bindings)) throw otherPlace(args.text('function') ?? '', own.bindings)
  const directory = remoteDirectory(args)
  await mkdir(directory, { recursive: true })
  closing.defer(await takeLock(join(directory, 'redrive.lock')))
  const place = await openRemoteLetters(args, closing)
  const { log, settlements } = place
  // What was settled when a redrive ended before it could take it out.
  await log.discard?.(log.letters.filter((letter) => settlements.isSettled(letter)))
  const names = sources.map(({ name }) => name)
  const fed = feeds.map(({ stage }) => stage)
  const isIts = ({ entry }: LoggedDeadLetter) =>
    entry.topology === topology && (entry.keyed ? fed.includes(entry.stage) : [...names, ...fed].includes(entry.source))
  const asked = choose(args, place, say)
  const chosen = args.has('id') ? asked : asked.filter(isIts)
  const others = asked.length - chosen.length
  if (others > 0)
    say(`${counted(others, 'dead letter')} of other ${placesOf(names, fed)}: left for their own functions.`)
  if (chosen.length === 0) return nothing(say)
  const kinesis = kinesisClient(endpoint)
  closing.defer(() => kinesis.destroy())
  const kafka = kafkaClients(endpoint, closing)
  const readSource: Target['readSource'] = async (entry) => {
    const source = sources.find(({ name }) => name === entry.source)
    if (source?.kind === 'kinesis') return lookUpRecord(kinesis, { StreamARN: source.streamArn }, entry)
    if (source?.kind !== 'kafka') return undefined
    if (source.cluster === undefined) throw new Error('its function is not told how the cluster is reached')
    return lookUpTopicRecord((await kafka()).reader(source.cluster), entry)
  }
  const streams = own.keyedStreams(kinesis, kafka)
  const dynamodb = endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint)
  closing.defer(() => dynamodb.destroy())
  const generations = await generationsOf([own.bindings], dynamodb)
  const target = { topology, sources: names, generations, function: own, streams, readSource, visibleAfterMs }
  const code = await redriveTo(target, args, place, chosen, say, closing)
  const { undeleted = 0 } = log
  if (undeleted > 0)
    say(`${counted(undeleted, 'message')} could not be deleted: the next redrive from here deletes what is done.`)
  return code
}

/** What a function takes dead letters of: its source, and the keyed stages that it feeds. */
const placesOf = (sources: readonly string[], fed: readonly string[]): string =>
  fed.length === 0
    ? `sources than ${sources.join(', ')}`
    : `sources and keyed stages than ${[...sources, ...fed].join(', ')}`

/** Whether dead letters of the function are where the flags say: otherwise one that is given up again would go where nobody looks. */
function areThere(args: Arguments, { deadLetters }: StageBindings): boolean {
  const [stream, queue, topic] = [args.text('stream'), args.text('queue'), args.text('topic')]
  switch (deadLetters.kind) {
    case 'kafka':
      return topic === deadLetters.topic
    case 's3':
      return false
    case 'sqs':
      return queue !== undefined && queuePath(queue) === queuePath(deadLetters.queueUrl)
    case 'kinesis':
      return stream === streamNameOf(deadLetters)
  }
}

function nothing(say: Say): number {
  say('Nothing to redrive.')
  return 0
}

/** The open ones that are asked for, with the others of their records; says of a named one that it was redriven already. */
function choose(args: Arguments, { log, settlements, title }: LetterPlace, say: Say): readonly LoggedDeadLetter[] {
  const reason = args.text('reason')
  const named = args.texts('id').map((typed) => theLetter(log.letters, typed, title))
  for (const letter of named) {
    if (settlements.isSettled(letter)) say(`${letter.handle}  redriven already`)
  }
  const open = log.letters.filter((letter) => !settlements.isSettled(letter))
  const chosen = open.filter(
    (letter) =>
      (!args.has('id') || named.includes(letter)) && (reason === undefined || letter.entry.reason.code === reason),
  )
  const all = withOthersOfTheirRecords(chosen, open)
  const others = all.length - chosen.length
  if (others > 0)
    say(
      `${counted(others, 'dead letter')} of the same records, which are sent with all of their outputs: redriven too.`,
    )
  return all
}

async function redriveTo(
  target: Target,
  args: Arguments,
  { log, settlements }: LetterPlace,
  letters: readonly LoggedDeadLetter[],
  say: Say,
  closing: Closing,
): Promise<number> {
  const s3 = s3Client(args.text('endpoint'))
  closing.defer(() => s3.destroy())
  const outcomes: RedriveOutcome[] = []
  try {
    const stopped = await redrive({
      ...target,
      ...{ letters, log, settlements, clock: systemClock },
      readObject: (entry) => readDeadLetterObject(s3, entry),
      signal: interruption(process, systemClock.nowMs, () => say('Stopping behind the record in flight.')),
      onOutcome(letter, outcome) {
        outcomes.push(outcome)
        say(`${letter.handle}  ${outcomeText(outcome)}`)
      },
    })
    if (stopped !== undefined) say(`The redrive ended early: ${stopped}.`)
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    const problem = describeError(error).message.split('\n')[0]
    throw new ConfigurationError(
      `The redrive stopped: ${problem}. What is not reported as done is open: run it again.`,
      { cause: error },
    )
  }
  say(totals(outcomes, letters.length))
  return outcomes.length === letters.length && outcomes.every(({ kind }) => kind === 'done') ? 0 : 1
}

function totals(outcomes: readonly RedriveOutcome[], asked: number): string {
  const count = (kind: RedriveOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind).length
  const untried = asked - outcomes.length
  return [
    `${grouped(count('done'))} done`,
    `${grouped(count('dead-letter'))} given up again`,
    `${grouped(count('returned'))} returned`,
    `${grouped(count('refused'))} refused`,
    ...(untried > 0 ? [`${grouped(untried)} not tried`] : []),
  ].join(', ')
}
