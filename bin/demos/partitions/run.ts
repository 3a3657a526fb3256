/** The demo of partitioned workers: 24 shards, three workers, one of which is killed. */
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Figure } from '../../../bench/figures.ts'
import { partitionsApp, type Ride } from '../../../functions/partitions/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { LiveDisplay } from '../../../lib/local/display/live-display.ts'
import { shardViews } from '../../../lib/local/display/run-display.ts'
import { type LocalApplication, startLocalApplication } from '../../../lib/local/run/application.ts'
import type { LocalInvocation } from '../../../lib/local/run/stage.ts'
import { until } from '../../flights/processing.ts'
import { type DemoRecord, send } from '../input.ts'
import { controlC, listenForKeys } from '../keys.ts'
import { Rates } from '../rates.ts'
import { figuresOf, type SentRide } from './assessment.ts'
import { type Checkpoints, Kills, timesOf } from './kills.ts'
import { RideTable } from './ride-table.ts'
import { killLine, type PartitionsView, partitionsRenderer } from './view.ts'

export interface PartitionsSettings {
  readonly shards: number
  readonly workers: number
  /** Records a second, all shards together. */
  readonly rate: number
  readonly seconds: number
  /** When a worker is killed; undefined leaves it to the key `k`. */
  readonly killAfter: number | undefined
}

const root = join(import.meta.dirname, '../../..')
const stateDirectory = '.millrace/demo-partitions'
const { nowMs } = systemClock
/** Exit code of a program that was ended by SIGINT. */
const killedExitCode = 130
/** How long the input goes on after the end so that every orphan has a record to show. */
const mostExtraMs = 5_000

/** Runs the demo and resolves with its figures. */
export async function runPartitions(settings: PartitionsSettings, stop: AbortController): Promise<readonly Figure[]> {
  const run = new PartitionsRun(settings, stop)
  const app = await startLocalApplication({
    topology: partitionsApp,
    entry: join(root, 'functions/partitions/handler.ts'),
    directory: stateDirectory,
    fresh: true,
    shards: settings.shards,
    workers: settings.workers,
    affinity: 'shards',
    mapping: {
      maximumBatchingWindowInSeconds: 0,
      // Lambda polls a shard without a backlog once a second: what is shown here is the take-over, not that wait.
      emulation: {
        pollIntervalMs: 100,
        backlogPollIntervalMs: 100,
        backoff: { initialMs: 50, factor: 2, maxMs: 60_000 },
      },
    },
    onWorkerEvent: (_stage, event) => run.kills.takeEvent(event),
    onInvocation: (invocation) => run.takeInvocation(invocation, app),
    onOutput: (output, records) => {
      if (output === 'rides-measured') run.table.take(records)
    },
  })
  const stopListening = listenForKeys(process.stdin, (key) => {
    // In raw mode a terminal sends no signal, so the second Ctrl-C must be heard here too.
    if (key === controlC && stop.signal.aborted) process.exit(killedExitCode)
    if (key === 'k') void run.kill(app)
    if (key === 'q' || key === controlC) stop.abort()
  })
  try {
    return await run.toTheEnd(app)
  } finally {
    stopListening()
    await app.stop()
  }
}

class PartitionsRun {
  readonly kills = new Kills()
  readonly table = new RideTable()
  readonly #settings: PartitionsSettings
  readonly #stop: AbortController
  readonly #display = new LiveDisplay<PartitionsView>(process.stdout, nowMs, partitionsRenderer)
  readonly #rates = new Rates(nowMs)
  readonly #invocations: LocalInvocation[] = []
  readonly #sent: SentRide[] = []
  readonly #recordsByWorker = new Map<string, number>()
  #isKilling = false

  constructor(settings: PartitionsSettings, stop: AbortController) {
    this.#settings = settings
    this.#stop = stop
  }

  takeInvocation(invocation: LocalInvocation, app: LocalApplication): void {
    this.#invocations.push(invocation)
    const { workerId, records, outcome } = invocation
    if (outcome === 'answered') {
      this.#recordsByWorker.set(workerId, (this.#recordsByWorker.get(workerId) ?? 0) + records)
    }
    this.kills.takeInvocation(invocation, () => checkpointsOf(app))
  }

  /**
   * Kills a worker in the middle of an invocation, which is when outputs may come again: the first one that is seen busy, and where
   * several are, the one that holds the most shards. When none is seen busy in time, an idle one is killed.
   */
  async kill(app: LocalApplication): Promise<void> {
    if (this.#isKilling) return
    this.#isKilling = true
    const lastMs = nowMs() + mostWaitForFlightMs
    // One that is dying already is still listed for a moment.
    const living = () => holders(app).filter(({ id }) => !this.kills.all.some(({ workerId }) => workerId === id))
    while (nowMs() < lastMs && !living().some(isBusy)) await nextTurn()
    const candidates = living()
    const victim = candidates.find(isBusy) ?? candidates[0]
    if (victim !== undefined) {
      this.kills.begin(victim.id, nowMs(), checkpointsOf(app))
      void app.workersOf('rides').killWorker(victim.id)
    }
    this.#isKilling = false
  }

  async toTheEnd(app: LocalApplication): Promise<readonly Figure[]> {
    const { shards, workers } = this.#settings
    this.#introduce()
    await app.run()
    await this.#feed(app)
    const forever = new AbortController().signal
    const show = () => this.#display.show(() => this.#view(app))
    const sentAtMs = nowMs()
    await until(() => app.hasProcessed(sentAtMs), forever, show)
    const processedAtMs = nowMs()
    await until(() => app.hasReadOutputs(processedAtMs), forever, show)
    this.#display.show(() => this.#view(app), 'now')
    this.#display.keep()
    for (const kill of this.#view(app).kills) if (!process.stdout.isTTY) this.#display.say(killLine(kill))
    const records = { shards, workers, sent: this.#sent, table: this.table, kills: this.kills.all }
    return figuresOf({ ...records, invocations: this.#invocations })
  }

  #introduce(): void {
    const { shards, workers, rate, seconds, killAfter } = this.#settings
    const kill = killAfter === undefined ? 'the key k kills one' : `one is killed after ${killAfter} s`
    this.#display.say(
      `${shards} shards on ${workers} workers with the same map and filter and one shared output, ${rate} records a second for ${seconds} s; ${kill}.`,
    )
    this.#display.say(
      'The invoker assigns shards to workers and keeps them there. An orphan is a shard whose worker died: it goes to another one at once. What the dead one had put out already may come again; the table behind the output stream stores each identity once, and so absorbs it.',
    )
    this.#display.say(
      'Shards are polled every 100 ms, and a killed invocation is tried again after 50 ms. (On AWS Lambda chooses the environment itself, polls an idle shard once a second, and does not say how long it waits.)',
    )
  }

  /** Sends rides evenly to all shards until the time is over and every orphan has shown a record. */
  async #feed(app: LocalApplication): Promise<void> {
    const { shards, rate, seconds, killAfter } = this.#settings
    const stream = { streamName: app.streamOf('rides').streamName, shards }
    const startMs = nowMs()
    const endMs = startMs + seconds * 1_000
    const isOver = () =>
      nowMs() >= endMs && (this.kills.areSettled(this.table.arrivalsMs) || nowMs() >= endMs + mostExtraMs)
    while (!this.#stop.signal.aborted && !isOver()) {
      const due = Math.floor(((nowMs() - startMs) / 1_000) * rate)
      const rides = Array.from({ length: due - this.#sent.length }, (_, index) => rideOf(this.#sent.length + index))
      const records = rides.map((ride, index) => recordOf(ride, (this.#sent.length + index) % shards))
      const places = await send(app.client, stream, records)
      for (const [index, place] of places.entries()) {
        this.#sent.push({ ...place, isKept: (rides[index]?.meters ?? 0) > 0 })
      }
      const isKillDue = killAfter !== undefined && nowMs() >= startMs + killAfter * 1_000
      if (isKillDue && this.kills.all.length === 0) await this.kill(app)
      this.#display.show(() => this.#view(app))
      await systemClock.sleep(feedEveryMs, this.#stop.signal)
    }
  }

  #view(app: LocalApplication): PartitionsView {
    const workers = workersOf(app)
    const shards = shardViews(app.status())
    const rates = this.#rates.sample(
      new Map([...this.#recordsByWorker, ...shards.map(({ shardId, done }) => [shardId, done] as const)]),
    )
    const rateOf = (name: string): number => rates.get(name) ?? 0
    return {
      sent: this.#sent.length,
      outputs: this.table.outputs,
      duplicates: this.table.duplicates,
      recordsPerSecond: shards.reduce((sum, { shardId }) => sum + rateOf(shardId), 0),
      workers: workers.map(({ id, pid, state, units }) => ({
        ...{ id, pid, state, holds: units },
        recordsPerSecond: rateOf(id),
      })),
      shards: shards.map(({ shardId, lagMs, state }) => ({
        ...{ shardId, lagMs, state },
        holder: workers.find(({ units }) => units.includes(shardId))?.id ?? '-',
        recordsPerSecond: rateOf(shardId),
      })),
      kills: this.kills.all.map((kill) => ({ ...kill, ...timesOf(kill, this.table.arrivalsMs) })),
      keys: process.stdin.isTTY ? 'k kills a worker, q ends the run' : '',
    }
  }
}

const feedEveryMs = 25

/** How long a kill waits for a worker that is busy. Shards are polled each 100 ms, so with enough input there is one by then. */
const mostWaitForFlightMs = 300

const workersOf = (app: LocalApplication) => app.status().stages[0]?.workers ?? []

/** Living workers that hold shards, those with the most first. */
const holders = (app: LocalApplication) =>
  workersOf(app)
    .filter(({ units }) => units.length > 0)
    .toSorted((one, other) => other.units.length - one.units.length)

const isBusy = ({ state }: { readonly state: string }): boolean => state === 'busy'

const checkpointsOf = (app: LocalApplication): Checkpoints =>
  new Map(app.status().stages[0]?.mapping.shards.map(({ shardId, position }) => [shardId, position]) ?? [])

/** Every fifth ride never moved. */
const rideOf = (number: number): Ride => ({
  ride: `ride-${number}`,
  driver: `driver-${number % 500}`,
  meters: number % 5 === 0 ? 0 : 500 + (number % 9_000),
  seconds: 60 + (number % 1_200),
})

const recordOf = (ride: Ride, shard: number): DemoRecord => ({ partitionKey: ride.driver, value: ride, shard })
