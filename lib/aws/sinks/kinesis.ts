/**
 * Writes outputs to a Kinesis stream.
 *
 * 1. A record that Kinesis could never take is refused in `prepare`, where it is its input record's own failure.
 * 2. With ordering 'per-key' at most one record of a partition key is unacknowledged: PutRecords promises no order, not
 *    even within one request, and goes on behind a record that it refuses.
 */
import { hash } from 'node:crypto'
import { TerminalError } from '../../core/errors.ts'
import { outputIdentity } from '../../core/record.ts'
import type { Output, Sink } from '../../runtime/sink.ts'
import { jsonText, notSerialisable } from '../encoding/output-json.ts'
import {
  type KinesisItem,
  type KinesisPort,
  kinesisDestination,
  kinesisRecordLimitBytes,
  type StreamAddress,
} from '../kinesis/destination.ts'
import { type DeliveryPorts, deliverInOrder } from '../ordered-delivery.ts'

export type KinesisSinkOptions<T> = StreamAddress &
  DeliveryPorts & {
    /** A `KinesisClient`, such as {@link createKinesisClient} makes: without retries of its own. */
    readonly client: KinesisPort
    /**
     * 'per-key' keeps the order of each partition key, one record of a key per request; 'none' fills every request and
     * lets a refused record be overtaken.
     * @default 'per-key'
     */
    readonly ordering?: 'per-key' | 'none'
    /** A value as bytes or as text; `(value) => value` where it is one of them already. @default JSON */
    readonly encode?: (value: T) => Uint8Array | string
    /**
     * The stream's limit for a record and its partition key, in bytes, 1 to 10,485,760. What Lambda reads should stay
     * below 4 MiB, as its payload is 6 MB in base64.
     * @default 1,048,576, the limit of a stream whose MaxRecordSizeInKiB was not raised
     */
    readonly maxRecordBytes?: number
  }

const longestKey = 256

function bytesOf(encoded: Uint8Array | string): Uint8Array {
  if (typeof encoded !== 'string') return encoded
  if (!encoded.isWellFormed()) notSerialisable('the text has half a surrogate pair, which UTF-8 cannot hold')
  return Buffer.from(encoded)
}

/** The partition key that Kinesis accepts, from the sink's key function or from the output's identity. */
function partitionKeyOf(output: Output): string {
  const { key } = output
  if (key === undefined) {
    const identity = outputIdentity(output.record, output.index)
    return identity.length <= longestKey ? identity : hash('sha256', identity, 'hex')
  }
  if (key === '' || key.length > longestKey || !key.isWellFormed()) {
    throw new TerminalError(
      `the sink's key has ${key.length} characters${key.isWellFormed() ? '' : ' and half a surrogate pair'}: a Kinesis partition key is well-formed text of 1 to ${longestKey} characters`,
      { code: 'invalid-key' },
    )
  }
  return key
}

/** True only for what may be over the limit: counting a key's UTF-8 bytes is left to records that are near it. */
function isOver(data: Uint8Array, key: string, limitBytes: number): boolean {
  return data.byteLength + key.length * 3 > limitBytes && data.byteLength + Buffer.byteLength(key) > limitBytes
}

/**
 * A sink that writes to a Kinesis stream with packed PutRecords requests (at most 500 records and 5 MiB, four in flight).
 *
 * Outputs of a sink without a key function get a partition key that follows from their identity, so that they spread
 * over the shards and a repeated one goes where it went before. Throttles, failures of single records and lost
 * connections are retried until the deadline; a missing stream or permission returns the records to their source.
 *
 * Dead letters by code: `not-serialisable`, `invalid-key`, `oversize`.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html
 * @example
 * const sink = kinesisSink<Booking>({ client: createKinesisClient(), streamName: 'bookings', clock, logger })
 */
export function kinesisSink<T>(options: KinesisSinkOptions<T>): Sink<T, KinesisItem> {
  const { client, ordering = 'per-key', encode, maxRecordBytes = kinesisRecordLimitBytes } = options
  const destination = kinesisDestination(client, options, ordering)
  return {
    prepare(output) {
      const { value } = output
      const item = {
        Data: encode ? bytesOf(encode(value)) : Buffer.from(jsonText(value)),
        PartitionKey: partitionKeyOf(output),
      }
      if (isOver(item.Data, item.PartitionKey, maxRecordBytes)) {
        throw new TerminalError(
          `the output has ${item.Data.byteLength} bytes: with its key ${destination.label} takes ${maxRecordBytes}`,
          { code: 'oversize' },
        )
      }
      return item
    },
    deliver: (items, { signal }) => deliverInOrder(items, destination, options, signal),
  }
}
