/**
 * The oracle of what the topology keeps and works out per airport: a batch computation over the source log that shares no code with the
 * topology. It takes the reports in the order of each shard, since that is what "recent" and "late" go by.
 *
 * What is late is decided by its own shard alone: a report is late where its hour had ended, and the grace had passed, an hour (the
 * allowed disorder) before the latest scheduled time that the shard had held until then.
 */
import type { AirportRow } from './airports-json.ts'
import { judgeOf, type ReportedFlight } from './batch-scan.ts'
import { payloadText } from './replay.ts'
import type { SourceLog } from './source-log.ts'

/** The delays of one airport in one hour. */
export interface HourTotals {
  readonly flights: number
  readonly meanMinutes: number
  readonly maxMinutes: number
  readonly p90Minutes: number
}

export interface Departure {
  readonly flight: string
  readonly scheduled: string
  readonly delayMinutes: number
  readonly origin: string
  readonly destination: string
}

/** What is kept of one airport. */
export interface AirportTotals {
  readonly recent: readonly Departure[]
  readonly flights: number
  readonly delayed: number
  readonly worst: Departure
}

export interface BatchTotals {
  /** By airport and hour, such as `ATL 2001-01-01T05:00:00.000Z`. */
  readonly hours: ReadonlyMap<string, HourTotals>
  /** The hour that each late flight was too late for. */
  readonly late: ReadonlyMap<string, string>
  readonly airports: ReadonlyMap<string, AirportTotals>
  /** Records that are in the log more than once. */
  readonly repeated: number
}

const hourMs = 3_600_000
const disorderMs = hourMs
const graceMs = hourMs
const mostRecent = 5
const delayedFromMinutes = 15

export const hourKey = (airport: string, hour: string): string => `${airport} ${hour}`

export function batchAirports(log: SourceLog, airports: readonly AirportRow[]): BatchTotals {
  const judge = judgeOf(airports)
  const delays = new Map<string, number[]>()
  const late = new Map<string, string>()
  const totals = new Map<string, AirportTotals>()
  const seen = new Set<string>()
  let records = 0
  for (const shard of log) {
    let latestMs = Number.NEGATIVE_INFINITY
    for (const data of shard) {
      records += 1
      seen.add(payloadText(data))
      const { outcome, report } = judge(data)
      if (report === undefined) continue
      const atMs = Date.parse(`${report.scheduled}Z`)
      if (outcome.kind === 'clean') {
        totals.set(report.origin, withDeparture(totals.get(report.origin), report))
        const startMs = Math.floor(atMs / hourMs) * hourMs
        const key = hourKey(report.origin, new Date(startMs).toISOString())
        if (startMs + hourMs + graceMs <= latestMs - disorderMs) late.set(report.flight, key)
        else delays.set(key, [...(delays.get(key) ?? []), report.delayMinutes])
      }
      latestMs = Math.max(latestMs, atMs)
    }
  }
  const hours = new Map([...delays].map(([key, minutes]) => [key, hourTotals(minutes)]))
  return { hours, late, airports: totals, repeated: records - seen.size }
}

function hourTotals(minutes: readonly number[]): HourTotals {
  const sorted = minutes.toSorted((one, other) => one - other)
  const flights = sorted.length
  return {
    flights,
    meanMinutes: sorted.reduce((sum, delay) => sum + delay, 0) / flights,
    maxMinutes: sorted.at(-1) ?? 0,
    p90Minutes: sorted[Math.ceil(flights * 0.9) - 1] ?? 0,
  }
}

function withDeparture(before: AirportTotals | undefined, report: ReportedFlight): AirportTotals {
  const { flight, delayMinutes, origin, destination } = report
  const departure = { flight, scheduled: `${report.scheduled}.000Z`, delayMinutes, origin, destination }
  const { recent = [], flights = 0, delayed = 0, worst = departure } = before ?? {}
  return {
    recent: [...recent, departure].slice(-mostRecent),
    flights: flights + 1,
    delayed: delayed + (delayMinutes >= delayedFromMinutes ? 1 : 0),
    worst: delayMinutes > worst.delayMinutes ? departure : worst,
  }
}
