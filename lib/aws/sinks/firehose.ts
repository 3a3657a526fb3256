/**
 * Puts outputs into a Firehose stream.
 *
 * 1. Each record is one JSON text and a delimiter, a new line unless said, so that what Firehose joins can be taken apart.
 * 2. A Firehose record has no place for the identity of its output: who needs it puts it in the value.
 * 3. Of one key at most one record is unacknowledged, unless ordering is 'none', so that Firehose gets a key in order; it promises
 *    none itself.
 * 4. A record that Firehose could never take is refused in `prepare`, where it is its input record's own failure.
 *
 * @see https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html
 */
import { PutRecordBatchCommand, type PutRecordBatchCommandOutput } from '@aws-sdk/client-firehose'
import { TerminalError } from '../../core/errors.ts'
import { outputIdentity } from '../../core/record.ts'
import { delivered, type Sink } from '../../runtime/sink.ts'
import { jsonText } from '../encoding/output-json.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'

/** What is needed of a `FirehoseClient`. */
export interface FirehosePort {
  send(command: PutRecordBatchCommand): Promise<PutRecordBatchCommandOutput>
}

export interface FirehoseSinkOptions extends DeliveryPorts {
  /** A `FirehoseClient`, such as {@link createFirehoseClient} makes: without retries of its own. */
  readonly client: FirehosePort
  readonly deliveryStreamName: string
  /** What stands behind each record. @default '\n' */
  readonly delimiter?: string
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although Firehose promises no order; 'none' fills
   * every request.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/** One record on its way to Firehose. */
export interface FirehoseItem {
  /** What it must not overtake another of. */
  readonly orderKey: string
  readonly data: Uint8Array
}

const recordsPerRequest = 500
const requestLimitBytes = 4 * 1_048_576
/** Before base64. */
const recordLimitBytes = 1_000 * 1_024

function answers(items: readonly FirehoseItem[], output: PutRecordBatchCommandOutput) {
  const { FailedPutCount, RequestResponses = [] } = output
  if (FailedPutCount === 0 && RequestResponses.length === items.length) return undefined
  return items.map((_, index): Answer => {
    const answer = RequestResponses[index]
    if (answer && !answer.ErrorCode) return delivered
    const told = answer ? `${answer.ErrorCode}: ${answer.ErrorMessage ?? ''}` : 'no answer for the record'
    return { status: 'refused', error: Object.assign(new Error(told), { name: answer?.ErrorCode ?? 'NoAnswer' }) }
  })
}

/**
 * A sink that puts each value into a Firehose stream, whose source must be direct PUT. Throttles, failures of single records and
 * lost connections are retried until the deadline; a missing stream or permission returns the records to their source.
 *
 * Dead letters by code: `not-serialisable`, `oversize`.
 *
 * @example
 * const sink = firehoseSink({ client: createFirehoseClient(), deliveryStreamName: 'orders-to-lake', clock, logger })
 */
export function firehoseSink(options: FirehoseSinkOptions): Sink<unknown, FirehoseItem> {
  const { client, deliveryStreamName, delimiter = '\n', ordering } = options
  const destination: Destination<FirehoseItem> = {
    label: `Firehose stream "${deliveryStreamName}"`,
    maxItemsPerRequest: recordsPerRequest,
    maxBytesPerRequest: requestLimitBytes,
    maxRequests: 4,
    sizeOf: ({ data }) => data.byteLength,
    orderKeyOf: ordering === 'none' ? undefined : ({ orderKey }) => orderKey,
    async send(items) {
      const records = items.map(({ data }) => ({ Data: data }))
      const command = new PutRecordBatchCommand({ DeliveryStreamName: deliveryStreamName, Records: records })
      return answers(items, await client.send(command))
    },
  }
  return {
    prepare({ value, key, record, index }) {
      const data = Buffer.from(jsonText(value) + delimiter)
      if (data.byteLength > recordLimitBytes) {
        throw new TerminalError(
          `the output has ${data.byteLength} bytes: ${destination.label} takes ${recordLimitBytes} in a record`,
          { code: 'oversize' },
        )
      }
      return { orderKey: key ?? outputIdentity(record, index), data }
    },
    deliver: (items, { signal }) => deliverInOrder(items, destination, options, signal),
  }
}
