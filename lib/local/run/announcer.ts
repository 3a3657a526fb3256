/**
 * The announcer of a local run: a round each second, in place of the rule that calls it each minute on AWS.
 *
 * 1. Where the input is live, a source partition that is caught up moves its mark with the clock, as on AWS.
 * 2. Where it is bounded, silence says nothing, so that what is late does not depend on how fast the input is sent and read. Once
 *    it has ended, a partition that is caught up has the mark of the end of all time, and every window closes.
 */
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { announcerPorts } from '../../aws/handler/announcer-ports.ts'
import { describeError } from '../../core/errors.ts'
import type { Plan } from '../../plan/plan.ts'
import { type AnnouncerOptions, announce } from '../../runtime/announcer/announcer.ts'
import { silent } from '../silent-logger.ts'
import type { LocalEndpoints } from './endpoints.ts'
import type { LocalResources } from './resources.ts'
import type { LocalStream } from './streams.ts'
import { localDynamoDBClient } from './tables.ts'

const everyMs = 1_000

/** What the silence of a source means: see the rules above. */
export type LocalInput = 'live' | 'bounded'

export interface LocalAnnouncerOptions {
  readonly planned: Plan
  readonly resources: LocalResources
  readonly kinesis: KinesisClient
  readonly endpoints: LocalEndpoints
  readonly input: LocalInput
  /** Hears why a round failed; the next one begins anew. */
  readonly onFailure: (reason: string) => void
}

export class LocalAnnouncer {
  readonly #options: LocalAnnouncerOptions
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #hasEnded = false
  #isSettled = false
  #hasTimeEnded = false
  /** Ends the pause between two rounds. */
  #wake = new AbortController()

  constructor(options: LocalAnnouncerOptions) {
    this.#options = options
  }

  /** Begins the rounds, once. In a topology without keyed stages there is nothing to say. */
  start(): void {
    if (this.#hasKeyedStages) this.#running ??= this.#run()
  }

  /** The bounded input has ended: what waits for event time to pass is due from now on. */
  endInput(): void {
    this.#hasEnded = true
    this.#isSettled = !this.#hasKeyedStages
    this.#wake.abort()
  }

  /** True once the input has ended, every partition knows it and nothing waits for event time any more. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /** True once a partition was told that all time is over: where nothing waited for a time, none is. */
  get hasTimeEnded(): boolean {
    return this.#hasTimeEnded
  }

  /** Ends the rounds, after the one at hand. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wake.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { planned, resources, kinesis, endpoints, onFailure } = this.#options
    const { signal } = this.#stop
    const dynamodb = localDynamoDBClient(endpoints.dynamodb)
    const places = {
      streamOf: (stage: string) => ({ streamName: (resources.streams.get(stage) as LocalStream).streamName }),
      tableOf: (stage: string) => resources.stateTables.get(stage) as string,
    }
    const ports = announcerPorts(planned, { kinesis, dynamodb, logger: silent }, places)
    while (!signal.aborted) {
      const hasEnded = this.#hasEnded
      try {
        const said = await announce({ planned, ports, signal, ...this.#silence(hasEnded) })
        this.#hasTimeEnded ||= said.some(({ news }) => news.some(({ markMs }) => markMs === Number.POSITIVE_INFINITY))
        // Nothing is said any more: every window is closed, and its results are published.
        this.#isSettled = hasEnded && said.length === 0
      } catch (error) {
        if (!signal.aborted) onFailure(describeError(error).message)
      }
      if (hasEnded === this.#hasEnded) await ports.clock.sleep(everyMs, this.#wake.signal)
      if (!signal.aborted) this.#wake = new AbortController()
    }
    dynamodb.destroy()
  }

  get #hasKeyedStages(): boolean {
    return this.#options.planned.stages.some(({ kind }) => kind === 'keyed')
  }

  /** What a round says of partitions that are caught up. */
  #silence(hasEnded: boolean): Pick<AnnouncerOptions, 'idleMs'> {
    if (this.#options.input === 'live') return {}
    return { idleMs: hasEnded ? () => Number.POSITIVE_INFINITY : undefined }
  }
}
