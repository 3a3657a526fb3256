/**
 * Sends dead letters to their application once more.
 *
 * Invariants:
 * 1. A record goes to the application's own function, never to its source stream: no other reader of the source sees it. One that
 *    failed in a keyed stage goes to that stage's own stream, which nobody else reads.
 * 2. It goes under its original coordinates, so its outputs have the identities that they would have had: an idempotent sink applies
 *    each once, however often a redrive is repeated; and what it does to keyed state has an identity too, which the key takes once.
 * 3. It is settled only after the function, or the stream, has acknowledged its record. An interruption before that leaves it open. What is
 *    given up again has a new entry then, which is open: the old one is not reported as done.
 * 4. A record goes once for all of its dead letters (same-record.ts). Records go one at a time, in the order of their source partition, or of their keyed stage and slot; behind one that the function returns, later ones of its key wait.
 * 5. What was given up in an older generation is refused: the reset since then has its record read again, or counts without it. It also
 *    travels with its generation, so that it is dropped where a reset comes between. What goes to the sinks alone changes no state, and goes.
 * 6. Where the function returns several in a row, the rest is not tried: it is the function that fails, not the records.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import type { Clock } from '../../core/clock.ts'
import { describeError } from '../../core/errors.ts'
import type { InvocationOutcome } from '../../emulator/event-source-mapping/index.ts'
import { type Redrive, redriveOf } from '../../runtime/dead-letter.ts'
import { isKeyed, type KeyedEntry, type KeyedStreams, redriveFrame } from './frame.ts'
import type { LoggedDeadLetter } from './log.ts'
import { type OriginalRecord, originalRecord, type SourceBytes } from './record.ts'
import { bearerOf, cameAgain, type Letters, latestOf, recordNameOf } from './same-record.ts'
import type { SettlementFile } from './settlement.ts'

/** The function of the application that gave the records up. */
export interface RedriveFunction {
  /** Why records of this kind cannot be sent to it; undefined where they can. */
  refusal(record: OriginalRecord): string | undefined
  invoke(record: OriginalRecord): Promise<InvocationOutcome>
}

/** The dead letters as their stream or queue holds them. */
export interface LetterLog {
  get(id: string): LoggedDeadLetter | undefined
  /** Reads what came since, and resolves with it. */
  refresh(): Promise<readonly DeadLetterEntry[]>
  /** Takes settled letters out, where letters can be taken out. Never rejects: the next redrive takes out what is left. */
  discard?(letters: readonly LoggedDeadLetter[]): Promise<void>
}

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
  /** Names of the sources whose records the function takes. */
  readonly sources: readonly string[]
  /** Of each stage that keeps progress, its generation now. */
  readonly generations: ReadonlyMap<string, number>
  /** With all that are open of their records: see `withOthersOfTheirRecords`. */
  readonly letters: readonly LoggedDeadLetter[]
  readonly log: LetterLog
  readonly settlements: SettlementFile
  readonly function: RedriveFunction
  readonly streams: KeyedStreams
  /** Reads a record from its source by its coordinates; undefined where it is no longer there. */
  readonly readSource: (entry: DeadLetterEntry) => Promise<SourceBytes | undefined>
  /** Reads the whole of an entry that was offloaded to a bucket. Rejects with the reason where it is not to be had. */
  readonly readObject: (entry: DeadLetterEntry) => Promise<DeadLetterEntry>
  /** How long a new entry takes to be seen behind the function's answer, in ms. @default 0 */
  readonly visibleAfterMs?: number
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
  /** By {@link orderOf} and key: the dead letter that was returned. */
  readonly held: Map<string, string>
  returnedInARow: number
  /** What came to the dead-letter stream meanwhile, by the name of its record. */
  readonly came: Map<string, DeadLetterEntry[]>
}

/**
 * Redrives letters, and resolves with why it stopped before the last of them, if it did. Rejects where the dead-letter stream cannot be read or the settlements cannot be written.
 *
 * @example
 * await redrive({ topology: 'orders-app', sources: ['orders'], generations: new Map(), letters, log, settlements, function: own, readSource, clock, signal, onOutcome })
 */
export async function redrive(options: RedriveOptions): Promise<string | undefined> {
  const { letters, signal } = options
  const course: Course = { held: new Map(), returnedInARow: 0, came: new Map() }
  const goesOn = () => !signal.aborted && course.returnedInARow < mostReturnedInARow
  const records = [...Map.groupBy(inOrder(letters), ({ entry }) => recordNameOf(entry)).values()]
  for (let from = 0; from < records.length && goesOn(); from += recordsPerSettlement) {
    const acknowledged: Letters[] = []
    for (const ofRecord of records.slice(from, from + recordsPerSettlement)) {
      if (!goesOn()) break
      const sent = await redriveRecord(options, ofRecord, course)
      if (sent !== undefined) acknowledged.push(sent)
    }
    await settle(options, acknowledged, course)
  }
  if (signal.aborted) return 'it was interrupted'
  if (!goesOn()) return `none of ${mostReturnedInARow} records in a row was taken`
  return undefined
}

/** What a letter stands in order with: a partition of its source, or a slot of its keyed stage. */
const orderOf = ({ entry }: LoggedDeadLetter): readonly unknown[] =>
  isKeyed(entry) ? ['stage', entry.stage, entry.keyed.slot] : ['source', entry.source, entry.partition]

/** Each by what it stands in order with, then as it stood there: positions are integers beyond 2^53. */
function inOrder(letters: readonly LoggedDeadLetter[]): readonly LoggedDeadLetter[] {
  const placed = letters.map((letter) => ({
    letter,
    where: JSON.stringify(orderOf(letter)),
    position: BigInt(letter.entry.keyed?.number ?? letter.entry.position),
  }))
  placed.sort((one, other) => {
    if (one.where !== other.where) return one.where < other.where ? -1 : 1
    if (one.position !== other.position) return one.position < other.position ? -1 : 1
    return one.letter.entry.subPosition - other.letter.entry.subPosition
  })
  return placed.map(({ letter }) => letter)
}

/** Sends a record, and says which of its letters are acknowledged; undefined where none is, as was told then. */
async function redriveRecord(
  options: RedriveOptions,
  letters: readonly LoggedDeadLetter[],
  course: Course,
): Promise<Letters | undefined> {
  const { onOutcome } = options
  const reasons = letters.map(({ entry }) => whyOutdated(options, entry))
  for (const [i, reason] of reasons.entries()) {
    if (reason !== undefined) onOutcome(letters[i] as LoggedDeadLetter, { kind: 'refused', reason })
  }
  const [first, ...others] = letters.filter((_, i) => reasons[i] === undefined)
  if (first === undefined) return undefined
  const outcome = await sendInTurn(options, [first, ...others], course)
  if (outcome === 'acknowledged') return [first, ...others]
  for (const letter of [first, ...others]) onOutcome(letter, outcome)
  return undefined
}

async function sendInTurn(
  options: RedriveOptions,
  letters: Letters,
  course: Course,
): Promise<'acknowledged' | RedriveOutcome> {
  const [first] = letters
  const bearer = bearerOf(letters, options.log)
  const order = JSON.stringify([orderOf(first), bearer.key])
  const before = course.held.get(order)
  if (before !== undefined) return { kind: 'returned', reason: `waits behind ${before}, which has its key` }
  const outcome = await (isKeyed(bearer)
    ? sendToStream(options, bearer)
    : sendToFunction(options, bearer, redriveOf(latestOf(letters))))
  if (outcome !== 'acknowledged' && outcome.kind === 'refused') return outcome
  course.returnedInARow = outcome === 'acknowledged' ? 0 : course.returnedInARow + 1
  if (outcome !== 'acknowledged') course.held.set(order, first.handle)
  return outcome
}

function whyOutdated({ generations }: RedriveOptions, entry: DeadLetterEntry): string | undefined {
  const { stage, generation = 1 } = entry
  const now = generations.get(stage) ?? generation
  if (generation >= now || (!isKeyed(entry) && redriveOf(entry).applied)) return undefined
  return `it was given up in generation ${generation} of stage "${stage}", which was reset since and is of generation ${now}: what counts of the sources now was read again, and to apply this record beside it would count it twice`
}

async function sendToFunction(
  options: RedriveOptions,
  entry: DeadLetterEntry,
  how: Redrive,
): Promise<'acknowledged' | RedriveOutcome> {
  const found = await originalRecord(entry, options)
  const refusal = 'reason' in found ? found.reason : options.function.refusal(found)
  if ('reason' in found || refusal !== undefined) return { kind: 'refused', reason: refusal ?? '' }
  const record = { ...found, redrive: how }
  const reason = notTaken(await options.function.invoke(record), record)
  return reason === undefined ? 'acknowledged' : { kind: 'returned', reason }
}

async function sendToStream(options: RedriveOptions, entry: KeyedEntry): Promise<'acknowledged' | RedriveOutcome> {
  const frame = await redriveFrame(entry, options.streams, options)
  if ('reason' in frame) return { kind: 'refused', reason: frame.reason }
  try {
    await options.streams.publish(entry.stage, frame)
    return 'acknowledged'
  } catch (error) {
    return { kind: 'returned', reason: describeError(error).message.split('\n')[0] ?? '' }
  }
}

/** Why the function did not take the record; undefined where it did. Only an answer that names no failures counts as taken. */
function notTaken(outcome: InvocationOutcome, record: OriginalRecord): string | undefined {
  if (outcome.kind !== 'answered') return outcome.reason
  const failures = (outcome.payload as { batchItemFailures?: unknown } | null | undefined)?.batchItemFailures
  if (Array.isArray(failures)) return failures.length === 0 ? undefined : askedAgain(failures, record)
  const keys = Object.keys(Object(outcome.payload)).slice(0, 10).join(', ')
  return `the answer (${keys === '' ? 'empty' : `keys ${keys}`}) has no list batchItemFailures`
}

function askedAgain(failures: readonly unknown[], { position, partition }: OriginalRecord): string {
  const names = (failure: unknown): boolean => {
    const { itemIdentifier } = (failure ?? {}) as { itemIdentifier?: unknown }
    const { partition: at, offset } = Object(itemIdentifier)
    return itemIdentifier === position || (at === partition && String(offset) === position)
  }
  if (failures.every(names)) return 'the function asks for it again later: its log says why'
  return 'the answer names a record that was not sent'
}

/** Settles the letters of acknowledged records, and looks which of them were given up again. */
async function settle(options: RedriveOptions, acknowledged: readonly Letters[], { came }: Course): Promise<void> {
  if (acknowledged.length === 0) return
  const { log, settlements, clock, onOutcome, visibleAfterMs = 0 } = options
  if (visibleAfterMs > 0) await clock.sleep(visibleAfterMs)
  for (const entry of await log.refresh()) {
    const name = recordNameOf(entry)
    const others = came.get(name)
    if (others) others.push(entry)
    else came.set(name, [entry])
  }
  const settled = acknowledged.flat()
  await settlements.settle(settled, clock.nowMs())
  await log.discard?.(settled)
  for (const letters of acknowledged) {
    const [{ entry }] = letters
    const again = cameAgain(letters, came.get(recordNameOf(entry)) ?? [])
    for (const [i, letter] of letters.entries()) {
      const one = again[i]
      if (one === undefined) onOutcome(letter, { kind: 'done' })
      else onOutcome(letter, { kind: 'dead-letter', phase: one.reason.phase, code: one.reason.code })
    }
  }
}
