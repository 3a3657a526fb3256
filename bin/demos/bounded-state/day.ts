/**
 * A day of distinct keys on a virtual clock, with the production state store on the model of DynamoDB.
 *
 * 1. Each hour so many devices report that never report again; the steady ones report every hour, until the end.
 * 2. After each hour TTL removes what has expired, all at once. (DynamoDB takes up to a few days for it.)
 * 3. What is allowed to be there is computed apart from the runner, from the rule in docs/state-table.md: an item stays for its TTL, the
 *    retentions of the source and of the stage's stream, and a day after it was written last.
 */
import {
  boundedStateApp,
  type Finding,
  foundByEventTime,
  foundByProcessingTime,
  type Report,
  reports,
  visibleFor,
} from '../../../functions/bounded-state/topology.ts'
import { days, hours } from '../../../lib/index.ts'
import { itemsOf, TableWorld } from '../tables/table-world.ts'

export interface DaySettings {
  /** For how many hours new devices report. */
  readonly hours: number
  /** New devices each hour. */
  readonly devices: number
  /** Devices that report every hour. */
  readonly steady: number
}

/** What the table holds at the end of an hour. */
export interface Hour {
  /** From 1. */
  readonly hour: number
  /** Distinct keys that reported so far. */
  readonly keysSoFar: number
  readonly keyItems: number
  readonly entries: number
  /** As DynamoDB counts them, progress and manifest included. */
  readonly bytes: number
  /** Key items that the rule allows by now. */
  readonly allowedKeyItems: number
  readonly allowedEntries: number
  /** The most that a steady device found of any one map of its own: what is visible of it, not what is stored. */
  readonly mostVisible: number
}

/** Kinesis keeps records for a day where nobody says otherwise, in the source and in the stream of the stage. */
export const retention = days(1)
const hourMs = hours(1).ms
/** The two map states of the topology. */
const maps = 2

/** How long after its last write TTL may take an item. */
const lingerMs = visibleFor.ms + 2 * retention.ms + days(1).ms

/** After how many hours the last item of a device that reports no more has gone. */
export const hoursUntilEmpty = Math.ceil(lingerMs / hourMs) + 1

export class Day {
  readonly #settings: DaySettings
  readonly #world = new TableWorld(boundedStateApp, { retention, nowMs: Date.UTC(2026, 2, 1) })
  /** When each key, and each entry, was written last, in ms since 1970 UTC. */
  readonly #keysMs = new Map<string, number>()
  readonly #entriesMs = new Map<string, number>()
  #findingsRead = 0
  #hour = 0

  constructor(settings: DaySettings) {
    this.#settings = settings
  }

  /** Whether nothing but the steady devices can be left. */
  get isOver(): boolean {
    return this.#hour >= this.#settings.hours + hoursUntilEmpty
  }

  async nextHour(): Promise<Hour> {
    const { clock, model } = this.#world
    const atMs = clock.nowMs()
    const batch = this.#reportsOf(atMs)
    if (batch.length > 0) await this.#world.send(reports, batch)
    for (const { device } of batch) {
      this.#keysMs.set(device, atMs)
      this.#entriesMs.set(`${device} ${atMs}`, atMs)
    }
    clock.advance(hourMs)
    model.sweepExpired()
    this.#hour += 1
    return this.#look()
  }

  #reportsOf(atMs: number): Report[] {
    const { hours: inputHours, devices, steady } = this.#settings
    const fresh = this.#hour < inputHours ? devices : 0
    const celsius = 15 + (this.#hour % 24) / 4
    const named = (name: string, count: number): Report[] =>
      Array.from({ length: count }, (_, i) => ({ device: `${name}-${i}`, atMs, celsius }))
    return [...named(`device-${this.#hour}`, fresh), ...named('steady', steady)]
  }

  #look(): Hour {
    const { clock, model } = this.#world
    const table = this.#world.tableOf('by-device')
    const sortKeys = itemsOf(model, table).map(({ sk }) => sk?.S ?? '')
    const allowed = (written: ReadonlyMap<string, number>): number =>
      [...written.values()].filter((writtenMs) => writtenMs + lingerMs >= clock.nowMs()).length
    return {
      hour: this.#hour,
      keysSoFar: this.#keysMs.size,
      keyItems: sortKeys.filter((sk) => sk === 'key').length,
      entries: sortKeys.filter((sk) => sk.startsWith('map#')).length,
      bytes: model.call('DescribeTable', { TableName: table }).Table.TableSizeBytes,
      allowedKeyItems: allowed(this.#keysMs),
      allowedEntries: allowed(this.#entriesMs) * maps,
      mostVisible: Math.max(0, ...this.#newFindings().map(({ found }) => found.byHour)),
    }
  }

  #newFindings(): readonly Finding[] {
    const { ports } = this.#world
    const all = [foundByEventTime, foundByProcessingTime].map((sink) => ports.received(sink))
    const fresh = all.flatMap((findings) => findings.slice(this.#findingsRead))
    this.#findingsRead = all[0]?.length ?? 0
    return fresh
  }
}
