/**
 * One record as a source handed it over, before and beside its decoded value.
 *
 * It keeps the original bytes, because a dead letter carries them, and names the record by coordinates that outlive
 * retries: source, partition, position and, inside an aggregate, the sub-position.
 */
import { TerminalError } from './errors.ts'
import { decodeUtf8 } from './utf8.ts'

/** A Kafka header, or an SQS message attribute: values are bytes, a name may occur more than once. */
export interface RecordHeader {
  readonly name: string
  readonly value: Uint8Array
}

/** What a step may know of the record at hand. It is read-only and the same on every retry. */
export interface RecordInfo {
  /** The declared name of the source. */
  readonly source: string
  /** Kinesis shard id, or Kafka `topic-partition`. */
  readonly partition: string
  /** Kinesis sequence number or Kafka offset, in decimal digits. Comparable within a partition only. */
  readonly position: string
  /** Place inside a KPL aggregate, from 0; 0 for any other record. */
  readonly subPosition: number
  /** When the broker took the record in, in ms since 1970 UTC. */
  readonly arrivalTimeMs: number
  /** The time the record speaks of, in ms since 1970 UTC: what the source's extractor said, else the arrival time. */
  readonly eventTimeMs: number
  /** Kinesis partition key or Kafka message key. Throws a {@link TerminalError} where a Kafka key is not UTF-8. */
  readonly key: string | undefined
  /** The key's bytes, for keys that are not text. */
  readonly keyBytes: Uint8Array | undefined
  /**
   * The headers of the source's record, in order; empty where it has none. They go on with its outputs, through any number of
   * `keyBy`s: what a record makes has its headers, be it the result of a step, an aggregate, or a window that it fills or revises.
   * What a timer or the end of a window puts out comes of no one record, and has none. Each read gives
   * copies: where a step changes their bytes, nobody else sees it, nor does its own next attempt.
   *
   * @example
   * orders.keyBy('by-customer', (order) => order.customerId).process('audit', {
   *   state: { orders: valueState<number>() },
   *   step: (order, { state, record }) => {
   *     state.orders.set((state.orders.get() ?? 0) + 1)
   *     return [{ ...order, tenant: record.header('tenant') }]
   *   },
   * })
   */
  readonly headers: readonly RecordHeader[]
  /** The last header of that name. Throws a {@link TerminalError} where it is not UTF-8; read `headers` then. */
  header(name: string): string | undefined
}

/** The fields that a source adapter fills in. */
export interface RecordFields {
  readonly source: string
  readonly partition: string
  readonly position: string
  readonly subPosition?: number
  readonly arrivalTimeMs: number
  readonly key?: string | Uint8Array
  /** The payload: bytes, or their base64 as Lambda delivers it, or null for a Kafka tombstone. */
  readonly payload: Uint8Array | string | null
  readonly headers?: readonly RecordHeader[]
  /** Set where the adapter itself could not read the record (for example a KPL aggregate with a wrong checksum). */
  readonly unreadable?: { readonly code: string; readonly message: string }
}

/** What a record without headers has: one for all. */
export const noHeaders: readonly RecordHeader[] = Object.freeze([])

/** Copies of headers, for whoever may change their bytes. */
export const copiesOf = (headers: readonly RecordHeader[]): readonly RecordHeader[] =>
  headers.length === 0 ? headers : headers.map(({ name, value }) => ({ name, value: new Uint8Array(value) }))

/** The headers of a record as all that comes of it shares them: for those who change nothing in them. */
export const sharedHeaders = (
  record: RecordInfo & { readonly rawHeaders?: readonly RecordHeader[] },
): readonly RecordHeader[] => record.rawHeaders ?? record.headers

/** The text of the last header of that name. Throws a {@link TerminalError} where it is not UTF-8. */
export function headerText(headers: readonly RecordHeader[], name: string): string | undefined {
  const found = headers.findLast((header) => header.name === name)
  if (!found) return undefined
  const text = decodeUtf8(found.value)
  if (text !== undefined) return text
  throw new TerminalError(`the header "${name}" is not valid UTF-8: read its bytes from \`record.headers\``, {
    code: 'header-not-utf8',
  })
}

/**
 * The runtime's record. One is made for every record of every batch, so it holds nothing but what the source adapter gave
 * and the event time, which is set once, after decoding. Its fields are plain properties, as these are made fastest.
 */
export class SourceRecord implements RecordInfo {
  private readonly fields: RecordFields
  private timeMs: number | undefined

  constructor(fields: RecordFields) {
    this.fields = fields
    this.timeMs = undefined
  }

  get source(): string {
    return this.fields.source
  }

  get partition(): string {
    return this.fields.partition
  }

  get position(): string {
    return this.fields.position
  }

  get subPosition(): number {
    return this.fields.subPosition ?? 0
  }

  get arrivalTimeMs(): number {
    return this.fields.arrivalTimeMs
  }

  get eventTimeMs(): number {
    return this.timeMs ?? this.fields.arrivalTimeMs
  }

  set eventTimeMs(timeMs: number) {
    this.timeMs = timeMs
  }

  get headers(): readonly RecordHeader[] {
    return copiesOf(this.rawHeaders)
  }

  /** The headers as the source gave them. */
  get rawHeaders(): readonly RecordHeader[] {
    return this.fields.headers ?? noHeaders
  }

  get unreadable(): RecordFields['unreadable'] {
    return this.fields.unreadable
  }

  /** The payload as the source gave it. */
  get rawPayload(): RecordFields['payload'] {
    return this.fields.payload
  }

  get key(): string | undefined {
    const { key } = this.fields
    if (key === undefined || typeof key === 'string') return key
    const text = decodeUtf8(key)
    if (text === undefined) {
      throw new TerminalError(
        'the key of the record is not valid UTF-8: read `record.keyBytes` instead of `record.key`',
        { code: 'key-not-utf8' },
      )
    }
    return text
  }

  get keyBytes(): Uint8Array | undefined {
    const { key } = this.fields
    return key === undefined ? undefined : Buffer.from(key)
  }

  /** The payload's bytes, or null for a tombstone. */
  get payload(): Buffer | null {
    const { payload } = this.fields
    if (payload === null) return null
    if (typeof payload === 'string') return Buffer.from(payload, 'base64')
    if (Buffer.isBuffer(payload)) return payload
    return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  }

  header(name: string): string | undefined {
    return headerText(this.rawHeaders, name)
  }
}

/** Names one output for ever: the record it came from and its place among that record's outputs to the same sink. */
export function outputIdentity(record: RecordInfo, index: number): string {
  return `${record.source}/${record.partition}/${record.position}/${record.subPosition}/${index}`
}
