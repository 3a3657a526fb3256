/**
 * A topology on this machine: its streams, its real handler in worker processes, and an event source mapping per stage.
 *
 * Invariants:
 * 1. The handler is the bundle that would be deployed, and learns of its streams the same way: by `MILLRACE_BINDINGS`.
 * 2. All state is under one directory: streams, checkpoints, bundle, the function's log. The next run goes on from it.
 * 3. One process uses the directory at a time.
 * 4. Stopping lets invocations in flight finish and saves the checkpoints; what was not begun is left to the next run.
 */
import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../aws/system-clock.ts'
import type { SourceRecord } from '../emulator/event-source-mapping/index.ts'
import { type Plan, plan } from '../plan/plan.ts'
import type { Topology } from '../topology/topology.ts'
import { Closing } from './closing.ts'
import { takeLock } from './directory-lock.ts'
import { bundleHandler } from './handler-bundle.ts'
import { startKinesisService } from './kinesis-service.ts'
import { KinesisShardReader } from './kinesis-shard-reader.ts'
import {
  bindingsOf,
  type LocalStage,
  type LocalStageSettings,
  type LocalStageStatus,
  startLocalStage,
} from './local-stage.ts'
import { ensureStream, type LocalStream, localKinesisClient } from './local-streams.ts'
import { type StreamTail, startStreamTail } from './stream-tail.ts'

export interface LocalApplicationOptions extends LocalStageSettings {
  readonly topology: Topology
  /** The file that exports `handler`. */
  readonly entry: string
  /** Where the run's state is kept, such as `.millrace/flights-app`. Nothing else may be in it. */
  readonly directory: string
  /** Drops the state of earlier runs first. @default false */
  readonly fresh?: boolean
  /** An endpoint that speaks Kinesis, such as LocalStack's. @default an embedded Kinesis */
  readonly endpoint?: string
  /** Port of the embedded Kinesis on 127.0.0.1; 0 takes any free one. @default 0 */
  readonly port?: number
  /** Shards of each source stream that does not exist yet. @default 1 */
  readonly shards?: number
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
  /** A client of that endpoint. */
  readonly client: KinesisClient
  /** The file that holds what the function wrote to its log. */
  readonly logFile: string
  /** The stream of a source or sink, by its name. */
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
  const { directory, shards = 1 } = options
  await mkdir(directory, { recursive: true })
  closing.defer(await takeLock(join(directory, lockFile)))
  if (options.fresh) await removeState(directory)
  const endpoint = options.endpoint ?? (await startService(options, closing))
  const client = localKinesisClient(endpoint)
  closing.defer(() => client.destroy())
  const streams = await ensureStreams(planned, client, shards)
  const deadLetters = streams.get(deadLetterOutput) as LocalStream
  const bindings = planned.stages.map((stage) => bindingsOf(planned.topology, stage, streams, deadLetters))
  const logFile = join(directory, 'function.log')
  const log = openLog(logFile, closing)
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
      endpoint,
      client,
      onLine: (line) => void log.write(`${line}\n`),
    })
    closing.defer(() => started.stop())
    stages.set(stage.name, started)
  }
  const all = [...stages.values()]
  return {
    endpoint,
    client,
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

async function startService(options: LocalApplicationOptions, closing: Closing): Promise<string> {
  const service = await startKinesisService({
    port: options.port ?? 0,
    directory: join(options.directory, 'kinesis'),
  })
  closing.defer(() => service.close())
  return service.url
}

async function ensureStreams(
  planned: Plan,
  client: KinesisClient,
  shards: number,
): Promise<ReadonlyMap<string, LocalStream>> {
  const streams = new Map<string, LocalStream>()
  const { sources, sinks } = planned.graph
  for (const { name } of sources) streams.set(name, await ensureStream(client, systemClock, name, shards))
  for (const { name } of sinks) streams.set(name, await ensureStream(client, systemClock, name, 1))
  const deadLetters = `${planned.topology}-dead-letters`
  streams.set(deadLetterOutput, await ensureStream(client, systemClock, deadLetters, 1))
  return streams
}

function named<T>(things: ReadonlyMap<string, T>, kind: string, name: string): T {
  const thing = things.get(name)
  if (thing) return thing
  throw new RangeError(`there is no ${kind} "${name}": there are ${[...things.keys()].join(', ')}`)
}

function openLog(path: string, closing: Closing): WriteStream {
  const log = createWriteStream(path, { flags: 'a' })
  // A log that cannot be written must not end the run.
  log.on('error', () => undefined)
  closing.defer(() => new Promise<void>((resolve) => log.end(() => resolve())))
  return log
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
      const { streamName } = streams.get(name) as LocalStream
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
