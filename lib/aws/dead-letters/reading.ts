/** Reads back what the dead-letter transports carry. */
import { hash } from 'node:crypto'
import type { DeadLetterEntry } from './entry.ts'

/** What a transport held that is no dead letter of this release: somebody else's message, or a newer format. */
export interface UnreadableEntry {
  readonly problem: string
}

const phases = ['decode', 'validate', 'event-time', 'step', 'sink', 'timer']

const isText = (value: unknown): value is string => typeof value === 'string'
const isTextOrNull = (value: unknown): boolean => value === null || isText(value)

function isHeader(value: unknown): boolean {
  const { name, value: bytes } = (value ?? {}) as Record<string, unknown>
  return isText(name) && isText(bytes)
}

function isReason(value: unknown): boolean {
  const { code, phase, name, message, attempts, step = '' } = (value ?? {}) as Record<string, unknown>
  return [code, name, message, step].every(isText) && phases.includes(String(phase)) && Number.isInteger(attempts)
}

const isTimeOrNull = (value: unknown): boolean => value === null || Number.isFinite(value)

function isKeyed(value: unknown): boolean {
  const {
    side,
    slot,
    number,
    eventTimeMs,
    ownMarkMs,
    isSkewed,
    schemaVersion = 1,
  } = (value ?? {}) as Readonly<Record<string, unknown>>
  return (
    isText(side) &&
    (isSkewed === undefined || isSkewed === true) &&
    [slot, number, schemaVersion].every(Number.isSafeInteger) &&
    Number.isFinite(eventTimeMs) &&
    isTimeOrNull(ownMarkMs)
  )
}

const isTimer = (value: unknown): boolean => {
  const { domain, name, timeMs } = (value ?? {}) as Readonly<Record<string, unknown>>
  return [domain, name].every(isText) && Number.isSafeInteger(timeMs)
}

function isOutput(output: unknown): boolean {
  const { sink, index, value, timer } = (output ?? {}) as Readonly<Record<string, unknown>>
  return isText(sink) && Number.isSafeInteger(index) && isTextOrNull(value) && (timer === undefined || isTimer(timer))
}

const isGeneration = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0

/** What only stages with progress, or with state, say. */
function isOfProgress(entry: Readonly<Record<string, unknown>>): boolean {
  const { keyed, ownMarkMs, applied, generation = 1 } = entry
  return (
    (keyed === undefined || isKeyed(keyed)) &&
    (ownMarkMs === undefined || isTimeOrNull(ownMarkMs)) &&
    (applied === undefined || applied === true) &&
    isGeneration(generation)
  )
}

function isEntry(value: Readonly<Record<string, unknown>>): boolean {
  const { id, topology, stage, source, partition, position, subPosition, arrivalTimeMs, failedAtMs } = value
  const { key, payload, headers, reason, output, recordIn } = value
  return (
    [id, topology, stage, source, partition].every(isText) &&
    /^\d+$/.test(String(position)) &&
    Number.isInteger(subPosition) &&
    [arrivalTimeMs, failedAtMs].every(Number.isFinite) &&
    [key, payload].every(isTextOrNull) &&
    Array.isArray(headers) &&
    headers.every(isHeader) &&
    isReason(reason) &&
    (output === undefined || isOutput(output)) &&
    (value.formatVersion === 2 ? isText(recordIn) : recordIn === undefined) &&
    isOfProgress(value)
  )
}

/**
 * Reads an entry from the bytes of a record or the text of a message. What it is not is said, never thrown: one strange
 * message must not hide the others.
 *
 * @example
 * const entry = readDeadLetter(record.data)
 * if ('problem' in entry) console.log(entry.problem)
 */
export function readDeadLetter(data: Uint8Array | string): DeadLetterEntry | UnreadableEntry {
  let value: unknown
  try {
    value = JSON.parse(isText(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString())
  } catch {
    return { problem: 'it is not JSON' }
  }
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>
  const { formatVersion } = fields
  if (typeof formatVersion === 'number' && formatVersion > 2) {
    return {
      problem: `it has format version ${formatVersion}, and this release of Millrace reads up to 2: update Millrace`,
    }
  }
  if ((formatVersion !== 1 && formatVersion !== 2) || !isEntry(fields))
    return { problem: 'it is not a dead letter of Millrace' }
  return value as DeadLetterEntry
}

/**
 * A short name of a dead letter for people to type: the first eight hexadecimal digits of its id's SHA-256.
 *
 * @example
 * deadLetterHandle('orders/shardId-000000000000/49545/0') // such as '5d41402a'
 */
export function deadLetterHandle(id: string): string {
  return hash('sha256', id, 'hex').slice(0, 8)
}
