/** One stage of a local application: worker processes and the event source mapping that invokes them. */
import { hash } from 'node:crypto'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../aws/system-clock.ts'
import {
  EventSourceMapping,
  type InvocationOutcome,
  kinesisFormat,
  type MappingSettings,
  type MappingStatus,
} from '../../emulator/event-source-mapping/index.ts'
import type { StagePlan } from '../../plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../../plan/stage-bindings.ts'
import { CheckpointFile } from '../files/checkpoint-file.ts'
import { type FailureDestinationKind, failureFile } from '../files/failure-file.ts'
import { KinesisShardReader } from '../reading/kinesis-shard-reader.ts'
import { isDone } from '../reading/stream-tail.ts'
import { watchReader } from '../reading/watched-reader.ts'
import { type PoolInvocation, startWorkerPool, type WorkerEvent, type WorkerStatus } from '../workers/index.ts'
import type { LocalEndpoints } from './endpoints.ts'
import { type MetricValues, metricsIn } from './metric-lines.ts'
import { type LocalStream, localIdentity } from './streams.ts'

/** What can be said of an event source mapping beside the batch size. */
export type LocalMappingSettings = Partial<
  Omit<MappingSettings, 'uuid' | 'functionArn' | 'startingPosition' | 'startingPositionTimestampMs' | 'batchSize'>
>

/** Settings and observers that every stage of an application shares. */
export interface LocalStageSettings {
  /** Records per invocation, 1 to 10,000. @default 500 */
  readonly batchSize?: number
  /** Worker processes per stage. @default one per shard, at most 4 */
  readonly workers?: number
  /**
   * `shards`: each shard, or lane of one, stays with one worker while it lives. `none`: any free worker, as on Lambda.
   * @default 'none'
   */
  readonly affinity?: 'none' | 'shards'
  /** What to change of the event source mapping. @default bisect on, a batching window of 1 s, partial responses */
  readonly mapping?: LocalMappingSettings
  /**
   * The on-failure destination of the event source mapping, for which a file stands here. It hears of what a limit on retries or on
   * age gave up, so of nothing without one. @default none: what is given up is counted and gone, as on AWS
   */
  readonly onFailure?: FailureDestinationKind
  /** What the function finds in `process.env` beside its bindings. @default nothing */
  readonly environment?: Readonly<Record<string, string>>
  /** Hears what happens to workers. */
  readonly onWorkerEvent?: (stage: string, event: WorkerEvent) => void
  /** Hears of every invocation that a worker ran, once it has ended. */
  readonly onInvocation?: (invocation: LocalInvocation) => void
  /** Hears the metrics of every invocation, as the function wrote them to its log. */
  readonly onMetrics?: (stage: string, workerId: string, metrics: MetricValues) => void
}

/** An invocation that a worker ran. Times are ms since 1970; what came before `startedAtMs` was waiting for the worker. */
export interface LocalInvocation {
  readonly stage: string
  readonly workerId: string
  readonly shardId: string
  readonly lane: number
  /** From 1: which attempt at this batch it was. */
  readonly attempt: number
  readonly records: number
  /** The sequence number of its first record. */
  readonly firstPosition: string
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly outcome: InvocationOutcome['kind']
}

export interface LocalStageOptions extends LocalStageSettings {
  readonly stage: StagePlan
  /** The stream of its source; of a keyed stage its own. */
  readonly stream: LocalStream
  readonly bindings: StageBindings
  readonly handlerFile: string
  readonly checkpointFile: string
  /** What stands for the on-failure destination. */
  readonly failureFile: string
  readonly endpoints: LocalEndpoints
  readonly client: KinesisClient
  /** A line of the function's log. */
  readonly onLine: (line: string) => void
}

/** A stage as a display shows it. */
export interface LocalStageStatus {
  readonly name: string
  /** Records of a keyed stage are frames, each of many records. */
  readonly kind: StagePlan['kind']
  readonly streamName: string
  readonly mapping: MappingStatus
  /** Records that are done and saved, by shard, since this run began. */
  readonly recordsDone: ReadonlyMap<string, number>
  readonly workers: readonly WorkerStatus[]
  /** The file that holds what the mapping gave up, where it has an on-failure destination. */
  readonly failureFile?: string
}

export interface LocalStage {
  /** What its function is told. */
  readonly bindings: StageBindings
  /** Begins to invoke, or goes on where `disable` held: at the checkpoints as they are then. */
  run(): Promise<void>
  /** Finishes what is in flight and saves; the workers stay. */
  disable(): Promise<void>
  status(): LocalStageStatus
  hasProcessed(sinceMs: number): boolean
  /** Ends a worker by SIGKILL and resolves when it is gone. Throws a ConfigurationError for an unknown id. */
  killWorker(workerId: string): Promise<void>
  /** Adds workers while running and resolves when they are ready. */
  addWorkers(count: number): Promise<void>
  /** Finishes what is in flight, saves and ends the workers. Idempotent. */
  stop(): Promise<void>
}

/** The defaults of a stage on AWS. */
const memoryLimitMb = 512
const timeoutMs = 60_000
const defaultBatchSize = 500
const mostWorkers = 4
/** With affinity the living workers hold every shard at once, so a replacement can wait until they have caught up. */
const replacementDelayMs = 500

/** Starts the workers; `run` begins to invoke them. */
export async function startLocalStage(options: LocalStageOptions): Promise<LocalStage> {
  const { stream, bindings, client } = options
  const { name, kind } = options.stage
  const functionName = `${bindings.topology}-${name}`
  const pool = await startWorkers(options, functionName)
  const reader = watchReader(
    new KinesisShardReader({ client, streamName: stream.streamName, clock: systemClock }),
    systemClock,
  )
  const mapping = new EventSourceMapping({
    settings: settingsOf(options, functionName),
    format: kinesisFormat({ streamArn: stream.streamArn }),
    reader,
    invoker: pool,
    checkpoints: new CheckpointFile(options.checkpointFile),
    clock: systemClock,
    ...(options.onFailure && { onFailure: failureFile(options.failureFile, options.onFailure) }),
  })
  let stopped: Promise<void> | undefined
  return {
    bindings,
    run: async () => {
      if (stopped === undefined) await mapping.start()
    },
    disable: () => mapping.stop(),
    status() {
      const status = mapping.status()
      const done = status.shards.map(
        ({ shardId, unfinished }) => [shardId, reader.recordsRead(shardId) - unfinished] as const,
      )
      const workers = pool.workers()
      const givenUp = options.onFailure && { failureFile: options.failureFile }
      const own = { name, kind, streamName: stream.streamName }
      return { ...own, mapping: status, recordsDone: new Map(done), workers, ...givenUp }
    },
    hasProcessed: (sinceMs) => isDone(mapping.status(), (shardId) => reader.hasReachedEnd(shardId, sinceMs)),
    killWorker: (workerId) => pool.kill(workerId),
    addWorkers: (count) => pool.addWorkers(count),
    stop() {
      stopped ??= mapping.stop().then(() => pool.stop())
      return stopped
    },
  }
}

function startWorkers(options: LocalStageOptions, functionName: string) {
  const { stream, affinity = 'none', onLine, onMetrics, onWorkerEvent, onInvocation } = options
  const { name } = options.stage
  return startWorkerPool({
    size: options.workers ?? Math.min(stream.shards, mostWorkers),
    handlerFile: options.handlerFile,
    functionName,
    environment: environmentOf(options),
    memoryLimitMb,
    timeoutMs,
    affinity,
    ...(affinity === 'shards' ? { replacementDelayMs } : {}),
    onLine(workerId, _output, line) {
      onLine(`${workerId} ${line}`)
      const metrics = onMetrics && metricsIn(line)
      if (metrics) onMetrics(name, workerId, metrics)
    },
    ...(onWorkerEvent && { onEvent: (event) => onWorkerEvent(name, event) }),
    ...(onInvocation && { onInvocation: (invocation) => onInvocation(localInvocation(name, invocation)) }),
  })
}

/** Refused by the mapping where a setting is out of AWS's range. */
function settingsOf({ batchSize, mapping }: LocalStageOptions, functionName: string): MappingSettings {
  return {
    maximumBatchingWindowInSeconds: 1,
    bisectBatchOnFunctionError: true,
    functionResponseTypes: ['ReportBatchItemFailures'],
    ...mapping,
    uuid: uuidOf(functionName),
    functionArn: `arn:aws:lambda:${localIdentity.region}:000000000000:function:${functionName}`,
    startingPosition: 'TRIM_HORIZON',
    batchSize: batchSize ?? defaultBatchSize,
  }
}

function localInvocation(stage: string, invocation: PoolInvocation): LocalInvocation {
  const { workerId, info, event, startedAtMs, endedAtMs, outcome } = invocation
  const { shardId, lane, attempt } = info
  const { Records } = event as {
    readonly Records: readonly { readonly kinesis: { readonly sequenceNumber: string } }[]
  }
  const firstPosition = Records[0]?.kinesis.sequenceNumber ?? ''
  const place = { stage, workerId, shardId, lane, attempt }
  return { ...place, records: Records.length, firstPosition, startedAtMs, endedAtMs, outcome: outcome.kind }
}

/**
 * What a function of a local run finds in its environment. Only a service that the run has is sent to it: a client of another one
 * must not talk to Kinesis.
 */
export function environmentOf(
  options: Pick<LocalStageOptions, 'bindings' | 'endpoints' | 'environment'>,
): Readonly<Record<string, string>> {
  const { bindings, environment, endpoints } = options
  return {
    ...environment,
    [bindingsVariable]: JSON.stringify(bindings),
    AWS_ENDPOINT_URL_KINESIS: endpoints.kinesis,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpoints.dynamodb,
    ...(endpoints.others === undefined ? {} : { AWS_ENDPOINT_URL: endpoints.others }),
    AWS_ACCESS_KEY_ID: localIdentity.accessKeyId,
    AWS_SECRET_ACCESS_KEY: localIdentity.secretAccessKey,
    POWERTOOLS_SERVICE_NAME: bindings.topology,
  }
}

/** The same mapping has the same identity in every run. */
function uuidOf(functionName: string): string {
  const digits = hash('sha256', functionName, 'hex')
  return [8, 4, 4, 4, 12].map((length, index) => digits.slice(index * 12, index * 12 + length)).join('-')
}
