/**
 * Dead letters: records that could not be processed, with all that is needed to see why and to send them again.
 */
import { describeError, type ErrorDescription } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import type { TimerDomain } from '../state/state-store.ts'

/** Why a record became a dead letter. `code` is stable; codes are listed in docs/dead-letters.md. */
export interface DeadLetterReason extends ErrorDescription {
  readonly code: string
  /** Where it failed. */
  readonly phase: 'decode' | 'validate' | 'event-time' | 'step' | 'sink' | 'timer'
  /** How often it was tried. */
  readonly attempts: number
}

/** A dead letter as every transport carries it: JSON, bytes in base64. */
export interface DeadLetter {
  /**
   * The format version of Millrace: a reader refuses a newer one. It is 2 only where `recordIn` is set, which releases that know 1 alone
   * would take for a record without bytes.
   */
  readonly formatVersion: 1 | 2
  /** Names the record, or the output of it that a sink refused, for ever; a redrive carries that of a record. */
  readonly id: string
  readonly topology: string
  readonly stage: string
  readonly source: string
  readonly partition: string
  readonly position: string
  readonly subPosition: number
  readonly arrivalTimeMs: number
  /** When the record was given up, in ms since 1970 UTC. */
  readonly failedAtMs: number
  readonly reason: DeadLetterReason
  /** The original key in base64; null where there was none. */
  readonly key: string | null
  /** The original payload in base64; null for a tombstone. */
  readonly payload: string | null
  /** The original headers, values in base64. */
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  /** Set for a record that failed in a keyed stage: what its frame said of it. `payload` is its value there, JSON or tagged JSON. */
  readonly keyed?: KeyedCoordinates
  /**
   * Set by a stage that feeds keyed stages: the record's own mark, in ms since 1970 UTC; null where nothing came before it.
   */
  readonly ownMarkMs?: number | null
  /**
   * Of a stage with progress: the generation that it was given up in. A reset has its record read again, or counts without it, so
   * redriven after one it is dropped. @default 1
   */
  readonly generation?: number
  /** Set where a redrive to the sinks alone failed: what the record was to do to keyed state is done. */
  readonly applied?: true
  /** Of the phase `sink`: the output that was refused. Releases before it say nothing of it. */
  readonly output?: RefusedOutput
  /**
   * Of an output that is not the first refused one of its step: the id of the first one's dead letter, which has the record's key, payload
   * and headers for all of them.
   */
  readonly recordIn?: string
}

/** Which output of its step it is. */
export interface OutputName {
  readonly sink: string
  /** Place among the outputs of its step to that sink, from 0. */
  readonly index: number
}

/** An output that a sink refused for good. */
export interface RefusedOutput extends OutputName {
  /**
   * The value as it was put out, JSON or tagged JSON, in base64; null where it cannot be written so, where the entry would be too large with
   * it, and in a stage that keeps nothing, whose steps make it again of the record.
   */
  readonly value: string | null
  /** The timer that put it out, a window's too; missing where the step of a record did. */
  readonly timer?: FiredTimer
}

/** A timer that fired. Of the name `<operator>.<timer>`; of a window it is that of its operator. */
export interface FiredTimer {
  readonly domain: TimerDomain
  readonly name: string
  /** In ms since 1970 UTC. */
  readonly timeMs: number
}

/** Why a record, or one of its outputs, is given up. */
export interface GivenUp {
  readonly error: unknown
  readonly phase: DeadLetterReason['phase']
  readonly attempts: number
  /** The output, where only that is given up. */
  readonly output?: RefusedOutput
  /** The first output of the same step that is given up, whose dead letter holds the record; missing for that one itself. */
  readonly first?: OutputName | undefined
}

/** Where a record stood in the stream of a keyed stage. */
export interface KeyedCoordinates {
  readonly side: string
  readonly slot: number
  /** The number in the stage's log. */
  readonly number: number
  readonly eventTimeMs: number
  /** In ms since 1970 UTC; null where nothing came before the record, and where it is skewed. */
  readonly ownMarkMs: number | null
  /** Set where the event time was beyond the skew limit of its source: the record is late for every window, redriven too. */
  readonly isSkewed?: true
  /** The schema version of the value, as its frame said it. @default 1 */
  readonly schemaVersion?: number
}

/** What a redrive tells a stage of the record that it sends. It comes beside the log, so progress knows nothing of it. */
export interface Redrive {
  /** The record's own mark, in ms since 1970 UTC; null where nothing came before it, or where it is not known. */
  readonly ownMarkMs: number | null
  /** What the record was to do to keyed state is done: it goes to the sinks alone. */
  readonly applied: boolean
  /** The generation that the record was given up in. @default 1 */
  readonly generation?: number
}

/** How a dead letter of a source's record is to be redriven. */
export function redriveOf({ reason, ownMarkMs = null, applied, generation }: DeadLetter): Redrive {
  // An output that a sink refused was made of a record that was applied, or that the log applies.
  return { ownMarkMs, applied: applied === true || reason.phase === 'sink', ...later(generation) }
}

/** A generation as it is noted: from the second on. */
export const later = (generation = 1): { readonly generation?: number } => (generation === 1 ? {} : { generation })

/** The id of the dead letter of a source's record. It follows from the coordinates, so whoever has the record knows it. */
export function deadLetterIdOf({ source, partition, position, subPosition }: RecordCoordinates): string {
  return `${source}/${partition}/${position}/${subPosition}`
}

type RecordCoordinates = Pick<SourceRecord, 'source' | 'partition' | 'position' | 'subPosition'>

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/** Writes the dead letter of a record; `more` is what a stage with progress or with state says beside. */
export function deadLetterOf(
  record: SourceRecord,
  failure: GivenUp,
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
  more: Partial<Pick<DeadLetter, 'id' | 'keyed' | 'ownMarkMs' | 'applied' | 'generation'>> = {},
): DeadLetter {
  const { error, phase, attempts, output, first } = failure
  const description = describeError(error)
  const { id = deadLetterIdOf(record), ...rest } = more
  return {
    formatVersion: first ? 2 : 1,
    id: output ? outputIdOf(id, output) : id,
    ...where,
    source: record.source,
    partition: record.partition,
    position: record.position,
    subPosition: record.subPosition,
    arrivalTimeMs: record.arrivalTimeMs,
    reason: { ...description, code: description.code ?? 'step-failed', phase, attempts },
    ...(first ? noContent : contentOf(record)),
    ...rest,
    ...(output && { output }),
    ...(first && { recordIn: outputIdOf(id, first) }),
  }
}

const outputIdOf = (id: string, { sink, index }: OutputName): string => `${id}/${sink}/${index}`

/** What a record held, as its dead letter has it. */
export type DeadLetterContent = Pick<DeadLetter, 'key' | 'payload' | 'headers'>

const noContent: DeadLetterContent = { key: null, payload: null, headers: [] }

function contentOf({ keyBytes, payload, headers }: SourceRecord): DeadLetterContent {
  return {
    key: keyBytes === undefined ? null : base64(keyBytes),
    payload: payload === null ? null : base64(payload),
    headers: headers.map(({ name, value }) => ({ name, value: base64(value) })),
  }
}
