/** The main job: replay, process, read back, compare. */
import { access, constants } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { flightsApp } from '../../functions/flights/topology.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import { LatenessReport } from '../../lib/local/display/lateness-report.ts'
import { grouped, type RunDisplay } from '../../lib/local/display/run-display.ts'
import { ProgressFile } from '../../lib/local/files/progress-file.ts'
import { type LocalApplication, startLocalApplication } from '../../lib/local/run/application.ts'
import { plan } from '../../lib/plan/plan.ts'
import { announceServices, type RunFacts, readRunFacts, writeRunFacts } from '../cli/local-run.ts'
import { airportStage } from './airport-states.ts'
import { checkAirports, readAirports, readFlights } from './data-set.ts'
import { type ReportedJob, reportResult } from './final-report.ts'
import { inputRecords } from './input.ts'
import { commandFor, type StartOptions, usageCode } from './options.ts'
import { processInput, until } from './processing.ts'
import { OutputReader } from './read-outputs.ts'
import { type ReplayProgress, type RunSettings, readProgress } from './replay.ts'

/** Where the project is and where its state goes. */
export interface Places {
  readonly root: string
  /** Relative to the working directory, so that it reads well. */
  readonly stateDirectory: string
}

interface Job extends ReportedJob {
  readonly places: Places
  readonly settings: RunSettings
  readonly progressFile: string
  readonly progress: ProgressFile<ReplayProgress>
  /** The run that this one goes on with. */
  readonly earlier: ReplayProgress | undefined
  readonly fresh: boolean
  readonly signal: AbortSignal
}

const program = 'npm start'
const firstWeekEnds = '2001-01-08'
const mostWorkers = 4
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
  if (!options.fresh) await checkOwner(places)
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

/** What another program has sent is in no batch computation here. */
async function checkOwner({ stateDirectory }: Places): Promise<void> {
  const facts = await readRunFacts(stateDirectory)
  if (facts === undefined || facts.madeBy === program) return
  throw new ConfigurationError(
    `${stateDirectory} was used by ${facts.madeBy ?? '`millrace dev`'} last, whose input is none of this job's: add --fresh to drop it and start over.`,
    { code: usageCode },
  )
}

function otherRun({ settings, sent }: ReplayProgress): ConfigurationError {
  return new ConfigurationError(
    `A run with other flags was interrupted after ${grouped(sent)} records: go on with \`${commandFor(settings)}\`, or add --fresh to drop it.`,
    { code: usageCode },
  )
}

function streamLost({ places }: Job): ConfigurationError {
  return new ConfigurationError(
    `A stream of the last run is gone from ${places.stateDirectory}, or an older version made it: start over with --fresh.`,
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
  const lateness = new LatenessReport()
  display.say(
    `Starting Kinesis with ${settings.shards} shards, a DynamoDB, and the two functions that would run on Lambda in worker processes. Ctrl-C stops the run; the next one goes on there.`,
  )
  const app = await startLocalApplication({
    topology: flightsApp,
    entry: join(places.root, 'functions/flights/handler.ts'),
    directory: places.stateDirectory,
    fresh,
    port: options.port,
    shards: settings.shards,
    // Of each stage: more than there are processors only wait for one another.
    workers: Math.min(settings.shards, mostWorkers, availableParallelism()),
    affinity: 'shards',
    // The reports are of 2001: while none comes, no time passes in them.
    input: 'bounded',
    onOutput: (output, records) => reader.take(output, records),
    onMetrics: (stage, _workerId, metrics) => lateness.take(stage, metrics),
  })
  const closing = new Closing()
  closing.defer(() => app.stop())
  try {
    await tellOthers(job, app, closing)
    const isLost = ['flights', airportStage].some((name) => app.streamOf(name).isNew)
    if (job.earlier !== undefined && job.earlier.sent > 0 && isLost) throw streamLost(job)
    const { outcomes, hours } = reader
    const session = await processInput({ ...job, outcomes, hours, speed: options.speed }, app)
    if (session !== undefined) {
      for (const line of lateness.lines(plan(flightsApp))) display.say(line)
      const isEqual = await reportResult(job, app, reader, session)
      if (isEqual) await saveFinished(job)
      return isEqual ? 0 : 1
    }
    await app.halt()
    const haltedAtMs = systemClock.nowMs()
    await until(() => app.hasReadOutputs(haltedAtMs), AbortSignal.timeout(lastReadMs))
  } finally {
    await closing.close()
  }
  const { sent } = (await readProgress(job.progressFile)) ?? { sent: 0 }
  display.say(
    `Stopped: ${grouped(sent)} of ${grouped(job.input.length)} records are sent, ${grouped(reader.outcomes.total)} are processed. Go on with \`${commandFor(settings)}\`.`,
  )
  return 0
}

/** Other commands find the topology of the run, and its services while it is up. */
async function tellOthers({ places }: Job, app: LocalApplication, closing: Closing): Promise<void> {
  const [topologyFile, handlerFile] = ['topology', 'handler'].map((name) => fileOf(places, `${name}.ts`))
  await writeRunFacts(places.stateDirectory, { topologyFile, handlerFile, madeBy: program } as RunFacts)
  await announceServices(places.stateDirectory, app.endpoints, closing)
}

const fileOf = ({ root }: Places, name: string): string => relative('.', join(root, 'functions/flights', name))

async function saveFinished({ progress, settings, input, display, signal }: Job): Promise<void> {
  let said: string | undefined
  const onBlocked = (problem: string | undefined) => {
    if (problem !== undefined && problem !== said) display.say(`blocked: ${problem}`)
    said = problem
  }
  await progress.save({ settings, sent: input.length, finished: true }, { signal, onBlocked })
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
