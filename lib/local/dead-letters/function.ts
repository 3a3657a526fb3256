/** The application's own function, run here for a redrive: the handler as it is now, in one worker process per stage. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import type { InvocationOutcome } from '../../emulator/event-source-mapping/index.ts'
import { type Plan, stageNamed } from '../../plan/plan.ts'
import type { SourceBinding, StageBindings } from '../../plan/stage-bindings.ts'
import { Closing } from '../closing.ts'
import type { LocalEndpoints } from '../run/endpoints.ts'
import { bundleHandler } from '../run/handler-bundle.ts'
import { bindingsOf, ensureResources, type LocalResources } from '../run/resources.ts'
import { environmentOf } from '../run/stage.ts'
import type { LocalStream } from '../run/streams.ts'
import type { SinkTables } from '../run/tables.ts'
import { startWorkerPool, type WorkerPool } from '../workers/index.ts'
import type { KeyedStreams } from './frame.ts'
import { lookUpRecord } from './kinesis-record-lookup.ts'
import { misfit, type OriginalRecord, redriveEvent, type SourceBytes } from './record.ts'
import type { RedriveFunction } from './redrive.ts'
import { kinesisStageStream, type StageStream, stageStreams } from './streams.ts'

export interface LocalFunctionOptions {
  readonly planned: Plan
  /** The file that exports `handler`. */
  readonly entry: string
  /** The directory of the local run. */
  readonly directory: string
  readonly endpoints: LocalEndpoints
  readonly client: KinesisClient
  /** The sinks of the run that are tables. */
  readonly tables: SinkTables
  readonly deadLetterStream: string
  /** A line of the function's log. */
  readonly onLine: (line: string) => void
}

const memoryLimitMb = 512
const timeoutMs = 60_000

/** A function of a local run that takes records outside of its event source mapping. */
export class LocalFunction implements RedriveFunction {
  readonly #options: LocalFunctionOptions
  readonly #resources: LocalResources
  readonly #pools = new Map<string, Promise<WorkerPool>>()
  readonly #closing = new Closing()

  private constructor(options: LocalFunctionOptions, resources: LocalResources) {
    this.#options = options
    this.#resources = resources
  }

  /** Finds the streams and tables of the run, or makes those that it lacks. The stages are bundled when they are first invoked. */
  static async start(options: LocalFunctionOptions): Promise<LocalFunction> {
    return new LocalFunction(options, await ensureResources(options))
  }

  refusal(record: OriginalRecord): string | undefined {
    return misfit(record, this.#binding(record.source))
  }

  /** Rejects with a ConfigurationError where the handler cannot be bundled. */
  async invoke(record: OriginalRecord): Promise<InvocationOutcome> {
    const { source, partition: shardId } = record
    const event = redriveEvent(record, this.#binding(source))
    const functionArn = `arn:aws:lambda:us-east-1:000000000000:function:${this.#options.planned.topology}-${source}`
    const pool = await this.#poolOf(source)
    return pool.invoke(event, { requestId: randomUUID(), functionArn, shardId, lane: 0, attempt: 1 })
  }

  /** Reads one record of a source by its coordinates. */
  readSource(entry: DeadLetterEntry): Promise<SourceBytes | undefined> {
    return lookUpRecord(this.#options.client, { StreamName: this.#stream(entry.source).streamName }, entry)
  }

  /** The streams of the run's keyed stages. */
  keyedStreams(): KeyedStreams {
    const { planned, client } = this.#options
    const streams = new Map<string, StageStream>()
    for (const stage of planned.stages) {
      if (stage.kind !== 'keyed') continue
      const { streamName } = this.#stream(stage.name)
      streams.set(stage.name, kinesisStageStream(client, { streamName }, stage.slots))
    }
    const unknown = (stage: string) => `topology "${planned.topology}" has no keyed stage "${stage}"`
    return stageStreams({ streams, unknown })
  }

  /** What the stages of the run are bound to. */
  stages(): readonly StageBindings[] {
    const { planned } = this.#options
    return planned.stages.map((stage) => bindingsOf(planned, stage, this.#resources))
  }

  /** Ends the workers. */
  stop(): Promise<void> {
    return this.#closing.close()
  }

  #binding(source: string): SourceBinding {
    return { name: source, kind: 'kinesis', streamArn: this.#stream(source).streamArn }
  }

  #stream(name: string): LocalStream {
    return this.#resources.streams.get(name) as LocalStream
  }

  #poolOf(source: string): Promise<WorkerPool> {
    const known = this.#pools.get(source) ?? this.#startPool(source)
    this.#pools.set(source, known)
    return known
  }

  async #startPool(source: string): Promise<WorkerPool> {
    const { planned, entry, directory, endpoints, onLine } = this.#options
    const stage = stageNamed(planned, source)
    const bindings = bindingsOf(planned, stage, this.#resources)
    // Not where a run keeps its own, whose workers may be loading it.
    const handlerFile = await bundleHandler({ entry, directory: join(directory, 'redrive', stage.name), bindings })
    const pool = await startWorkerPool({
      size: 1,
      handlerFile,
      functionName: `${planned.topology}-${stage.name}`,
      environment: environmentOf({ bindings, endpoints }),
      memoryLimitMb,
      timeoutMs,
      onLine: (_workerId, _output, line) => onLine(line),
    })
    this.#closing.defer(() => pool.stop())
    return pool
  }
}
