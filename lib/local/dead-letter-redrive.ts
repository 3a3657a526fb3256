/**
 * Sends dead letters to their application once more.
 *
 * Invariants:
 * 1. A record goes to the application's own function, never to its source stream: no other reader of the source sees it.
 * 2. It goes under its original coordinates, so its outputs have the identities that they would have had: an idempotent sink applies
 *    each once, however often a redrive is repeated.
 * 3. It is settled only after the function has acknowledged it and the dead-letter stream holds no new entry of it. An interruption
 *    before that leaves it open.
 * 4. Records go one at a time, in the order of their source partition; behind one that the function returns, later ones of its key wait.
 * 5. Where the function returns several in a row, the rest is not tried: it is the function that fails, not the records.
 */
import type { DeadLetterEntry } from '../aws/dead-letter-entry.ts'
import { deaggregate, isAggregate } from '../aws/kpl-aggregate.ts'
import type { Clock } from '../core/clock.ts'
import { describeError } from '../core/errors.ts'
import type { InvocationOutcome } from '../emulator/event-source-mapping/index.ts'
import { readResponse } from '../emulator/event-source-mapping/response.ts'
import type { DeadLetterLog, LoggedDeadLetter } from './dead-letter-log.ts'
import type { SettlementFile } from './dead-letter-settlement.ts'

/** A record as its source held it. */
export interface OriginalRecord {
  readonly source: string
  readonly shardId: string
  readonly sequenceNumber: string
  readonly partitionKey: string
  readonly data: Buffer
  readonly arrivalMs: number
}

/** The function of the application that gave the records up. */
export interface RedriveFunction {
  invoke(record: OriginalRecord): Promise<InvocationOutcome>
}

/** What a source still holds of a record. */
export type SourceBytes = Pick<OriginalRecord, 'partitionKey' | 'data'>

/** What became of one dead letter. */
export type RedriveOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'dead-letter'; readonly phase: string; readonly code: string }
  /** The function did not take it: it stays open. */
  | { readonly kind: 'returned'; readonly reason: string }
  /** It cannot be redriven from here: it stays open. */
  | { readonly kind: 'refused'; readonly reason: string }

export interface RedriveOptions {
  readonly topology: string
  /** Names of the topology's sources. */
  readonly sources: readonly string[]
  readonly letters: readonly LoggedDeadLetter[]
  readonly log: DeadLetterLog
  readonly settlements: SettlementFile
  readonly function: RedriveFunction
  /** Reads a record from its source by its coordinates; undefined where it is no longer there. */
  readonly readSource: (entry: DeadLetterEntry) => Promise<SourceBytes | undefined>
  readonly clock: Clock
  /** Stops before the next record; what was begun is settled. */
  readonly signal: AbortSignal
  /** Hears of each dead letter as soon as it is known what became of it. */
  readonly onOutcome: (letter: LoggedDeadLetter, outcome: RedriveOutcome) => void
}

/** How many acknowledged records share one look at the dead-letter stream and one write to the disk. */
const recordsPerSettlement = 50
const mostReturnedInARow = 5

/** What earlier records of a redrive mean for the next one. */
interface Course {
  /** By source, partition and key: the dead letter that the function returned. */
  readonly held: Map<string, string>
  returnedInARow: number
}

/**
 * Redrives letters, and resolves with why it stopped before the last of them, if it did. Rejects where the dead-letter stream cannot be read or the settlements cannot be written.
 *
 * @example
 * await redrive({ topology: 'orders-app', sources: ['orders'], letters, log, settlements, function: own, readSource, clock, signal, onOutcome })
 */
export async function redrive(options: RedriveOptions): Promise<string | undefined> {
  const { letters, signal, onOutcome } = options
  const course: Course = { held: new Map(), returnedInARow: 0 }
  const goesOn = () => !signal.aborted && course.returnedInARow < mostReturnedInARow
  const ordered = inOrder(letters)
  for (let from = 0; from < ordered.length && goesOn(); from += recordsPerSettlement) {
    const acknowledged: LoggedDeadLetter[] = []
    for (const letter of ordered.slice(from, from + recordsPerSettlement)) {
      if (!goesOn()) break
      const outcome = await redriveOne(options, letter, course)
      if (outcome === 'acknowledged') acknowledged.push(letter)
      else onOutcome(letter, outcome)
    }
    await settle(options, acknowledged)
  }
  if (signal.aborted) return 'it was interrupted'
  if (!goesOn()) return `the function took none of ${mostReturnedInARow} records in a row`
  return undefined
}

/** By source and partition, then as they stood in it: positions are integers beyond 2^53. */
function inOrder(letters: readonly LoggedDeadLetter[]): readonly LoggedDeadLetter[] {
  const placed = letters.map((letter) => ({
    letter,
    where: JSON.stringify([letter.entry.source, letter.entry.partition]),
    position: BigInt(letter.entry.position),
  }))
  placed.sort((one, other) => {
    if (one.where !== other.where) return one.where < other.where ? -1 : 1
    if (one.position !== other.position) return one.position < other.position ? -1 : 1
    return one.letter.entry.subPosition - other.letter.entry.subPosition
  })
  return placed.map(({ letter }) => letter)
}

async function redriveOne(
  options: RedriveOptions,
  letter: LoggedDeadLetter,
  course: Course,
): Promise<'acknowledged' | RedriveOutcome> {
  const { entry } = letter
  const order = JSON.stringify([entry.source, entry.partition, entry.key])
  const before = course.held.get(order)
  if (before !== undefined) return { kind: 'returned', reason: `waits behind ${before}, which has its key` }
  const record = await originalRecord(options, entry)
  if ('reason' in record) return { kind: 'refused', reason: record.reason }
  const reason = notTaken(await options.function.invoke(record), record)
  course.returnedInARow = reason === undefined ? 0 : course.returnedInARow + 1
  if (reason === undefined) return 'acknowledged'
  course.held.set(order, letter.handle)
  return { kind: 'returned', reason }
}

/** Why the function did not take the record; undefined where it did. */
function notTaken(outcome: InvocationOutcome, record: OriginalRecord): string | undefined {
  if (outcome.kind !== 'answered') return outcome.reason
  const verdict = readResponse(outcome.payload, [record], { reportsItemFailures: true, unrecognisedAnswer: 'failure' })
  if (verdict.kind === 'success') return undefined
  return verdict.kind === 'partial' ? 'the function asks for it again later: its log says why' : verdict.reason
}

/** Looks which of the acknowledged records became dead letters again, and settles the others. */
async function settle(options: RedriveOptions, acknowledged: readonly LoggedDeadLetter[]): Promise<void> {
  if (acknowledged.length === 0) return
  const { log, settlements, clock, onOutcome } = options
  await log.refresh()
  const again = (letter: LoggedDeadLetter): LoggedDeadLetter | undefined => {
    const now = log.get(letter.entry.id)
    return now !== undefined && now.places.length > letter.places.length ? now : undefined
  }
  const done = acknowledged.filter((letter) => again(letter) === undefined)
  await settlements.settle(done, clock.nowMs())
  for (const letter of acknowledged) {
    const now = again(letter)
    if (now === undefined) onOutcome(letter, { kind: 'done' })
    else onOutcome(letter, { kind: 'dead-letter', phase: now.entry.reason.phase, code: now.entry.reason.code })
  }
}

async function originalRecord(
  { topology, sources, readSource }: RedriveOptions,
  entry: DeadLetterEntry,
): Promise<OriginalRecord | { readonly reason: string }> {
  const reason = whyNot(entry, topology, sources)
  if (reason !== undefined) return { reason }
  const { source, partition, position, arrivalTimeMs, key, payload } = entry
  const kept = { partitionKey: textOf(key), data: Buffer.from(payload ?? '', 'base64') }
  const bytes = entry.omitted ? await bytesAtSource(entry, readSource) : kept
  if ('reason' in bytes) return bytes
  return { ...bytes, source, shardId: partition, sequenceNumber: position, arrivalMs: arrivalTimeMs }
}

const textOf = (key: string | null): string => Buffer.from(key ?? '', 'base64').toString()

/** An entry that was too large for its transport holds no bytes, but the source may have the record still. */
async function bytesAtSource(
  entry: DeadLetterEntry,
  readSource: RedriveOptions['readSource'],
): Promise<SourceBytes | { readonly reason: string }> {
  const gone = 'its bytes were too large for the dead-letter stream, and'
  try {
    const found = await readSource(entry)
    if (found === undefined) return { reason: `${gone} the source no longer holds the record` }
    if (!isAggregate(found.data) || entry.reason.code === 'aggregate-corrupt') return found
    const [first] = deaggregate(found.data)
    return first ?? { reason: `${gone} the aggregate at the source is empty` }
  } catch (error) {
    return { reason: `${gone} the source cannot be read: ${describeError(error).message}` }
  }
}

function whyNot(entry: DeadLetterEntry, topology: string, sources: readonly string[]): string | undefined {
  const { source, partition, subPosition, offloaded } = entry
  if (entry.topology !== topology) return `it is a dead letter of topology "${entry.topology}", not of "${topology}"`
  if (!sources.includes(source)) {
    return `topology "${topology}" has no source "${source}" any more: it has ${sources.join(', ')}`
  }
  if (!partition.startsWith('shardId-')) return 'it came from Kafka, and only Kinesis records are redriven from here'
  if (offloaded) {
    return `its bytes are in s3://${offloaded.bucket}/${offloaded.key} only, and redrive does not read buckets: redrive what that object holds by hand`
  }
  if (subPosition > 0) {
    return `it is record ${subPosition} of a KPL aggregate, and an event of Kinesis carries an aggregate only whole: its neighbours would be applied again; have its producer send it once more`
  }
  return undefined
}
