/** One stage of a local application: worker processes and the event source mapping that invokes them. */
import { hash } from 'node:crypto'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../aws/system-clock.ts'
import { EventSourceMapping, kinesisFormat, type MappingStatus } from '../emulator/event-source-mapping/index.ts'
import type { StagePlan } from '../plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../plan/stage-bindings.ts'
import { CheckpointFile } from './checkpoint-file.ts'
import { KinesisShardReader } from './kinesis-shard-reader.ts'
import { type LocalStream, localIdentity } from './local-streams.ts'
import { isDone } from './stream-tail.ts'
import { watchReader } from './watched-reader.ts'
import { startWorkerPool, type WorkerStatus } from './workers/index.ts'

export interface LocalStageOptions {
  readonly name: string
  /** The stream of its source. */
  readonly stream: LocalStream
  readonly bindings: StageBindings
  readonly handlerFile: string
  readonly checkpointFile: string
  readonly endpoint: string
  readonly client: KinesisClient
  readonly workers: number | undefined
  readonly batchSize: number | undefined
  /** A line of the function's log. */
  readonly onLine: (line: string) => void
}

/** A stage as a display shows it. */
export interface LocalStageStatus {
  readonly name: string
  readonly streamName: string
  readonly mapping: MappingStatus
  /** Records that are done and saved, by shard, since this run began. */
  readonly recordsDone: ReadonlyMap<string, number>
  readonly workers: readonly WorkerStatus[]
}

export interface LocalStage {
  run(): Promise<void>
  status(): LocalStageStatus
  hasProcessed(sinceMs: number): boolean
  /** Finishes what is in flight, saves and ends the workers. Idempotent. */
  stop(): Promise<void>
}

/** The defaults of a stage on AWS. */
const memoryLimitMb = 512
const timeoutMs = 60_000
const defaultBatchSize = 500
const mostWorkers = 4

/** What the stage's function is told: Kinesis streams for everything. */
export function bindingsOf(
  topology: string,
  stage: StagePlan,
  streams: ReadonlyMap<string, LocalStream>,
  deadLetters: LocalStream,
): StageBindings {
  const streamOf = (name: string): LocalStream => streams.get(name) as LocalStream
  return {
    formatVersion: 1,
    topology,
    sources: [{ name: stage.name, kind: 'kinesis', streamArn: streamOf(stage.name).streamArn }],
    sinks: stage.sinks.map((name) => ({
      name,
      kind: 'kinesis',
      streamName: streamOf(name).streamName,
      ordering: 'per-key',
    })),
    deadLetters: { kind: 'kinesis', streamName: deadLetters.streamName },
  }
}

/** Starts the workers; `run` begins to invoke them. */
export async function startLocalStage(options: LocalStageOptions): Promise<LocalStage> {
  const { name, stream, bindings, client } = options
  const functionName = `${bindings.topology}-${name}`
  const pool = await startWorkerPool({
    size: options.workers ?? Math.min(stream.shards, mostWorkers),
    handlerFile: options.handlerFile,
    functionName,
    environment: environmentOf(options),
    memoryLimitMb,
    timeoutMs,
    onLine: (workerId, _stream, line) => options.onLine(`${workerId} ${line}`),
  })
  const reader = watchReader(
    new KinesisShardReader({ client, streamName: stream.streamName, clock: systemClock }),
    systemClock,
  )
  const mapping = new EventSourceMapping({
    settings: {
      uuid: uuidOf(functionName),
      functionArn: `arn:aws:lambda:${localIdentity.region}:000000000000:function:${functionName}`,
      startingPosition: 'TRIM_HORIZON',
      batchSize: options.batchSize ?? defaultBatchSize,
      maximumBatchingWindowInSeconds: 1,
      bisectBatchOnFunctionError: true,
      functionResponseTypes: ['ReportBatchItemFailures'],
    },
    format: kinesisFormat({ streamArn: stream.streamArn }),
    reader,
    invoker: pool,
    checkpoints: new CheckpointFile(options.checkpointFile),
    clock: systemClock,
  })
  let stopped: Promise<void> | undefined
  return {
    run: () => mapping.start(),
    status() {
      const status = mapping.status()
      const done = status.shards.map(
        ({ shardId, unfinished }) => [shardId, reader.recordsRead(shardId) - unfinished] as const,
      )
      const workers = pool.workers()
      return { name, streamName: stream.streamName, mapping: status, recordsDone: new Map(done), workers }
    },
    hasProcessed: (sinceMs) => isDone(mapping.status(), (shardId) => reader.hasReachedEnd(shardId, sinceMs)),
    stop() {
      stopped ??= mapping.stop().then(() => pool.stop())
      return stopped
    },
  }
}

function environmentOf({ bindings, endpoint }: LocalStageOptions): Readonly<Record<string, string>> {
  return {
    [bindingsVariable]: JSON.stringify(bindings),
    AWS_ENDPOINT_URL: endpoint,
    AWS_ENDPOINT_URL_KINESIS: endpoint,
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
