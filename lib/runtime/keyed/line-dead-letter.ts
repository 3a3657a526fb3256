/** The dead letter of a line: of a record with the coordinates of its source, or of an entry that cannot be decoded. */
import { type RecordInfo, SourceRecord } from '../../core/record.ts'
import { type DeadLetter, deadLetterOf, later } from '../dead-letter.ts'
import { positionHashOf } from '../frames/position.ts'
import type { GivenUp } from '../outbox.ts'
import type { DueTimer } from '../program.ts'
import type { Line } from '../progress/fold.ts'
import { endOfTimeMs } from '../skew.ts'
import type { FiringLine } from './keyed-line.ts'
import { OutputRecordInfo, placeDigits } from './record-info.ts'

/** `record` names the dead letter to its sink: several records of the stage may come of one record of the source. */
export function lineDeadLetter(
  line: Line,
  entry: SourceRecord,
  failure: GivenUp,
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
  generation: number,
): { readonly entry: DeadLetter; readonly record: RecordInfo } {
  const { slot, number, record, schemaVersion } = line
  if (record === undefined) return { entry: deadLetterOf(entry, failure, where), record: entry }
  const { key, origin, value, side, eventTimeMs, headers } = record
  const { source, partition, position, subPosition, arrivalTimeMs } = origin
  const payload = Buffer.from(value)
  const original = new SourceRecord({ source, partition, position, subPosition, arrivalTimeMs, key, payload, headers })
  const ownMarkMs = Number.isFinite(record.ownMarkMs) ? record.ownMarkMs : null
  const skewed = record.ownMarkMs === endOfTimeMs ? { isSkewed: true as const } : {}
  const newer = schemaVersion === 1 ? {} : { schemaVersion }
  const keyed = { side, slot, number, eventTimeMs, ownMarkMs, ...skewed, ...newer }
  // Several records of the stage may come of one source record, so its own number names each. One that was redriven keeps
  // its identity: it is one dead letter, however often it is redriven and fails, and its key takes it once.
  const id = record.redrive ?? `${where.stage}/slot-${slot}/${number}`
  return {
    entry: deadLetterOf(original, failure, where, { id, keyed, ...later(generation) }),
    record: new OutputRecordInfo(where.stage, slot, { number, keyHash: undefined }, record),
  }
}

/** Where a firing takes place: what names its dead letters. */
type FiringPlace = Pick<FiringLine, 'line' | 'key' | 'keyHash'>

/** The dead letter of a timer whose step threw: the key, the timer and its time. The key's state stays as it was, without it. */
export function firingDeadLetter(
  firing: FiringPlace,
  timer: DueTimer,
  error: unknown,
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
): { readonly entry: DeadLetter; readonly record: RecordInfo } {
  const record = firingRecord(firing, timer, where.stage, 0)
  const entry = deadLetterOf(record, { error, phase: 'timer', attempts: 1 }, where)
  return { entry: { ...entry, id: `${entry.id}/${timer.name}/${timer.timeMs}` }, record }
}

/** The dead letter of what a timer put out, of a window too, and a sink refused: its state stands. Each holds its key and its timer. */
export function firedOutputDeadLetter(
  firing: FiringPlace,
  failure: GivenUp,
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
): { readonly entry: DeadLetter; readonly record: RecordInfo } {
  // Beside the timers that failed in the same step, which have the places from 0 on.
  const record = firingRecord(firing, failure.output?.timer, where.stage, 1)
  return { entry: deadLetterOf(record, { ...failure, first: undefined }, where), record }
}

function firingRecord(
  { line, key, keyHash }: FiringPlace,
  timer: DueTimer | undefined,
  stage: string,
  subPosition: number,
): SourceRecord {
  return new SourceRecord({
    source: stage,
    partition: `slot-${line.slot}`,
    // By the key's hash wherever it fires: at a record of its own that is a dead letter too, that one has the plain place.
    position: placeDigits({ number: line.number, keyHash: keyHash ?? positionHashOf(key) }),
    subPosition,
    arrivalTimeMs: line.arrivedAtMs,
    key,
    payload: Buffer.from(JSON.stringify({ key, timer: timer?.name, domain: timer?.domain, timeMs: timer?.timeMs })),
  })
}
