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
import { systemClock } from '../../aws/system-clock.ts'
import type { SourceRecord } from '../../emulator/event-source-mapping/index.ts'
import { refuseParallelization } from '../../plan/parallelization.ts'
import { type Plan, plan } from '../../plan/plan.ts'
import type { Topology } from '../../topology/topology.ts'
import { Closing } from '../closing.ts'
import { takeLock } from '../files/directory-lock.ts'
import { FunctionLog } from '../files/function-log.ts'
import { MappingSwitches } from '../files/mapping-switches.ts'
import { KinesisShardReader } from '../reading/kinesis-shard-reader.ts'
import { type StreamTail, startStreamTail } from '../reading/stream-tail.ts'
import { LocalAnnouncer, type LocalInput } from './announcer.ts'
import { endpointsAt, type LocalEndpoints, startLocalServices } from './endpoints.ts'
import { bundleHandler } from './handler-bundle.ts'
import { ProcessedStages } from './processed-stages.ts'
import { bindingsOf, deadLetterOutput, ensureResources } from './resources.ts'
import { type LocalStage, type LocalStageSettings, type LocalStageStatus, startLocalStage } from './stage.ts'
import { type LocalStream, localKinesisClient } from './streams.ts'
import type { LocalTable, SinkTables } from './tables.ts'

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
  /** Shards of each stream of a source or of a keyed stage that does not exist yet. @default 1 */
  readonly shards?: number
  /** The sinks that are tables of their name, made where they are missing. @default none: every sink is a stream */
  readonly tables?: SinkTables
  /**
   * What it means that a source is silent. `live`: time goes on, and event time with it, as on AWS. `bounded`: the input is of
   * another time and has an end, which {@link LocalApplication.endInput} tells; until then silence means nothing.
   * @default 'live'
   */
  readonly input?: LocalInput
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
  /** The stream of a source, of a keyed stage, or of a sink that is no table, by its name. */
  streamOf(name: string): LocalStream
  /** Begins to invoke the functions, but for stages that are paused (`millrace pause`). Outputs are read from the start on. */
  run(): Promise<void>
  status(): LocalStatus
  /** True once all that was in the source streams at `sinceMs` is processed by every stage that it reaches, and checkpointed. */
  hasProcessed(sinceMs: number): boolean
  /** True once all that was in the output streams at `sinceMs` has been handed to `onOutput`. */
  hasReadOutputs(sinceMs: number): boolean
  /**
   * Says that a bounded input has ended: once all of it is processed, windows close and timers of event time fire, whatever time
   * they wait for. What is sent afterwards is late. Throws a RangeError where the input is live.
   */
  endInput(): void
  /** True once the input has ended and nothing waits for event time any more. What came of it may still be read and processed. */
  hasEnded(): boolean
  /** True once event time has come to its end, since something waited for it when the input ended: what is sent now is late. */
  hasTimeEnded(): boolean
  /** The workers of a stage, which has the name of its source or its `keyBy`. Throws a RangeError where there is none of that name. */
  workersOf(stage: string): LocalWorkers
  /** Finishes what is in flight and saves; outputs are still read. Nothing is invoked any more. */
  halt(): Promise<void>
  /** Halts, and lets go of everything. */
  stop(): Promise<void>
}

/** The worker processes of one stage. */
export type LocalWorkers = Pick<LocalStage, 'killWorker' | 'addWorkers'>

export type { LocalInput } from './announcer.ts'
export { deadLetterOutput } from './resources.ts'

const lockFile = 'application.lock'

/**
 * Prepares a topology to run here. `run` begins the processing.
 *
 * @throws ConfigurationError for a topology that cannot run, a parallelization factor above 1 on a stage that keeps progress, a handler that cannot be bundled, a busy port, state that another
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
  const { directory, mapping } = options
  for (const stage of planned.stages) refuseParallelization(stage, mapping?.parallelizationFactor ?? 1)
  await mkdir(directory, { recursive: true })
  closing.defer(await takeLock(join(directory, lockFile)))
  const endpoints = await endpointsOf(options, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const resources = await ensureResources({ ...options, planned, endpoints, client })
  const { streams, tables } = resources
  const logFile = join(directory, 'function.log')
  const log = new FunctionLog(logFile, { clock: systemClock })
  closing.defer(() => log.close())
  const outputs = new Outputs(options)
  await outputs.start(planned, client, streams, closing)
  const stages = new Map<string, LocalStage>()
  for (const stage of planned.stages) {
    const bindings = bindingsOf(planned, stage, resources)
    const bundle = join(directory, 'bundle', stage.name)
    const started = await startLocalStage({
      ...options,
      stage,
      stream: streams.get(stage.name) as LocalStream,
      bindings,
      handlerFile: await bundleHandler({ entry: options.entry, directory: bundle, bindings }),
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
  const onFailure = (reason: string) => log.write(`announcer ${reason}`)
  const { input = 'live' } = options
  const announcer = new LocalAnnouncer({ planned, resources, kinesis: client, endpoints, input, onFailure })
  closing.defer(() => announcer.stop())
  const switches = new MappingSwitches({
    directory,
    stages: [...stages].map(([name, { bindings, run, disable }]) => ({ name, bindings, enable: run, disable })),
    clock: systemClock,
    onProblem: (reason) => log.write(`mappings ${reason}`),
  })
  closing.defer(() => switches.stop())
  const hasProcessed = (stage: string) => (sinceMs: number) => named(stages, 'stage', stage).hasProcessed(sinceMs)
  const processed = new ProcessedStages(planned.stages, hasProcessed, systemClock)
  return {
    endpoint: endpoints.kinesis,
    endpoints,
    client,
    tables,
    logFile,
    streamOf: (name) => named(streams, 'stream', name),
    run: async () => {
      await switches.start()
      announcer.start()
    },
    status: () => ({ stages: all.map((stage) => stage.status()), outputs: outputs.status() }),
    hasProcessed: (sinceMs) => processed.since(sinceMs),
    hasReadOutputs: (sinceMs) => outputs.haveBeenRead(sinceMs),
    endInput: () => {
      if (input === 'live') throw new RangeError("a live input has no end: start the application with input: 'bounded'")
      announcer.endInput()
    },
    hasEnded: () => announcer.isSettled,
    hasTimeEnded: () => announcer.hasTimeEnded,
    workersOf: (stage) => named(stages, 'stage', stage),
    halt: async () => {
      await switches.stop()
      await announcer.stop()
      await Promise.all(all.map((stage) => stage.stop()))
    },
    stop: () => closing.close(),
  }
}

/** Everything but the lock, which this process holds. */
async function removeState(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name !== lockFile)
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })))
}

async function endpointsOf(options: LocalApplicationOptions, closing: Closing): Promise<LocalEndpoints> {
  const { endpoint, directory, port = 0, fresh = false } = options
  const drop = async () => {
    if (fresh) await removeState(directory)
  }
  // A port that is taken must not cost the state.
  if (endpoint === undefined) return startLocalServices(directory, port, closing, drop)
  await drop()
  return typeof endpoint === 'string' ? endpointsAt(endpoint) : endpoint
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
