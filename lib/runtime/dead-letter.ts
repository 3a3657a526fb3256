/**
 * Dead letters: records that could not be processed, with all that is needed to see why and to send them again.
 */
import { describeError, type ErrorDescription } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'

/** Why a record became a dead letter. `code` is stable; codes are listed in docs/dead-letters.md. */
export interface DeadLetterReason extends ErrorDescription {
  readonly code: string
  /** Where it failed. */
  readonly phase: 'decode' | 'validate' | 'event-time' | 'step' | 'sink'
  /** How often it was tried. */
  readonly attempts: number
}

/** A dead letter as every transport carries it: JSON, bytes in base64. */
export interface DeadLetter {
  /** The format version of Millrace: a reader refuses a newer one. */
  readonly formatVersion: 1
  /** Names the record for ever; a redrive carries it. */
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
}

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/** Writes the dead letter of a record. */
export function deadLetterOf(
  record: SourceRecord,
  failure: { readonly error: unknown; readonly phase: DeadLetterReason['phase']; readonly attempts: number },
  where: { readonly topology: string; readonly stage: string; readonly failedAtMs: number },
): DeadLetter {
  const { error, phase, attempts } = failure
  const description = describeError(error)
  const { keyBytes, payload } = record
  return {
    formatVersion: 1,
    id: `${record.source}/${record.partition}/${record.position}/${record.subPosition}`,
    ...where,
    source: record.source,
    partition: record.partition,
    position: record.position,
    subPosition: record.subPosition,
    arrivalTimeMs: record.arrivalTimeMs,
    reason: { ...description, code: description.code ?? 'step-failed', phase, attempts },
    key: keyBytes === undefined ? null : base64(keyBytes),
    payload: payload === null ? null : base64(payload),
    headers: record.headers.map((header) => ({ name: header.name, value: base64(header.value) })),
  }
}
