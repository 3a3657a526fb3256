/** The demo of payments: more workers in a running stream, with a sink that is far away and with one that is near. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type Figure, median } from '../../../bench/figures.ts'
import { paymentsApp } from '../../../functions/payments/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { LiveDisplay } from '../../../lib/local/display/live-display.ts'
import { grouped } from '../../../lib/local/display/run-display.ts'
import {
  type LocalApplication,
  type LocalApplicationOptions,
  startLocalApplication,
} from '../../../lib/local/run/application.ts'
import { until } from '../../flights/processing.ts'
import { send } from '../input.ts'
import { Books } from './books.ts'
import { startSettlementService } from './settlement-service.ts'

export interface PaymentsSettings {
  readonly from: number
  readonly to: number
  readonly shards: number
  readonly parallelizationFactor: number
  readonly batchSize: number
  readonly roundTripMs: number
  /** Payments that are sent and not yet done, at any time: the same whatever the number of workers. */
  readonly backlog: number
  /** How long each number of workers is measured. */
  readonly seconds: number
}

/** What one application did with few and with many workers. */
interface Growth {
  readonly few: number
  readonly many: number
  /** From the call that adds workers until all of them have loaded the handler. */
  readonly growMs: number
  readonly books: Books
}

interface View {
  readonly title: string
  readonly workers: number
  readonly recordsPerSecond: number
  readonly books: Books
  readonly backlog: number
}

const root = join(import.meta.dirname, '../../..')
const { nowMs } = systemClock
const warmUpMs = 3_000
/** How much of the growth in workers must show as throughput: 2.4 times from 3 to 8. */
const goalShare = 0.9

const renderer = {
  block: (view: View) => [lineOf(view)],
  line: (view: View, atMs: number) => `${new Date(atMs).toISOString().slice(0, 19)}Z | ${lineOf(view)}`,
}

function lineOf({ title, workers, recordsPerSecond, books, backlog: waiting }: View): string {
  const { validated, rejected, 'dead letter': dead } = books.counts
  return `${title} | ${workers} workers | ${grouped(recordsPerSecond)}/s | sent ${grouped(books.sent)}, waiting ${grouped(waiting)} | validated ${grouped(validated)}, rejected ${grouped(rejected)}, dead letters ${grouped(dead)}`
}

/** Runs the demo and resolves with its figures; when it was stopped, with those of the payments alone. */
export async function runPayments(settings: PaymentsSettings, signal: AbortSignal): Promise<readonly Figure[]> {
  const { from, to, shards, parallelizationFactor: factor, batchSize } = settings
  const display = new LiveDisplay<View>(process.stdout, nowMs, renderer)
  for (const text of [
    `Payments are validated, converted with static rates and published to payments-validated or payments-rejected. (A broker's topics may be called payment.validated; names in a topology are words with dashes, so these are.)`,
    `From ${from} to ${to} workers in a running stream of ${shards} shards with a parallelization factor of ${factor}; the topology, the handler and the stream stay as they are.`,
    `On AWS nobody adds workers: Lambda runs one invocation per shard times parallelization factor, here at most ${shards} x ${factor} = ${shards * factor}, and reserved concurrency caps them. Throughput follows the workers up to that number.`,
    `First the sinks are a settlement service of the user's own, ${settings.roundTripMs} ms away (provided with \`provide\`), then the two streams on this machine. What is CPU-bound cannot grow beyond the ${availableParallelism()} cores here.`,
    `The backlog is held at ${grouped(settings.backlog)} payments, in batches of ${batchSize}; each figure is the median of ${settings.seconds} one-second rates.`,
  ]) {
    display.say(text)
  }
  const far = await measureFar(settings, display, signal)
  if (signal.aborted) return bookFigures([far.books])
  const near = await measureNear(settings, display, signal)
  return [
    ...growthFigures(settings, farTitle(settings), far, goalOf(settings)),
    ...growthFigures(settings, nearTitle, near),
    ...bookFigures([far.books, near.books]),
  ]
}

/** Workers beyond the number of shards times parallelization factor have nothing to do. */
function goalOf({ from, to, shards, parallelizationFactor }: PaymentsSettings): number {
  const atOnce = (workers: number): number => Math.min(workers, shards * parallelizationFactor)
  return Math.round(goalShare * 100 * (atOnce(to) / atOnce(from))) / 100
}

function growthFigures({ from, to }: PaymentsSettings, title: string, growth: Growth, goal?: number): Figure[] {
  const { few, many, growMs } = growth
  if (Number.isNaN(many)) return []
  const ratio = { name: `${title}: ${to} workers against ${from}`, value: many / few, unit: 'times' }
  return [
    { name: `${title}: ${from} workers`, value: Math.round(few), unit: 'records/s' },
    { name: `${title}: ${to} workers`, value: Math.round(many), unit: 'records/s' },
    goal === undefined ? ratio : { ...ratio, goal },
    { name: `${title}: time to add ${to - from} workers`, value: Math.round(growMs), unit: 'ms' },
  ]
}

function bookFigures(all: readonly Books[]): Figure[] {
  const total = (of: (books: Books) => number): number => all.reduce((sum, books) => sum + of(books), 0)
  const records = { unit: 'records' } as const
  return [
    { name: 'payments sent', value: total(({ sent }) => sent), ...records },
    { name: 'validated', value: total(({ counts }) => counts.validated), ...records },
    { name: 'rejected', value: total(({ counts }) => counts.rejected), ...records },
    { name: 'dead letters', value: total(({ counts }) => counts['dead letter']), ...records },
    { name: 'lost', value: total(({ lost }) => lost), goal: 0, better: 'lower', ...records },
    { name: 'in the wrong output', value: total(({ misplaced }) => misplaced), goal: 0, better: 'lower', ...records },
    { name: 'repeated outputs', value: total(({ repeats }) => repeats), ...records },
  ]
}

const farTitle = ({ roundTripMs }: PaymentsSettings): string => `sink ${roundTripMs} ms away`
const nearTitle = 'CPU-bound'

/** The sinks are a service that takes its time: workers wait most of theirs, so more of them do more. */
async function measureFar(settings: PaymentsSettings, display: LiveDisplay<View>, signal: AbortSignal) {
  const books = new Books()
  const service = await startSettlementService(settings.roundTripMs, (path, values) => books.takeSettled(path, values))
  try {
    const entry = join(root, 'functions/payments/settling-handler.ts')
    const options = { entry, environment: { SETTLEMENT_URL: service.url } }
    return await measure({ settings, title: farTitle(settings), books, display, signal }, options)
  } finally {
    await service.close()
  }
}

/** The sinks are streams of the same machine: it has so many cores, and more workers than that share them. */
function measureNear(settings: PaymentsSettings, display: LiveDisplay<View>, signal: AbortSignal): Promise<Growth> {
  const entry = join(root, 'functions/payments/handler.ts')
  return measure({ settings, title: nearTitle, books: new Books(), display, signal }, { entry })
}

interface MeasurementParts {
  readonly settings: PaymentsSettings
  readonly title: string
  readonly books: Books
  readonly display: LiveDisplay<View>
  readonly signal: AbortSignal
}

async function measure(
  parts: MeasurementParts,
  handler: Pick<LocalApplicationOptions, 'entry' | 'environment'>,
): Promise<Growth> {
  const { from, shards, parallelizationFactor, batchSize } = parts.settings
  const app = await startLocalApplication({
    ...handler,
    topology: paymentsApp,
    directory: '.millrace/demo-payments',
    fresh: true,
    shards,
    workers: from,
    batchSize,
    mapping: { parallelizationFactor, maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 200 } },
    onOutput: (output, records) => parts.books.take(output, records),
  })
  try {
    return await new Measurement(app, parts).grow()
  } finally {
    await app.stop()
  }
}

class Measurement {
  readonly #app: LocalApplication
  readonly #parts: MeasurementParts
  #rate = 0

  constructor(app: LocalApplication, parts: MeasurementParts) {
    this.#app = app
    this.#parts = parts
  }

  async grow(): Promise<Growth> {
    const { from, to } = this.#parts.settings
    const isOver = new AbortController()
    await this.#refill()
    await this.#app.run()
    const feeding = this.#feed(isOver.signal)
    try {
      const few = await this.#steadyRate()
      const addedAtMs = nowMs()
      await this.#app.workersOf('payments').addWorkers(to - from)
      const growMs = nowMs() - addedAtMs
      const many = await this.#steadyRate()
      return { few, many, growMs, books: this.#parts.books }
    } finally {
      isOver.abort()
      await feeding
      await this.#drain()
    }
  }

  /** The median of one-second rates once the stream runs evenly; NaN when the demo was stopped. */
  async #steadyRate(): Promise<number> {
    await systemClock.sleep(warmUpMs, this.#parts.signal)
    const rates: number[] = []
    while (rates.length < this.#parts.settings.seconds && !this.#parts.signal.aborted) {
      const [startMs, startDone] = [nowMs(), this.#done]
      await systemClock.sleep(1_000, this.#parts.signal)
      this.#rate = ((this.#done - startDone) / (nowMs() - startMs)) * 1_000
      rates.push(this.#rate)
      this.#show('now')
    }
    return this.#parts.signal.aborted ? Number.NaN : median(rates)
  }

  async #feed(isOver: AbortSignal): Promise<void> {
    while (!isOver.aborted && !this.#parts.signal.aborted) {
      await this.#refill()
      await systemClock.sleep(feedEveryMs, isOver)
    }
  }

  async #refill(): Promise<void> {
    const { streamName } = this.#app.streamOf('payments')
    const missing = this.#parts.settings.backlog - (this.#parts.books.sent - this.#done)
    if (missing > 0) {
      await send(this.#app.client, { streamName, shards: this.#parts.settings.shards }, this.#parts.books.next(missing))
    }
  }

  /** Lets everything that was sent come out, so that the books can be balanced. */
  async #drain(): Promise<void> {
    const forever = new AbortController().signal
    const sentAtMs = nowMs()
    await until(() => this.#app.hasProcessed(sentAtMs), forever)
    const doneAtMs = nowMs()
    await until(() => this.#app.hasReadOutputs(doneAtMs), forever)
    this.#show('now')
    this.#parts.display.keep()
  }

  get #done(): number {
    const [stage] = this.#app.status().stages
    return [...(stage?.recordsDone.values() ?? [])].reduce((sum, done) => sum + done, 0)
  }

  #show(when: 'if due' | 'now'): void {
    const workers = this.#app.status().stages[0]?.workers.length ?? 0
    const waiting = this.#parts.books.sent - this.#done
    const shown = {
      title: this.#parts.title,
      workers,
      recordsPerSecond: this.#rate,
      books: this.#parts.books,
      backlog: waiting,
    }
    this.#parts.display.show(() => shown, when)
  }
}

const feedEveryMs = 50
