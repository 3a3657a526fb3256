import { firstHashOf } from '../../core/slot.ts'
import { mostFrameBytes } from '../../runtime/frames/frame-format.ts'
import { type FramePublisher, framePublisher } from '../../runtime/frames/publisher.ts'
import { type DeliveryPorts, enginePorts } from '../ordered-delivery.ts'
import { frameKey, traceBytes } from '../trace.ts'
import { type KinesisPort, kinesisDestination, type StreamAddress } from './destination.ts'

export type KinesisFramePublisherOptions = StreamAddress &
  DeliveryPorts & {
    /** A `KinesisClient` without retries of its own, such as {@link createKinesisClient} makes. */
    readonly client: KinesisPort
    /** The number of slots of the keyed stage that reads the stream. */
    readonly slots: number
    /** The trace of the invocation at hand, for whoever reads the frames. @default none */
    readonly trace?: () => string | undefined
  }

/**
 * Publishes frames to a Kinesis stream. Each carries its slot's first hash as ExplicitHashKey, so a slot is whole in one
 * shard through every split and merge; the partition key is the slot's number, with the writer's trace where it is sampled, and decides nothing.
 *
 * The stream must place records by their keys: with RecordDistributionStrategy AUTO Kinesis ignores ExplicitHashKey.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html
 * @example
 * const publisher = kinesisFramePublisher({ client, streamName: 'orders-by-customer', slots: 64, clock, logger })
 */
export function kinesisFramePublisher(options: KinesisFramePublisherOptions): FramePublisher {
  const { client, slots, trace } = options
  const stream = kinesisDestination(client, options, 'per-key')
  return framePublisher(
    {
      label: stream.label,
      put: (frames) =>
        stream.send(
          frames.map(({ slot, bytes }) => ({
            Data: bytes,
            // A frame as large as a record may be has no room for it.
            PartitionKey: frameKey(slot, bytes.byteLength + traceBytes > mostFrameBytes ? undefined : trace?.()),
            ExplicitHashKey: firstHashOf(slot, slots),
          })),
        ),
    },
    enginePorts(options),
  )
}
