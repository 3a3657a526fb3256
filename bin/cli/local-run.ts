/**
 * The directory of a local run, `.millrace/<topology>`: what it says of itself, and how another command reaches its streams.
 *
 * `run.json` stays behind a run and names the user's files. `service.json` is there while a process serves the run; the lock of the
 * embedded Kinesis, not this file, decides whether one does.
 */
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError } from '../../lib/core/errors.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { endpointsAt, type LocalEndpoints, startLocalServices } from '../../lib/local/run/endpoints.ts'
import type { SinkTables } from '../../lib/local/run/tables.ts'
import type { TopologyLock } from '../../lib/plan/lock.ts'

const root = '.millrace'

/** What a run was started with; paths as they were typed. */
export interface RunFacts {
  readonly topologyFile: string
  readonly handlerFile: string
  /** The endpoint that the user named, if any. */
  readonly endpoint?: string
  /** The sinks that are tables. */
  readonly tables?: SinkTables
  /** The program whose input the state is made of. @default `millrace dev` */
  readonly madeBy?: string
  /** What the topology keeps, as it ran last. */
  readonly lock?: TopologyLock
  /** Whether an input with an end (`--once`) has brought event time to its end: what is sent now is late. @default false */
  readonly hasTimeEnded?: boolean
}

export const directoryOf = (topology: string): string => join(root, topology)

/** What redrives of a stream, a queue or a topic remember, which belong to no local run. */
export const redriveDirectory = (kind: 'stream' | 'queue' | 'topic', name: string): string =>
  join(root, 'redrive', `${kind}-${name.replaceAll(/[^\w.-]/g, '_')}`)

export const writeRunFacts = (directory: string, facts: RunFacts): Promise<void> =>
  writeJson(join(directory, 'run.json'), { formatVersion: 1, ...facts })

/** What is known of the last run of `millrace dev`; undefined where the directory was made otherwise. */
export async function readRunFacts(directory: string): Promise<RunFacts | undefined> {
  const facts = await readJson(join(directory, 'run.json'))
  const { topologyFile, handlerFile, endpoint, tables, madeBy, lock, hasTimeEnded } = facts
  if (typeof topologyFile !== 'string' || typeof handlerFile !== 'string') return undefined
  return {
    topologyFile,
    handlerFile,
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof tables === 'object' && tables !== null ? { tables: tables as SinkTables } : {}),
    ...(typeof madeBy === 'string' ? { madeBy } : {}),
    ...(typeof lock === 'object' && lock !== null ? { lock: lock as TopologyLock } : {}),
    ...(hasTimeEnded === true ? { hasTimeEnded } : {}),
  }
}

/** Event time of the run begins again, as after a reset. */
export async function beginTimeAgain(directory: string): Promise<void> {
  const { hasTimeEnded, ...facts } = (await readRunFacts(directory)) ?? {}
  if (hasTimeEnded) await writeRunFacts(directory, facts as RunFacts)
}

/** Starts the embedded services of a run and says where they are, until the closing. `onBound` is that of `startLocalServices`. */
export async function serveRun(
  directory: string,
  port: number,
  closing: Closing,
  onBound?: () => Promise<void>,
): Promise<LocalEndpoints> {
  const endpoints = await startLocalServices(directory, port, closing, onBound)
  await announceServices(directory, endpoints, closing)
  return endpoints
}

/** Says where the services of a run are, which this process started by other means, until the closing. */
export async function announceServices(directory: string, endpoints: LocalEndpoints, closing: Closing): Promise<void> {
  const file = join(directory, 'service.json')
  await writeJson(file, { pid: process.pid, ...endpoints })
  closing.defer(() => rm(file, { force: true }))
}

/** Where a run's services answer: at the user's endpoint, in the process that has the run up, else here until the closing. */
export async function reachRun(directory: string, closing: Closing): Promise<LocalEndpoints> {
  const facts = await readRunFacts(directory)
  if (facts?.endpoint !== undefined) return endpointsAt(facts.endpoint)
  if (!existsSync(join(directory, 'kinesis'))) {
    throw new ConfigurationError(`${directory} holds no streams: \`millrace dev TOPOLOGY\` makes them.`)
  }
  try {
    return await serveRun(directory, 0, closing)
  } catch (error) {
    const { pid, kinesis, dynamodb } = await readJson(join(directory, 'service.json'))
    // The file may have been left behind by a process that died, and another hold the lock.
    const holder = await readFile(join(directory, 'kinesis', 'kinesis.lock'), 'utf8').catch(() => '')
    const isServed = holder.startsWith(`${pid} `)
    if (isServed && typeof kinesis === 'string' && typeof dynamodb === 'string') return { kinesis, dynamodb }
    throw error
  }
}

/** The name of the run that is meant: the one named, else the only one there is. */
export async function runNamed(app: string | undefined): Promise<string> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => [])
  const isRun = (name: string): boolean =>
    name !== 'redrive' || ['kinesis', 'run.json'].some((file) => existsSync(join(root, name, file)))
  const names = entries.flatMap((entry) => (entry.isDirectory() && isRun(entry.name) ? entry.name : []))
  if (app !== undefined && names.includes(app)) return app
  const [only, ...others] = names
  if (only === undefined) {
    throw new ConfigurationError(`There is no local run in ${root}: \`millrace dev TOPOLOGY\` makes one.`)
  }
  if (app === undefined && others.length === 0) return only
  const problem = app === undefined ? 'There are several local runs' : `There is no local run ${app}`
  throw new ConfigurationError(`${problem}: say --app with one of ${names.toSorted().join(', ')}.`)
}

/** The file is always whole. */
async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(`${path}.tmp`, `${JSON.stringify(value, null, 2)}\n`)
  await rename(`${path}.tmp`, path)
}

async function readJson(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
