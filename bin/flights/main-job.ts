/** The main job: replay, process, read back, compare. */
import { access, constants, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { flightsApp } from '../../functions/flights/topology.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { type LocalApplication, startLocalApplication } from '../../lib/local/local-application.ts'
import { ProgressFile } from '../../lib/local/progress-file.ts'
import { grouped, type RunDisplay } from '../../lib/local/run-display.ts'
import type { AirportRow } from './airports-json.ts'
import { batchScan } from './batch-scan.ts'
import { checkAirports, type FlightRow, readAirports, readFlights } from './data-set.ts'
import { type InputRecord, inputRecords } from './input.ts'
import { commandFor, type StartOptions, usageCode } from './options.ts'
import { processInput, type Session, until } from './processing.ts'
import { OutputReader } from './read-outputs.ts'
import { type ReplayProgress, type RunSettings, readProgress } from './replay.ts'
import { compare, comparisonTable, differenceLines, exampleLines, figures } from './report.ts'

/** Where the project is and where its state goes. */
export interface Places {
  readonly root: string
  /** Relative to the working directory, so that it reads well. */
  readonly stateDirectory: string
}

interface Job {
  readonly options: StartOptions
  readonly places: Places
  readonly settings: RunSettings
  readonly progressFile: string
  readonly progress: ProgressFile<ReplayProgress>
  /** The run that this one goes on with. */
  readonly earlier: ReplayProgress | undefined
  readonly fresh: boolean
  readonly flights: readonly FlightRow[]
  readonly airports: readonly AirportRow[]
  readonly input: readonly InputRecord[]
  readonly display: RunDisplay
  readonly signal: AbortSignal
}

const firstWeekEnds = '2001-01-08'
/** How long an interrupted run waits to see its last outputs. */
const lastReadMs = 5_000

/** Runs the job to its end or its interruption. Resolves with the exit code. */
export async function runMainJob(
  options: StartOptions,
  places: Places,
  display: RunDisplay,
  signal: AbortSignal,
): Promise<number> {
  const settings: RunSettings = { limit: options.limit, corrupt: options.corrupt, shards: options.shards }
  const progressFile = join(places.stateDirectory, 'replay.json')
  const found = options.fresh ? undefined : await readProgress(progressFile)
  const isOther = found !== undefined && commandFor(found.settings) !== commandFor(settings)
  if (isOther && !found.finished) throw otherRun(found)
  const earlier = isOther ? undefined : found
  if (isOther) display.say(`The run of \`${commandFor(found.settings)}\` was complete; this one starts over.`)

  const data = options.data ?? join(places.root, 'node_modules/vega-datasets/data')
  const selection = settings.limit === undefined ? { before: firstWeekEnds } : { rows: settings.limit }
  const [flights, airports] = await Promise.all([readFlights(data, selection), readAirports(data)])
  await checkAirports(airports, data, join(places.root, 'functions/flights/airports.json'))
  const input = inputRecords(flights, settings.corrupt)
  const fresh = options.fresh || isOther
  const progress = new ProgressFile<ReplayProgress>(progressFile, systemClock)
  const kept = { progressFile, progress, earlier, fresh }
  const job = { options, places, settings, ...kept, flights, airports, input, display, signal }
  introduce(job)
  return withApplication(job)
}

function otherRun({ settings, sent }: ReplayProgress): ConfigurationError {
  return new ConfigurationError(
    `A run with other flags was interrupted after ${grouped(sent)} records: go on with \`${commandFor(settings)}\`, or add --fresh to drop it.`,
    { code: usageCode },
  )
}

function streamLost({ places }: Job): ConfigurationError {
  return new ConfigurationError(
    `The stream of the last run is gone from ${places.stateDirectory}: start over with --fresh.`,
  )
}

function introduce({ flights, settings, input, earlier, display }: Job): void {
  const [first, last] = [flights[0], flights.at(-1)]
  const planted = settings.corrupt === 0 ? '' : `, and ${grouped(settings.corrupt)} bad records planted among them`
  display.say(
    `Input: ${grouped(flights.length)} US flights of 2001 in the order in which they became known (scheduled time plus delay)${planted}.`,
  )
  display.say(
    `Their scheduled times run from ${first?.scheduled} to ${last?.scheduled}: local wall times, which the file gives without a zone. They are read as if they were UTC.`,
  )
  if (earlier === undefined) return
  if (earlier.finished) display.say('An earlier run processed everything. Its report again (--fresh starts over):')
  else
    display.say(
      `Going on where the last run stopped: ${grouped(earlier.sent)} of ${grouped(input.length)} records were sent.`,
    )
}

async function withApplication(job: Job): Promise<number> {
  const { options, places, settings, fresh, display } = job
  const reader = new OutputReader()
  display.say(
    `Starting Kinesis with ${settings.shards} shards, and the function that would run on Lambda in worker processes. Ctrl-C stops the run; the next one goes on there.`,
  )
  const app = await startLocalApplication({
    topology: flightsApp,
    entry: join(places.root, 'functions/flights/handler.ts'),
    directory: places.stateDirectory,
    fresh,
    port: options.port,
    shards: settings.shards,
    onOutput: (output, records) => reader.take(output, records),
  })
  try {
    if (job.earlier !== undefined && job.earlier.sent > 0 && app.streamOf('flights').isNew) throw streamLost(job)
    const session = await processInput({ ...job, outcomes: reader.outcomes, speed: options.speed }, app)
    if (session !== undefined) return await report(job, app, reader, session)
    await app.halt()
    const haltedAtMs = systemClock.nowMs()
    await until(() => app.hasReadOutputs(haltedAtMs), AbortSignal.timeout(lastReadMs))
  } finally {
    await app.stop()
  }
  const { sent } = (await readProgress(job.progressFile)) ?? { sent: 0 }
  display.say(
    `Stopped: ${grouped(sent)} of ${grouped(job.input.length)} records are sent, ${grouped(reader.outcomes.total)} are processed. Go on with \`${commandFor(settings)}\`.`,
  )
  return 0
}

async function report(job: Job, app: LocalApplication, reader: OutputReader, session: Session): Promise<number> {
  const { display, places, input, flights, airports, options } = job
  const expected = batchScan(input, flights, airports)
  const comparison = compare(reader.outcomes, expected)
  const { repeats } = reader.outcomes
  const say = (lines: readonly string[]) => {
    for (const line of lines) display.say(line)
  }
  const ms = session.endedAtMs - session.startedAtMs
  const streamNames = app
    .status()
    .outputs.map(({ streamName }) => streamName)
    .join(', ')
  say([
    '',
    sessionLine(session, ms),
    `Read back from the streams ${streamNames}, beside a batch scan of the same input that shares no code with the topology:`,
    '',
    ...comparisonTable(comparison),
    '',
    `Repeats: ${grouped(repeats)} outputs came more than once and are counted once (delivery is at least once; an interrupted run repeats some).`,
  ])
  if (reader.examples.length > 0) say(['', 'One example of each:', ...exampleLines(reader.examples)])
  say(['', `State: ${places.stateDirectory}. Log of the function: ${app.logFile}.`])
  if (options.json !== undefined)
    await writeFigures(options, comparison.isEqual, figures(comparison, repeats, { records: session.records, ms }))
  if (!comparison.isEqual) {
    say([
      `DIFFERENT: ${grouped(comparison.differences.length)} outcomes differ from the batch scan:`,
      ...differenceLines(comparison),
    ])
    return 1
  }
  await saveFinished(job)
  say(['equal: every record has the outcome and the content that the batch scan says.'])
  return 0
}

async function saveFinished({ progress, settings, input, display, signal }: Job): Promise<void> {
  let said: string | undefined
  const onBlocked = (problem: string | undefined) => {
    if (problem !== undefined && problem !== said) display.say(`blocked: ${problem}`)
    said = problem
  }
  await progress.save({ settings, sent: input.length, finished: true }, { signal, onBlocked })
}

function sessionLine({ records, startedAtMs, endedAtMs }: Session, ms: number): string {
  if (records === 0) return 'Nothing was left to process in this run.'
  const [from, to] = [startedAtMs, endedAtMs].map((atMs) => `${new Date(atMs).toISOString().slice(0, 19)}Z`)
  const perSecond = grouped((records / ms) * 1_000)
  return `Processed ${grouped(records)} records from ${from} to ${to}: ${(ms / 1_000).toFixed(1)} s, ${perSecond} records/s.`
}

async function writeFigures(options: StartOptions, ok: boolean, list: ReturnType<typeof figures>): Promise<void> {
  const { json = '' } = options
  const command = `${commandFor(options)}`
  try {
    await writeFile(json, `${JSON.stringify({ command, ok, figures: list }, null, 2)}\n`)
  } catch (error) {
    throw new ConfigurationError(`The figures cannot be written to ${json}: ${describeError(error).message}.`)
  }
}

/** Checks that the figures can be written before the work begins. */
export async function checkJsonFile(path: string): Promise<void> {
  try {
    await access(dirname(resolve(path)), constants.W_OK)
  } catch (error) {
    throw new ConfigurationError(`--json ${path} cannot be written: ${describeError(error).message}.`, {
      code: usageCode,
    })
  }
}
