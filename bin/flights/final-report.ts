/** What the main job says at its end: every result beside the batch computation. */
import { writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { flightsApp } from '../../functions/flights/topology.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { grouped, type RunDisplay } from '../../lib/local/display/run-display.ts'
import type { LocalApplication } from '../../lib/local/run/application.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { tableNameOf } from '../../lib/plan/plan.ts'
import { compareAirports, revisionLines } from './airport-report.ts'
import { airportStage, readAirportStates } from './airport-states.ts'
import type { AirportRow } from './airports-json.ts'
import { type BatchTotals, batchAirports } from './batch-airports.ts'
import { batchScan } from './batch-scan.ts'
import type { FlightRow } from './data-set.ts'
import type { InputRecord } from './input.ts'
import { commandFor, type StartOptions } from './options.ts'
import type { Session } from './processing.ts'
import type { OutputReader } from './read-outputs.ts'
import { type Comparison, compare, comparisonTable, differenceLines, exampleLines, figures } from './report.ts'
import { readSourceLog } from './source-log.ts'

export interface ReportedJob {
  readonly options: StartOptions
  readonly places: { readonly root: string; readonly stateDirectory: string }
  readonly flights: readonly FlightRow[]
  readonly airports: readonly AirportRow[]
  readonly input: readonly InputRecord[]
  readonly display: RunDisplay
}

/** Reads back, compares and says so. Resolves with whether all is equal. */
export async function reportResult(
  job: ReportedJob,
  app: LocalApplication,
  reader: OutputReader,
  session: Session,
): Promise<boolean> {
  const { places, input, flights, airports, options } = job
  const [millrace, whose] = [commandOf(places.root), `--app ${flightsApp.name}`]
  const records = compare(reader.outcomes, batchScan(input, flights, airports))
  const batch = batchAirports(await readSourceLog(app.client, app.streamOf('flights').streamName), airports)
  const perAirport = compareAirports(reader.hours, await statesOf(app), batch)
  const say = (lines: readonly string[]) => {
    for (const line of lines) job.display.say(line)
  }
  say(recordLines(app, reader, session, records))
  say(airportLines(reader, perAirport, batch))
  say([
    '',
    `State: ${places.stateDirectory}. Log of the function: ${app.logFile}.`,
    `Look at the state of an airport with \`${millrace} state get ${airportStage} ATL ${whose}\`; \`state list ${airportStage} ${whose}\` lists the airports, \`state explain ${airportStage} ATL ${whose}\` says what was applied and what is due.`,
  ])
  const isEqual = records.isEqual && perAirport.isEqual
  const { repeats } = reader.outcomes
  const ms = session.endedAtMs - session.startedAtMs
  if (options.json !== undefined) {
    const list = figures([records, perAirport], repeats, { records: session.records, ms })
    await writeFigures(options, isEqual, list)
  }
  say(
    isEqual
      ? [equalLine]
      : [
          ...differentLines('outcomes differ from the batch scan', records),
          ...differentLines('results differ from the batch computation', perAirport),
        ],
  )
  return isEqual
}

/** npm runs scripts in the project's folder, with the Node that the project brings. */
function commandOf(root: string): string {
  const place = relative('.', root)
  return place === '' ? 'npm run millrace --' : `node ${join(place, 'bin/millrace.ts')}`
}

const equalLine =
  'equal: every record has the outcome and the content that the batch scan says, and so have every hour, late flight and airport.'

function differentLines(what: string, comparison: Comparison): readonly string[] {
  if (comparison.isEqual) return []
  return [`DIFFERENT: ${grouped(comparison.differences.length)} ${what}:`, ...differenceLines(comparison)]
}

async function statesOf(app: LocalApplication): ReturnType<typeof readAirportStates> {
  const client = localDynamoDBClient(app.endpoints.dynamodb)
  try {
    return await readAirportStates(client)
  } finally {
    client.destroy()
  }
}

function recordLines(
  app: LocalApplication,
  { outcomes, examples }: OutputReader,
  session: Session,
  comparison: Comparison,
): readonly string[] {
  const streamNames = app.status().outputs.map(({ streamName }) => streamName)
  return [
    '',
    sessionLine(session),
    `Read back from the streams ${streamNames.join(', ')}, beside a batch scan of the same input that shares no code with the topology:`,
    '',
    ...comparisonTable(comparison),
    '',
    `Repeats: ${grouped(outcomes.repeats)} outputs came more than once and are counted once (delivery is at least once; an interrupted run repeats some).`,
    ...(examples.length > 0 ? ['', 'One example of each:', ...exampleLines(examples)] : []),
  ]
}

function airportLines({ hours }: OutputReader, comparison: Comparison, batch: BatchTotals): readonly string[] {
  const [first] = hours.example
  const tableName = tableNameOf(flightsApp.name, airportStage)
  return [
    '',
    'Per origin airport and hour of the schedule: flights, mean, maximum and ninth decile of their delays. An hour closes when reports of an hour later are in; within one more hour each late report revises it; what comes later still is in the stream late-flights.',
    `The last revisions, the late flights, and the state of each airport in the table ${tableName}, beside a batch computation over the same reports:`,
    '',
    ...comparisonTable(comparison, ['read back', 'batch computation']),
    ...(batch.repeated === 0
      ? []
      : [
          '',
          `${grouped(batch.repeated)} reports are in the stream twice, as the answer to a request was lost and it was sent again; both sides count them twice.`,
        ]),
    '',
    `Hours were revised ${grouped(hours.revised)} times.${first === undefined ? '' : ` The one that was revised most, ${first.airport} at ${first.hour.slice(0, 13)}h:`}`,
    ...revisionLines(hours.example),
  ]
}

function sessionLine({ records, startedAtMs, endedAtMs }: Session): string {
  if (records === 0) return 'Nothing was left to process in this run.'
  const ms = endedAtMs - startedAtMs
  const [from, to] = [startedAtMs, endedAtMs].map((atMs) => `${new Date(atMs).toISOString().slice(0, 19)}Z`)
  const perSecond = grouped((records / ms) * 1_000)
  return `Processed ${grouped(records)} records from ${from} to ${to}: ${(ms / 1_000).toFixed(1)} s, ${perSecond} records/s.`
}

async function writeFigures(options: StartOptions, ok: boolean, list: ReturnType<typeof figures>): Promise<void> {
  const { json = '' } = options
  try {
    await writeFile(json, `${JSON.stringify({ command: commandFor(options), ok, figures: list }, null, 2)}\n`)
  } catch (error) {
    throw new ConfigurationError(`The figures cannot be written to ${json}: ${describeError(error).message}.`)
  }
}
