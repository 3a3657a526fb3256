/**
 * A topology on this machine: its streams, its real handler in worker processes, and an event source mapping per stage.
 *
 * Invariants:
 * 1. The handler is the bundle that would be deployed, and learns of its streams the same way: by `MILLRACE_BINDINGS`.
 * 2. All state is under one directory: streams, tables, checkpoints, bundle, the function's log. The next run goes on from it.
 * 3. One process uses the directory at a time.
 * 4. Stopping lets invocations in flight finish and saves the checkpoints; what was not begun is left to the next run.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../aws/system-clock.ts'
import type { SourceRecord } from '../emulator/event-source-mapping/index.ts'
import { type Plan, plan } from '../plan/plan.ts'
import type { Topology } from '../topology/topology.ts'
import { Closing } from './closing.ts'
import { takeLock } from './directory-lock.ts'
import { FunctionLog } from './function-log.ts'
import { bundleHandler } from './handler-bundle.ts'
import { KinesisShardReader } from './kinesis-shard-reader.ts'
import { endpointsAt, type LocalEndpoints, startLocalServices } from './local-endpoints.ts'
import {
  bindingsOf,
  type LocalStage,
  type LocalStageSettings,
  type LocalStageStatus,
  startLocalStage,
} from './local-stage.ts'
import { ensureStream, type LocalStream, localKinesisClient } from './local-streams.ts'
import { ensureTables, type LocalTable, localDynamoDBClient, type SinkTables } from './local-tables.ts'
import { type StreamTail, startStreamTail } from './stream-tail.ts'

export interface LocalApplicationOptions extends LocalStageSettings {
  readonly topology: Topology
  /** The file that exports `handler`. */
  readonly entry: string
  /** Where the run's state is kept, such as `.millrace/flights-app`. Nothing else may be in it. */
  readonly directory: string
  /** Drops the state of earlier runs first. @default false */
  readonly fresh?: boolean
  /**
   * An endpoint that speaks Kinesis and, for tables, DynamoDB, such as LocalStack's: a URL for all services, or one for each.
   * @default an embedded Kinesis and an embedded DynamoDB
   */
  readonly endpoint?: string | LocalEndpoints
  /** Port of the embedded Kinesis on 127.0.0.1; 0 takes any free one. @default 0 */
  readonly port?: number
  /** Shards of each source stream that does not exist yet. @default 1 */
  readonly shards?: number
  /** The sinks that are tables of their name, made where they are missing. @default none: every sink is a stream */
  readonly tables?: SinkTables
  /** Receives what a sink or, as `dead letters`, the dead-letter stream holds: all of it from the beginning, then what comes. */
  readonly onOutput?: (output: string, records: readonly SourceRecord[]) => void
}

/** What a display needs to know. */
export interface LocalStatus {
  readonly stages: readonly LocalStageStatus[]
  /** Records read back from each output stream, repeated ones included. */
  readonly outputs: readonly { readonly name: string; readonly streamName: string; readonly records: number }[]
}

export interface LocalApplication {
  /** Where Kinesis answers. */
  readonly endpoint: string
  /** Where each service answers. */
  readonly endpoints: LocalEndpoints
  /** A client of Kinesis there. */
  readonly client: KinesisClient
  /** The tables, by the names of their sinks. */
  readonly tables: ReadonlyMap<string, LocalTable>
  /** The file that holds what the function wrote to its log. */
  readonly logFile: string
  /** The stream of a source, or of a sink that is no table, by its name. */
  streamOf(name: string): LocalStream
  /** Begins to invoke the function. Outputs are read from the start on. */
  run(): Promise<void>
  status(): LocalStatus
  /** True once all that was in the source streams at `sinceMs` is processed and checkpointed. */
  hasProcessed(sinceMs: number): boolean
  /** True once all that was in the output streams at `sinceMs` has been handed to `onOutput`. */
  hasReadOutputs(sinceMs: number): boolean
  /** The workers of a stage, which has the name of its source. Throws a RangeError where there is none of that name. */
  workersOf(stage: string): LocalWorkers
  /** Finishes what is in flight and saves; outputs are still read. Nothing is invoked any more. */
  halt(): Promise<void>
  /** Halts, and lets go of everything. */
  stop(): Promise<void>
}

/** The worker processes of one stage. */
export type LocalWorkers = Pick<LocalStage, 'killWorker' | 'addWorkers'>

/** The name under which dead letters appear among the outputs. */
export const deadLetterOutput = 'dead letters'

const lockFile = 'application.lock'

/**
 * Prepares a topology to run here. `run` begins the processing.
 *
 * @throws ConfigurationError for a topology that cannot run, a handler that cannot be bundled, a busy port, state that another
 * process uses or that is damaged.
 * @example
 * const app = await startLocalApplication({ topology: flightsApp, entry: 'functions/flights/handler.ts', directory: '.millrace/flights-app' })
 * await app.run()
 * await app.stop()
 */
export async function startLocalApplication(options: LocalApplicationOptions): Promise<LocalApplication> {
  const planned = plan(options.topology)
  const closing = new Closing()
  try {
    return await start(planned, options, closing)
  } catch (error) {
    await closing.close()
    throw error
  }
}

async function start(planned: Plan, options: LocalApplicationOptions, closing: Closing): Promise<LocalApplication> {
  const { directory } = options
  await mkdir(directory, { recursive: true })
  closing.defer(await takeLock(join(directory, lockFile)))
  if (options.fresh) await removeState(directory)
  const endpoints = await endpointsOf(options, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const tables = await openTables(planned, endpoints, options.tables)
  const streams = await ensureStreams(planned, client, options)
  const deadLetters = streams.get(deadLetterOutput) as LocalStream
  const bindings = planned.stages.map((stage) => bindingsOf(planned.topology, stage, streams, tables, deadLetters))
  const logFile = join(directory, 'function.log')
  const log = new FunctionLog(logFile, { clock: systemClock })
  closing.defer(() => log.close())
  const outputs = new Outputs(options)
  await outputs.start(planned, client, streams, closing)
  const stages = new Map<string, LocalStage>()
  for (const [index, stage] of planned.stages.entries()) {
    const stageBindings = bindings[index] as (typeof bindings)[number]
    const bundle = await bundleHandler({
      entry: options.entry,
      directory: join(directory, 'bundle', stage.name),
      bindings: stageBindings,
    })
    const started = await startLocalStage({
      ...options,
      name: stage.name,
      stream: streams.get(stage.name) as LocalStream,
      bindings: stageBindings,
      handlerFile: bundle,
      checkpointFile: join(directory, 'checkpoints', `${stage.name}.json`),
      failureFile: join(directory, 'on-failure', `${stage.name}.ndjson`),
      endpoints,
      client,
      onLine: (line) => log.write(line),
    })
    closing.defer(() => started.stop())
    stages.set(stage.name, started)
  }
  const all = [...stages.values()]
  return {
    endpoint: endpoints.kinesis,
    endpoints,
    client,
    tables,
    logFile,
    streamOf: (name) => named(streams, 'stream', name),
    run: async () => void (await Promise.all(all.map((stage) => stage.run()))),
    status: () => ({ stages: all.map((stage) => stage.status()), outputs: outputs.status() }),
    hasProcessed: (sinceMs) => all.every((stage) => stage.hasProcessed(sinceMs)),
    hasReadOutputs: (sinceMs) => outputs.haveBeenRead(sinceMs),
    workersOf: (stage) => named(stages, 'stage', stage),
    halt: async () => void (await Promise.all(all.map((stage) => stage.stop()))),
    stop: () => closing.close(),
  }
}

/** Everything but the lock, which this process holds. */
async function removeState(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name !== lockFile)
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })))
}

async function endpointsOf(options: LocalApplicationOptions, closing: Closing): Promise<LocalEndpoints> {
  const { endpoint, directory, port = 0 } = options
  if (endpoint === undefined) return startLocalServices(directory, port, closing)
  return typeof endpoint === 'string' ? endpointsAt(endpoint) : endpoint
}

async function openTables(
  planned: Plan,
  endpoints: LocalEndpoints,
  tables: SinkTables = {},
): Promise<ReadonlyMap<string, LocalTable>> {
  const client = localDynamoDBClient(endpoints.dynamodb)
  try {
    return await ensureTables(planned, client, systemClock, tables)
  } finally {
    client.destroy()
  }
}

async function ensureStreams(
  planned: Plan,
  client: KinesisClient,
  { shards = 1, tables = {} }: LocalApplicationOptions,
): Promise<ReadonlyMap<string, LocalStream>> {
  const streams = new Map<string, LocalStream>()
  const { sources, sinks } = planned.graph
  for (const { name } of sources) streams.set(name, await ensureStream(client, systemClock, name, shards))
  for (const { name } of sinks) {
    if (!Object.hasOwn(tables, name)) streams.set(name, await ensureStream(client, systemClock, name, 1))
  }
  const deadLetters = `${planned.topology}-dead-letters`
  streams.set(deadLetterOutput, await ensureStream(client, systemClock, deadLetters, 1))
  return streams
}

function named<T>(things: ReadonlyMap<string, T>, kind: string, name: string): T {
  const thing = things.get(name)
  if (thing) return thing
  throw new RangeError(`there is no ${kind} "${name}": there are ${[...things.keys()].join(', ')}`)
}

/** The output streams, each read by a tail. */
class Outputs {
  readonly #onOutput: NonNullable<LocalApplicationOptions['onOutput']>
  readonly #tails: { readonly name: string; readonly streamName: string; readonly tail: StreamTail }[] = []
  readonly #records = new Map<string, number>()

  constructor({ onOutput = () => undefined }: LocalApplicationOptions) {
    this.#onOutput = onOutput
  }

  async start(
    planned: Plan,
    client: KinesisClient,
    streams: ReadonlyMap<string, LocalStream>,
    closing: Closing,
  ): Promise<void> {
    for (const name of [...planned.graph.sinks.map((sink) => sink.name), deadLetterOutput]) {
      const stream = streams.get(name)
      // A sink that is a table has no stream.
      if (stream === undefined) continue
      const { streamName } = stream
      const reader = new KinesisShardReader({ client, streamName, clock: systemClock })
      const onRecords = (records: readonly SourceRecord[]) => {
        this.#records.set(name, (this.#records.get(name) ?? 0) + records.length)
        this.#onOutput(name, records)
      }
      const tail = await startStreamTail({ reader, clock: systemClock, onRecords })
      closing.defer(() => tail.stop())
      this.#tails.push({ name, streamName, tail })
    }
  }

  status(): LocalStatus['outputs'] {
    return this.#tails.map(({ name, streamName }) => ({ name, streamName, records: this.#records.get(name) ?? 0 }))
  }

  haveBeenRead(sinceMs: number): boolean {
    return this.#tails.every(({ tail }) => tail.hasRead(sinceMs))
  }
}
