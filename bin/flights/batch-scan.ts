/**
 * The oracle of the main job: goes once over the whole input and says what must become of each record.
 *
 * It shares nothing with the topology: no schema, no decoder, no steps. Of the rest of the demo it uses the file readers'
 * rows, the input's bytes and the form in which outcomes are compared.
 */
import type { AirportRow } from './airports-json.ts'
import type { FlightRow } from './data-set.ts'
import type { InputRecord } from './input.ts'
import { cleanContent, type Outcome, Outcomes } from './outcomes.ts'

/** What must become of each record of the input. */
export function batchScan(
  input: readonly InputRecord[],
  flights: readonly FlightRow[],
  airports: readonly AirportRow[],
): Outcomes {
  const judge = judgeOf(airports)
  const outcomes = new Outcomes()
  let rowsSeen = 0
  for (const { data } of input) {
    const { outcome } = judge(data)
    outcomes.add(outcome)
    if (isRowOfTheFile(outcome.identity, data, flights)) rowsSeen++
  }
  if (rowsSeen !== flights.length) {
    throw new Error(`This is a bug in the demo: ${rowsSeen} of ${flights.length} rows of the file are in the input`)
  }
  return outcomes
}

/** Checks a report that names a row of the file against that row, so that the input itself is proven to be the file. */
function isRowOfTheFile(identity: string, data: Buffer, flights: readonly FlightRow[]): boolean {
  const [, digits] = /^row-(\d+)$/.exec(identity) ?? []
  if (digits === undefined) return false
  const row = flights[Number(digits)]
  const report = JSON.parse(data.toString())
  const same =
    row !== undefined &&
    report.scheduled === row.scheduled &&
    report.delayMinutes === row.delayMinutes &&
    report.distanceMiles === row.distanceMiles &&
    report.origin === row.origin &&
    report.destination === row.destination
  if (!same) throw new Error(`This is a bug in the demo: the report ${identity} differs from row ${digits} of the file`)
  return true
}

/** A flight as its report has it. */
export interface ReportedFlight {
  readonly flight: string
  /** `2001-01-01T00:01:00` */
  readonly scheduled: string
  readonly delayMinutes: number
  readonly origin: string
  readonly destination: string
}

/** What must become of one record, and what it reports; undefined where it cannot be read. */
export interface Judged {
  readonly outcome: Outcome
  readonly report: ReportedFlight | undefined
}

/** Judges records by themselves. */
export function judgeOf(airports: readonly AirportRow[]): (data: Uint8Array) => Judged {
  const byCode = new Map<string, AirportRow>()
  for (const airport of airports) byCode.set(airport.iata, airport)
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  return (data) => judge(data, utf8, byCode)
}

function judge(
  data: Uint8Array,
  utf8: InstanceType<typeof TextDecoder>,
  airports: ReadonlyMap<string, AirportRow>,
): Judged {
  const deadLetter = (reason: string): Judged => ({
    outcome: { kind: 'dead letter', identity: Buffer.from(data).toString('base64'), reason, content: '' },
    report: undefined,
  })
  let text: string
  try {
    text = utf8.decode(data)
  } catch {
    return deadLetter('not-utf8')
  }
  let report: Record<string, unknown>
  try {
    report = JSON.parse(text)
  } catch {
    return deadLetter('not-json')
  }
  const { flight, scheduled, delayMinutes, distanceMiles, origin, destination } = report
  if (
    typeof flight !== 'string' ||
    typeof scheduled !== 'string' ||
    typeof origin !== 'string' ||
    typeof destination !== 'string' ||
    typeof delayMinutes !== 'number' ||
    typeof distanceMiles !== 'number'
  ) {
    return deadLetter('invalid')
  }
  const known = { flight, scheduled, delayMinutes, origin, destination }
  const rejected = (reason: string): Judged => ({
    outcome: { kind: 'rejected', identity: flight, reason, content: text },
    report: known,
  })
  if (delayMinutes < -60) return rejected('delay-too-low')
  if (delayMinutes > 1440) return rejected('delay-too-high')
  const from = airports.get(origin)
  if (from === undefined) return rejected('unknown-origin')
  const to = airports.get(destination)
  if (to === undefined) return rejected('unknown-destination')
  const content = cleanContent({
    eventTime: `${scheduled}.000Z`,
    delayMinutes,
    distanceMiles,
    origin: [from.iata, from.name, from.city, from.state],
    destination: [to.iata, to.name, to.city, to.state],
  })
  return { outcome: { kind: 'clean', identity: flight, reason: '', content }, report: known }
}
