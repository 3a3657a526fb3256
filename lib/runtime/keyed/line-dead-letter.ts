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
  const { key, origin, value, side, eventTimeMs } = record
  const { source, partition, position, subPosition, arrivalTimeMs } = origin
  const payload = Buffer.from(value)
  const original = new SourceRecord({ source, partition, position, subPosition, arrivalTimeMs, key, payload })
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

/** The dead letter of a timer whose step threw: the key, the timer and its time. The key's state stays as it was, without it. */
export function firingDeadLetter(
  { line, key, keyHash }: FiringLine,
  { domain, name, timeMs }: DueTimer,
  error: unknown,
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
): { readonly entry: DeadLetter; readonly record: RecordInfo } {
  const record = new SourceRecord({
    source: where.stage,
    partition: `slot-${line.slot}`,
    // By the key's hash wherever it fires: at a record of its own that is a dead letter too, that one has the plain place.
    position: placeDigits({ number: line.number, keyHash: keyHash ?? positionHashOf(key) }),
    arrivalTimeMs: line.arrivedAtMs,
    key,
    payload: Buffer.from(JSON.stringify({ key, timer: name, domain, timeMs })),
  })
  const entry = deadLetterOf(record, { error, phase: 'timer', attempts: 1 }, where)
  return { entry: { ...entry, id: `${entry.id}/${name}/${timeMs}` }, record }
}
