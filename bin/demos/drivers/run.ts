/**
 * The demo of driver state.
 *
 * The log of a source, and that of the keyed stage, are delivered again from their beginning up to a random point, as if both event
 * source mappings had lost their checkpoints and were stopped on their way. Then again, up to another point; the last time to the end. The
 * streams and the table stay what they are.
 */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Figure } from '../../../bench/figures.ts'
import { type DriverEvent, driverState, driversApp } from '../../../functions/drivers/topology.ts'
import { readState, stateView } from '../../../lib/aws/state-table/reader.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { CheckpointFile } from '../../../lib/local/files/checkpoint-file.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { until } from '../../flights/processing.ts'
import { KeyedRun } from '../tables/keyed-run.ts'
import { booksOf, type DriverBooks, driverEventsOf } from './events.ts'

export interface DriversSettings {
  readonly events: number
  readonly drivers: number
  /** How many prefixes are delivered again. */
  readonly replays: number
  readonly shards: number
  readonly seed: number
}

/** What one delivery did. */
interface Delivery {
  readonly name: string
  readonly batchSize: number
  /** Records of the source that the function was given. */
  readonly events: number
  /** Frames that the keyed stage was given. */
  readonly frames: number
  /** Drivers whose state in the table is another one than after the first delivery. */
  readonly changed: number
  /** The earnings of all drivers together. */
  readonly cents: number
}

const directory = '.millrace/demo-drivers'
const [source, keyed] = ['driver-events', 'by-driver'] as const
const tableName = tableNameOf(driversApp.name, keyed)
/** Where a stage has nothing more to be given, a prefix that was to be longer ends. */
const mostWaitMs = 30_000

/** Runs the demo and resolves with its figures. */
export async function runDrivers(settings: DriversSettings, signal: AbortSignal): Promise<readonly Figure[]> {
  const random = new Random(settings.seed)
  const events = driverEventsOf(random.fork('events'), settings.events, settings.drivers)
  console.log(
    [
      `${grouped(events.length)} events of ${grouped(settings.drivers)} drivers, drawn from the seed ${settings.seed}, over ${settings.shards} shards; the state of each driver is in the table ${tableName}.`,
      'Then the checkpoints of both stages are dropped, and a random prefix of both streams is delivered once more, cut into other batches.',
      '',
    ].join('\n'),
  )
  const { topology, shards } = { topology: driversApp, shards: settings.shards }
  const run = await KeyedRun.open({ topology, entry: 'functions/drivers/handler.ts', directory, shards })
  try {
    return await new Replays(run, events, random.fork('replays'), settings).all(signal)
  } finally {
    await run.close()
  }
}

class Replays {
  readonly #run: KeyedRun
  readonly #events: readonly DriverEvent[]
  readonly #drivers: readonly string[]
  readonly #random: Random
  readonly #settings: DriversSettings
  readonly #given = { [source]: 0, [keyed]: 0 }
  #first: ReadonlyMap<string, DriverBooks> = new Map()

  constructor(run: KeyedRun, events: readonly DriverEvent[], random: Random, settings: DriversSettings) {
    this.#run = run
    this.#events = events
    this.#drivers = [...new Set(events.map(({ driver }) => driver))]
    this.#random = random
    this.#settings = settings
  }

  async all(signal: AbortSignal): Promise<readonly Figure[]> {
    const first = await this.#deliverAll()
    const wrong = this.#differing(new Map(this.#drivers.map((driver) => [driver, booksOf(this.#events, driver)])))
    const deliveries = [first]
    const { replays } = this.#settings
    try {
      for (let i = 1; i <= replays && !signal.aborted; i += 1) deliveries.push(await this.#deliverAgain(i, replays))
    } catch (error) {
      // Ctrl-C ends the bundler too, which belongs to the same terminal.
      if (!signal.aborted) throw error
    }
    console.log(['', ...deliveryLines(deliveries)].join('\n'))
    return [...figuresOf(deliveries, this.#drivers.length, wrong), this.#run.deadLetterFigure]
  }

  async #deliverAll(): Promise<Delivery> {
    const batchSize = 500
    await this.#run.start({ batchSize, fresh: true, onInvocation: (invocation) => this.#count(invocation) })
    const records = this.#events.map((value) => ({ partitionKey: value.driver, value }))
    await this.#run.send(source, records)
    await this.#run.settle()
    await this.#run.stop()
    this.#first = await this.#books()
    return this.#delivery('all events', batchSize)
  }

  /** Once more from the beginning; the last time to the end. */
  async #deliverAgain(number: number, replays: number): Promise<Delivery> {
    this.#given[source] = 0
    this.#given[keyed] = 0
    await this.#dropCheckpoints()
    const batchSize = this.#random.integer(1, 500)
    const isLast = number === replays
    const prefix = isLast ? this.#events.length : this.#random.integer(1, this.#events.length)
    await this.#run.start({ batchSize, onInvocation: (invocation) => this.#count(invocation) })
    const endMs = systemClock.nowMs() + mostWaitMs
    if (isLast) await this.#run.settle()
    else {
      const isDone = () => (this.#given[source] >= prefix && this.#given[keyed] > 0) || systemClock.nowMs() > endMs
      await until(isDone, new AbortController().signal)
    }
    await this.#run.stop()
    return this.#delivery(isLast ? `replay ${number}, to the end` : `replay ${number}`, batchSize)
  }

  /** As if both event source mappings had never saved one. */
  async #dropCheckpoints(): Promise<void> {
    for (const stage of [source, keyed]) {
      const file = new CheckpointFile(join(directory, 'checkpoints', `${stage}.json`))
      for (const shardId of (await file.load()).keys()) {
        await file.save(shardId, { position: { at: 'trim-horizon' }, drained: false })
      }
    }
  }

  #count({ stage, records }: { readonly stage: string; readonly records: number }): void {
    if (stage === source || stage === keyed) this.#given[stage] += records
  }

  async #delivery(name: string, batchSize: number): Promise<Delivery> {
    const books = await this.#books()
    const cents = [...books.values()].reduce((sum, driver) => sum + driver.cents, 0)
    const changed = this.#differing(books)
    console.log(
      `${name}: ${grouped(this.#given[source])} events and ${grouped(this.#given[keyed])} frames were delivered`,
    )
    return { name, batchSize, events: this.#given[source], frames: this.#given[keyed], changed, cents }
  }

  #differing(books: ReadonlyMap<string, DriverBooks>): number {
    return this.#drivers.filter((driver) => !isDeepStrictEqual(books.get(driver), this.#first.get(driver))).length
  }

  /** What the table holds of every driver. */
  async #books(): Promise<ReadonlyMap<string, DriverBooks>> {
    const view = stateView(driversApp, keyed, { driver: driverState })
    const reader = readState({ client: this.#run.client, tableName, view })
    const books = new Map<string, DriverBooks>()
    for (const driver of this.#drivers) {
      const { position, load = 0, earnings, updatedAtMs = 0 } = (await reader.get(driver))?.states.driver ?? {}
      const { fromMs, cents = 0 } = earnings ?? {}
      books.set(driver, { position: position && { ...position }, load, fromMs, cents, updatedAtMs })
    }
    return books
  }
}

function deliveryLines(deliveries: readonly Delivery[]): readonly string[] {
  const head = [
    'delivery',
    'batch size',
    'events delivered',
    'frames delivered',
    'earnings this hour',
    'drivers changed',
  ]
  const rows = deliveries.map(({ name, batchSize, events, frames, cents, changed }) => [
    ...[name, grouped(batchSize), grouped(events), grouped(frames), (cents / 100).toFixed(2), grouped(changed)],
  ])
  return table([head, ...rows], [false, true, true, true, true, true])
}

function figuresOf(deliveries: readonly Delivery[], drivers: number, wrong: number): Figure[] {
  const again = deliveries.slice(1)
  const sum = (of: (delivery: Delivery) => number): number => again.reduce((total, delivery) => total + of(delivery), 0)
  const [first] = deliveries
  const exactly = (name: string, value: number, unit: string, goal: number): Figure => ({
    ...{ name, value, unit, goal },
    better: 'exactly',
  })
  return [
    { name: 'drivers', value: drivers, unit: '' },
    exactly('drivers whose state differs from a plain loop over the events', wrong, 'drivers', 0),
    { name: 'prefixes delivered again', value: again.length, unit: '' },
    { name: 'events delivered again', value: sum(({ events }) => events), unit: 'events', goal: again.length },
    { name: 'frames delivered again', value: sum(({ frames }) => frames), unit: 'frames', goal: again.length },
    exactly(
      'drivers changed by a replay',
      sum(({ changed }) => changed),
      'drivers',
      0,
    ),
    exactly(
      'earnings changed by replays',
      sum(({ cents }) => Math.abs(cents - (first?.cents ?? 0))),
      'cents',
      0,
    ),
  ]
}
