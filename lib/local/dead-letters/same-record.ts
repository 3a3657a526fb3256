/**
 * The dead letters of one record.
 *
 * Invariants:
 * 1. A source's record may have several: of each output of it that a sink refused, and of itself. What a redrive sends is the record with all
 *    of its outputs, so they are redriven, and settled, together.
 * 2. Its bytes are in one of them at least; what else is of its step names that one.
 * 3. What it has done to keyed state is what the latest one says: its last attempt made that.
 * 4. Releases before gave an output that was alone in its step the id of its record: outputs are told apart by sink and place.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import { redriveOf } from '../../runtime/dead-letter.ts'
import { isKeyed } from './frame.ts'
import type { LoggedDeadLetter } from './log.ts'

/**
 * Names what a redrive of the entry sends. A record of a keyed stage has the name of its entry, as only that itself is sent; an aggregate
 * that could not be taken apart is another than its first record.
 */
export function recordNameOf(entry: DeadLetterEntry): string {
  const { id, stage, source, partition, position, subPosition, reason } = entry
  if (isKeyed(entry)) return JSON.stringify([stage, id])
  return JSON.stringify([stage, source, partition, position, subPosition, reason.code === 'aggregate-corrupt'])
}

/** The chosen ones, and of those that are open the others of their records. */
export function withOthersOfTheirRecords(
  chosen: readonly LoggedDeadLetter[],
  open: readonly LoggedDeadLetter[],
): readonly LoggedDeadLetter[] {
  const names = new Set(chosen.map(({ entry }) => recordNameOf(entry)))
  return open.filter(({ entry }) => names.has(recordNameOf(entry)))
}

/** Which output of its record an entry is of; no text where it is of the record itself. */
const partOf = ({ output }: DeadLetterEntry): string => (output === undefined ? '' : `${output.sink}/${output.index}`)

/**
 * Of each letter of a record that was sent again, what came in its stead; undefined where nothing did. What none of the letters stands for
 * may be of any: another version of the code puts out another number of outputs.
 */
export function cameAgain(
  letters: readonly LoggedDeadLetter[],
  came: readonly DeadLetterEntry[],
): readonly (DeadLetterEntry | undefined)[] {
  const ofPart = new Map(came.map((entry) => [partOf(entry), entry]))
  const known = new Set(letters.map(({ entry }) => partOf(entry)))
  const other = came.findLast((entry) => !known.has(partOf(entry)))
  return letters.map(({ entry }) => ofPart.get(partOf(entry)) ?? other)
}

/** All that are open of one record. */
export type Letters = readonly [LoggedDeadLetter, ...LoggedDeadLetter[]]

/** The entry that says the most of the record's bytes: one that has them, else one that says where they are. `log` finds other letters by id. */
export function bearerOf(letters: Letters, log: { get(id: string): LoggedDeadLetter | undefined }): DeadLetterEntry {
  const entries = letters.map(({ entry }) => entry)
  const own = entries.filter(({ recordIn }) => recordIn === undefined)
  const [first] = letters
  const named = log.get(first.entry.recordIn ?? '')?.entry
  return own.find(({ omitted }) => omitted === undefined) ?? own[0] ?? named ?? first.entry
}

/** The entry that was given up last; of several at one moment one that was not applied: its key takes it once. */
export function latestOf(letters: Letters): DeadLetterEntry {
  const isApplied = (entry: DeadLetterEntry) => Number(redriveOf(entry).applied)
  const isLater = (one: DeadLetterEntry, other: DeadLetterEntry) =>
    (one.failedAtMs - other.failedAtMs || isApplied(other) - isApplied(one)) > 0
  return letters.map(({ entry }) => entry).reduce((last, entry) => (isLater(entry, last) ? entry : last))
}
