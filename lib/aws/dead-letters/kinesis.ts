import { hash } from 'node:crypto'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { Sink } from '../../runtime/sink.ts'
import {
  type KinesisItem,
  type KinesisPort,
  kinesisDestination,
  kinesisRecordLimitBytes,
  type StreamAddress,
} from '../kinesis/destination.ts'
import { type DeliveryPorts, deliverInOrder } from '../ordered-delivery.ts'
import { type FittedEntry, fitEntry } from './entry.ts'
import { type DeadLetterOffload, deliverOffloaded } from './offload.ts'

export type KinesisDeadLetterOptions = StreamAddress &
  DeliveryPorts & {
    /** A `KinesisClient`, such as {@link createKinesisClient} makes: without retries of its own. */
    readonly client: KinesisPort
    /** Takes entries above 1 MiB whole. @default none: such an entry keeps coordinates and reason, and says so */
    readonly offload?: DeadLetterOffload
  }

const partitionKeyBytes = 64

/**
 * Dead letters as records of a Kinesis stream, one JSON entry each, spread by their id.
 *
 * @example
 * const deadLetters = kinesisDeadLetters({ client: createKinesisClient(), streamName: 'failed', clock, logger })
 */
export function kinesisDeadLetters(options: KinesisDeadLetterOptions): Sink<DeadLetter, FittedEntry> {
  const { client, offload } = options
  const destination = kinesisDestination(client, options, 'none')
  const recordOf = ({ id, text }: FittedEntry): KinesisItem => ({
    Data: Buffer.from(text),
    PartitionKey: hash('sha256', id, 'hex'),
  })
  return {
    prepare: ({ value }) => fitEntry(value, kinesisRecordLimitBytes - partitionKeyBytes, offload?.bucket),
    deliver: (entries, { signal }) =>
      deliverOffloaded(entries, offload, options, signal, (sent) =>
        deliverInOrder(sent.map(recordOf), destination, options, signal),
      ),
  }
}
