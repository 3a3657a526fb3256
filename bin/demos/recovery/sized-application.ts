/** The count of visits as a local run over a state of some size, whose worker is killed again and again. */
import { join } from 'node:path'
import { visitCounts, visits, visitsApp } from '../../../functions/visits/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { type LocalApplication, startLocalApplication } from '../../../lib/local/run/application.ts'
import { startKinesisService } from '../../../lib/local/services/kinesis.ts'
import { send } from '../input.ts'
import { Kills, timesOf } from '../partitions/kills.ts'
import type { SizedRun } from './assessment.ts'
import { type StateService, stage, startStateService, userOf } from './state-service.ts'

const root = join(import.meta.dirname, '../../..')
const { nowMs, sleep } = systemClock

/** Lambda polls a shard without a backlog once a second: what is shown here is the recovery, not that wait. */
export const pollIntervalMs = 100
/** One for the shard, one that takes over. */
const workers = 2
const mostWaitForFlightMs = 300
const mostRecoveryMs = 30_000
const mostSettlingMs = 180_000
const lookEveryMs = 5

export class SizedApplication {
  readonly keys: number
  readonly #kills = new Kills()
  readonly #arrivalsMs = new Map<string, number[]>()
  readonly #state: StateService
  readonly #closing: (() => Promise<void>)[] = []
  #app: LocalApplication | undefined
  #sent = 0

  private constructor(keys: number, state: StateService) {
    this.keys = keys
    this.#state = state
  }

  static async start(keys: number): Promise<SizedApplication> {
    const state = await startStateService(keys)
    const own = new SizedApplication(keys, state)
    own.#closing.push(() => state.close())
    try {
      await own.#open()
    } catch (error) {
      await own.stop()
      throw error
    }
    return own
  }

  async #open(): Promise<void> {
    const kinesis = await startKinesisService()
    this.#closing.push(() => kinesis.close())
    const app = await startLocalApplication({
      topology: visitsApp,
      entry: join(root, 'functions/visits/handler.ts'),
      directory: `.millrace/demo-recovery/${this.keys}`,
      fresh: true,
      endpoint: { kinesis: kinesis.url, dynamodb: this.#state.url },
      shards: 1,
      workers,
      affinity: 'shards',
      mapping: {
        maximumBatchingWindowInSeconds: 0,
        emulation: {
          pollIntervalMs,
          backlogPollIntervalMs: pollIntervalMs,
          backoff: { initialMs: 50, factor: 2, maxMs: 60_000 },
        },
      },
      onWorkerEvent: (name, event) => {
        if (name === stage) this.#kills.takeEvent(event)
      },
      onInvocation: (invocation) => {
        if (invocation.stage === stage) this.#kills.takeInvocation(invocation, () => this.#checkpoints())
      },
      onOutput: (output, records) => {
        // One shard, so every result is one of its.
        if (output === visitCounts.name) this.#arrived(records.map(({ arrivalMs }) => arrivalMs))
      },
    })
    this.#app = app
    this.#closing.push(() => app.stop())
    await app.run()
  }

  get #running(): LocalApplication {
    if (this.#app === undefined) throw new Error('the application was not started')
    return this.#app
  }

  #arrived(timesMs: readonly number[]): void {
    for (const { shardId } of this.#stageStatus().mapping.shards) {
      const known = this.#arrivalsMs.get(shardId) ?? []
      this.#arrivalsMs.set(shardId, [...known, ...timesMs])
    }
  }

  #stageStatus() {
    const found = this.#running.status().stages.find(({ name }) => name === stage)
    if (found === undefined) throw new Error(`there is no stage "${stage}"`)
    return found
  }

  #checkpoints() {
    return new Map(this.#stageStatus().mapping.shards.map(({ shardId, position }) => [shardId, position]))
  }

  /** Sends visits of users from all over the state, until it is told to stop. */
  async feed(recordsPerSecond: number, stop: AbortSignal): Promise<void> {
    const stream = { streamName: this.#running.streamOf(visits.name).streamName, shards: 1 }
    const startMs = nowMs()
    while (!stop.aborted) {
      const due = Math.floor(((nowMs() - startMs) / 1_000) * recordsPerSecond)
      const users = Array.from({ length: due - this.#sent }, (_, i) => userOf(userNumber(this.#sent + i, this.keys)))
      await send(
        this.#running.client,
        stream,
        users.map((user) => ({ partitionKey: user, value: { user, page: '/' } })),
      )
      this.#sent += users.length
      await sleep(25, stop)
    }
  }

  /** Kills the worker that holds the shard, in the middle of an invocation where there is one in time, and waits for results. */
  async killOnce(stop: AbortSignal): Promise<number | undefined> {
    await this.#until(() => this.#isReady(), stop)
    const lastMs = nowMs() + mostWaitForFlightMs
    while (nowMs() < lastMs && this.#holder()?.state !== 'busy') await sleep(1, stop)
    const victim = this.#holder()
    if (victim === undefined || stop.aborted) return undefined
    this.#kills.begin(victim.id, nowMs(), this.#checkpoints())
    void this.#running.workersOf(stage).killWorker(victim.id)
    await this.#until(() => this.#kills.areSettled(this.#arrivalsMs), stop)
    return this.#recoveries().at(-1)
  }

  /** Both workers live, one of them holds the shard, and results come. */
  #isReady(): boolean {
    const living = this.#stageStatus().workers.filter(({ state }) => state === 'idle' || state === 'busy')
    return living.length === workers && this.#holder() !== undefined && this.#arrivalsMs.size > 0
  }

  #holder() {
    return this.#stageStatus().workers.find(({ units }) => units.length > 0)
  }

  async #until(condition: () => boolean, stop: AbortSignal, mostMs = mostRecoveryMs): Promise<void> {
    const lastMs = nowMs() + mostMs
    while (!condition() && nowMs() < lastMs && !stop.aborted) await sleep(lookEveryMs, stop)
  }

  #recoveries(): readonly number[] {
    const times = this.#kills.all.map((kill) => timesOf(kill, this.#arrivalsMs).firstRecordMs)
    return times.filter((timeMs) => timeMs !== undefined)
  }

  /** What came of it, once all that was sent is processed. */
  async settled(): Promise<SizedRun> {
    const sentAtMs = nowMs()
    const isProcessed = () => this.#running.hasProcessed(sentAtMs)
    await this.#until(isProcessed, new AbortController().signal, mostSettlingMs)
    const { users, visits: total } = await this.#state.total()
    // What is not processed says nothing of what is lost.
    const counted = isProcessed() ? total : Number.POSITIVE_INFINITY
    const times = this.#kills.all.map((kill) => timesOf(kill, this.#arrivalsMs))
    const takeOversMs = times.flatMap(({ detectionMs, takeOverMs }) =>
      detectionMs === undefined || takeOverMs === undefined ? [] : [detectionMs + takeOverMs],
    )
    const { keys } = this
    const kills = this.#kills.all.length
    return { keys, kills, recoveriesMs: this.#recoveries(), takeOversMs, sent: this.#sent, users, counted }
  }

  async stop(): Promise<void> {
    for (const close of this.#closing.splice(0).reverse()) await close()
  }
}

/** Users in an order that leaves none out and hardly repeats any: every visit is one of a key that is not in memory. */
const userNumber = (visit: number, keys: number): number => (visit * 7_919) % keys
