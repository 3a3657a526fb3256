/**
 * A local run of a topology with state, on embedded services that belong to this process: they outlive the application, which can be
 * stopped and started over them, and what they hold and cost can be looked at.
 */
import { join } from 'node:path'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { Figure } from '../../../bench/figures.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import type { Topology } from '../../../lib/index.ts'
import { Closing } from '../../../lib/local/closing.ts'
import {
  deadLetterOutput,
  type LocalApplication,
  type LocalApplicationOptions,
  startLocalApplication,
} from '../../../lib/local/run/application.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { type DynamoService, startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { type KinesisService, startKinesisService } from '../../../lib/local/services/kinesis.ts'
import type { DeadLetter } from '../../../lib/runtime/dead-letter.ts'
import { until } from '../../flights/processing.ts'
import { type DemoRecord, send } from '../input.ts'

export interface KeyedRunOptions {
  readonly topology: Topology
  /** The handler's file, relative to the root of the project. */
  readonly entry: string
  /** Where checkpoints, bundles and the function's log go. */
  readonly directory: string
  readonly shards: number
}

/** What may differ from one start of the application to the next. */
export type StartOptions = Pick<LocalApplicationOptions, 'batchSize' | 'fresh' | 'input' | 'onInvocation' | 'onOutput'>

const root = join(import.meta.dirname, '../../..')
const { nowMs } = systemClock
const forever = new AbortController().signal

export class KeyedRun {
  /** Why records became dead letters, in all applications that were started. */
  readonly deadLetters: string[] = []
  readonly dynamodb: DynamoService
  /** A plain client of the SDK. */
  readonly client: DynamoDBClient
  readonly #options: KeyedRunOptions
  readonly #kinesis: KinesisService
  readonly #closing: Closing
  #application: LocalApplication | undefined

  private constructor(
    options: KeyedRunOptions,
    services: { kinesis: KinesisService; dynamodb: DynamoService; closing: Closing },
  ) {
    this.#options = options
    this.#kinesis = services.kinesis
    this.dynamodb = services.dynamodb
    this.#closing = services.closing
    this.client = localDynamoDBClient(services.dynamodb.url)
    this.#closing.defer(() => this.client.destroy())
  }

  /** Starts the services; `start` starts the application. */
  static async open(options: KeyedRunOptions): Promise<KeyedRun> {
    const closing = new Closing()
    try {
      const kinesis = await startKinesisService()
      closing.defer(() => kinesis.close())
      const dynamodb = await startDynamoService()
      closing.defer(() => dynamodb.close())
      return new KeyedRun(options, { kinesis, dynamodb, closing })
    } catch (error) {
      await closing.close()
      throw error
    }
  }

  /** Starts the application over what the services hold, and begins to invoke it. */
  async start(options: StartOptions = {}): Promise<LocalApplication> {
    const { topology, entry, directory, shards } = this.#options
    const application = await startLocalApplication({
      ...options,
      ...{ topology, entry: join(root, entry), directory, shards },
      workers: 1,
      endpoint: { kinesis: this.#kinesis.url, dynamodb: this.dynamodb.url },
      mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 50 } },
      onOutput: (output, records) => {
        if (output === deadLetterOutput) this.#takeDeadLetters(records)
        else options.onOutput?.(output, records)
      },
    })
    this.#application = application
    await application.run()
    return application
  }

  /** Says the first reason at once: whatever a demo measures then is not what it should. */
  #takeDeadLetters(records: readonly { readonly data: Uint8Array }[]): void {
    for (const { data } of records) {
      const { reason } = JSON.parse(Buffer.from(data).toString()) as DeadLetter
      if (this.deadLetters.length === 0) console.error(`a dead letter: ${reason.message}`)
      this.deadLetters.push(reason.message)
    }
  }

  /** How many records became dead letters, as a figure. */
  get deadLetterFigure(): Figure {
    return { name: 'dead letters', value: this.deadLetters.length, unit: '', goal: 0, better: 'exactly' }
  }

  /** Sends records to the stream of a source, in order. */
  async send(source: string, records: readonly DemoRecord[]): Promise<void> {
    const { client, streamOf } = this.#running
    await send(client, { streamName: streamOf(source).streamName, shards: this.#options.shards }, records)
  }

  /** Resolves once all that was sent is processed and what came of it has been read. */
  async settle(): Promise<void> {
    const application = this.#running
    const sentAtMs = nowMs()
    await until(() => application.hasProcessed(sentAtMs), forever)
    const doneAtMs = nowMs()
    await until(() => application.hasReadOutputs(doneAtMs), forever)
  }

  /** Says that a bounded input has ended, and resolves once every window is closed and what came of it has been read. */
  async end(): Promise<void> {
    const application = this.#running
    application.endInput()
    await until(() => application.hasEnded(), forever)
    await this.settle()
  }

  /** Stops the application: what is in flight ends and its checkpoints are saved. */
  async stop(): Promise<void> {
    const application = this.#application
    this.#application = undefined
    await application?.stop()
  }

  /** Stops everything. */
  async close(): Promise<void> {
    await this.stop()
    await this.#closing.close()
  }

  get #running(): LocalApplication {
    if (this.#application === undefined) throw new Error('the application of the demo does not run')
    return this.#application
  }
}
