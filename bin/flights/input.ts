/**
 * The input of the main job: flight reports in the order in which they became known, with bad records planted among them.
 *
 * The same options give the same bytes in the same order, so that an interrupted replay goes on where it was.
 */
import type { FlightRow } from './data-set.ts'

/** What the replay sends: one record of the stream `flights`. */
export interface InputRecord {
  /** The origin, so that the reports of an airport keep their order. */
  readonly partitionKey: string
  readonly data: Buffer
  /** When the report became known: scheduled time plus delay, as ms since 1970 of the wall time read as UTC. */
  readonly knownMs: number
}

/** What a flight report looks like on the wire. */
interface Report {
  readonly flight: string
  readonly scheduled: string
  readonly delayMinutes: number
  readonly distanceMiles: number
  readonly origin: string
  readonly destination: string
}

/** The kinds of planted records, in turn. */
export const plantedKinds = ['cut JSON', 'wrong types', 'invalid UTF-8', 'unknown airport'] as const
export type PlantedKind = (typeof plantedKinds)[number]

const seed = 2001

export const rowId = (row: number): string => `row-${row}`
const wallMs = (wallTime: string): number => Date.parse(`${wallTime}Z`)
const knownMs = (flight: FlightRow): number => wallMs(flight.scheduled) + flight.delayMinutes * 60_000

/** Rows in the order in which they became known; of equal times the one that comes first in the file. */
export function inOrderOfKnowledge(flights: readonly FlightRow[]): readonly FlightRow[] {
  const known = flights.map((flight) => ({ flight, atMs: knownMs(flight) }))
  known.sort((one, other) => one.atMs - other.atMs || one.flight.row - other.flight.row)
  return known.map(({ flight }) => flight)
}

/** The whole input: every flight, and `planted` bad records at places that the seed decides. */
export function inputRecords(flights: readonly FlightRow[], planted: number): readonly InputRecord[] {
  const ordered = inOrderOfKnowledge(flights)
  const random = seededRandom(seed)
  const plantedAt = new Map<number, InputRecord[]>()
  for (let index = 0; index < planted; index++) {
    const at = Math.floor(random() * ordered.length)
    const neighbour = ordered[at]
    if (neighbour === undefined) break
    const record = plantedRecord(index, neighbour)
    plantedAt.set(at, [...(plantedAt.get(at) ?? []), record])
  }
  return ordered.flatMap((flight, index) => {
    const own = inputRecord(reportOf(flight), flight)
    const bad = plantedAt.get(index)
    return bad === undefined ? [own] : [own, ...bad]
  })
}

function reportOf(flight: FlightRow): Report {
  const { row, scheduled, delayMinutes, distanceMiles, origin, destination } = flight
  return { flight: rowId(row), scheduled, delayMinutes, distanceMiles, origin, destination }
}

function inputRecord(report: object, neighbour: FlightRow): InputRecord {
  return {
    partitionKey: neighbour.origin,
    data: Buffer.from(JSON.stringify(report)),
    knownMs: knownMs(neighbour),
  }
}

export function plantedKind(index: number): PlantedKind {
  return plantedKinds[index % plantedKinds.length] as PlantedKind
}

/** A bad record, made of the report of the flight before it under a name of its own, so that each one's bytes are different. */
function plantedRecord(index: number, neighbour: FlightRow): InputRecord {
  const report: Report = { ...reportOf(neighbour), flight: `planted-${index}` }
  const round = Math.floor(index / plantedKinds.length)
  switch (plantedKind(index)) {
    case 'cut JSON': {
      const whole = inputRecord(report, neighbour)
      return { ...whole, data: whole.data.subarray(0, whole.data.length - 10 - (round % 40)) }
    }
    case 'wrong types': {
      const wrong = [{ delayMinutes: 'late' }, { origin: 7 }, { scheduled: null }, { distanceMiles: [1] }]
      return inputRecord({ ...report, ...wrong[round % wrong.length] }, neighbour)
    }
    case 'invalid UTF-8': {
      const whole = inputRecord({ ...report, destination: '@@' }, neighbour)
      // 0xff and 0xfe occur in no UTF-8 text.
      whole.data.fill(round % 2 === 0 ? 0xff : 0xfe, whole.data.indexOf('@@'), whole.data.indexOf('@@') + 2)
      return whole
    }
    case 'unknown airport': {
      const unknown = round % 2 === 0 ? { origin: 'QQQ' } : { destination: 'QQQ' }
      return inputRecord({ ...report, ...unknown }, neighbour)
    }
  }
}

/** The generator mulberry32: numbers from 0 to 1, the same for the same seed on every machine. */
function seededRandom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
