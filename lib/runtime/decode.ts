/** From the bytes of a record to a validated value with an event time, or a failure that says in which phase. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isRetryable, TerminalError } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import { checkedEventTime } from '../time/event-time.ts'
import type { SourceNode } from '../topology/graph.ts'
import type { DeadLetterReason } from './dead-letter.ts'
import type { Ports } from './ports.ts'
import { answeredTwice, type Trace } from './purity.ts'

/** What a decoder throws; `cause` is what was thrown inside. */
export class DecodeError extends Error {
  readonly phase: DeadLetterReason['phase']

  constructor(phase: DeadLetterReason['phase'], cause: unknown) {
    super('a record could not be decoded', { cause })
    this.phase = phase
  }
}

/** What a decoder gives for a tombstone that the source leaves out. */
export const leftOut: unique symbol = Symbol('left out')

/** Decodes one record and sets its event time. Throws a {@link DecodeError}, or the {@link RetryableError} that user code threw. */
export type Decoder = (record: SourceRecord) => unknown

/** Builds the decoder of a source: format, schema, event time. Where purity is checked, it decodes each record twice. */
export function decoderOf(
  source: SourceNode,
  { freezesValues, checksPurity }: Pick<Ports, 'freezesValues' | 'checksPurity'>,
): Decoder {
  const decode = onceDecoderOf(source, freezesValues === true)
  return checksPurity ? (record) => answeredTwice((trace) => decode(record, trace)) : decode
}

/** A decoder that notes what format, schema and event time each give. */
function onceDecoderOf(source: SourceNode, freezes: boolean): (record: SourceRecord, trace?: Trace) => unknown {
  const read = payloadReader(source)
  const validate = source.schema && validator(source.schema)
  const { eventTime } = source
  const of = `of source "${source.name}"`
  return (record, trace) => {
    let phase: DeadLetterReason['phase'] = 'decode'
    try {
      let value = read(record)
      trace?.note(record.rawPayload === null ? `onDelete ${of}` : `the format ${of}`, value)
      if (value === leftOut) return leftOut
      // A tombstone's value was made by the user's own function, not read from the wire.
      if (validate && record.rawPayload !== null) {
        phase = 'validate'
        value = validate(value)
        trace?.note(`the schema ${of}`, value)
      }
      if (eventTime) {
        phase = 'event-time'
        record.eventTimeMs = checkedEventTime(eventTime.extract(value))
        trace?.note(`the event time ${of}`, record.eventTimeMs)
      }
      if (freezes) freeze(value)
      return value
    } catch (error) {
      if (isRetryable(error)) throw error
      throw new DecodeError(phase, error)
    }
  }
}

/** Freezes a value and all in it; views of bytes cannot be frozen. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
}

function payloadReader(source: SourceNode): (record: SourceRecord) => unknown {
  const { format, onDelete } = source
  return (record) => {
    if (record.unreadable) throw new TerminalError(record.unreadable.message, { code: record.unreadable.code })
    const payload = record.rawPayload
    if (typeof payload === 'string' && format.decodeBase64) return format.decodeBase64(payload)
    if (payload !== null) return format.decode(record.payload as Buffer)
    if (!onDelete) {
      throw new TerminalError(`source "${source.name}" met a delete (a null value): say with onDelete what it means`, {
        code: 'unexpected-delete',
      })
    }
    const value = onDelete(record.key, record)
    return value === undefined ? leftOut : value
  }
}

/** How many of a schema's issues a dead letter tells. */
const issuesTold = 3

function validator(schema: StandardSchemaV1): (value: unknown) => unknown {
  const standard = schema['~standard']
  return (value) => {
    const result = standard.validate(value)
    if ('then' in result) {
      // The rejection of a promise that nobody awaits would end the process.
      result.then(undefined, () => undefined)
      throw new TerminalError(
        'the schema answered with a promise, and records are validated in memory: it has an asynchronous check, or one that threw',
        { code: 'asynchronous-schema' },
      )
    }
    if (!result.issues) return result.value
    const told = result.issues.slice(0, issuesTold).map(describeIssue).join('; ')
    const more = result.issues.length - issuesTold
    throw new TerminalError(`${told}${more > 0 ? `; and ${more} more` : ''}`, { code: 'invalid' })
  }
}

function describeIssue(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return path ? `${path}: ${issue.message}` : issue.message
}
