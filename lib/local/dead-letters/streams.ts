/** The streams of keyed stages, on Kinesis or Kafka, as a redrive writes to them. */
import type { KinesisPort, StreamAddress } from '../../aws/kinesis/destination.ts'
import { kinesisFramePublisher } from '../../aws/kinesis/frame-publisher.ts'
import { systemClock } from '../../aws/system-clock.ts'
import type { EncodedFrame } from '../../runtime/frames/frame.ts'
import type { FramePublisher } from '../../runtime/ports.ts'
import { silent } from '../silent-logger.ts'
import type { KeyedStreams } from './frame.ts'

/** The stream of one keyed stage. */
export interface StageStream {
  readonly slots: number
  /** Makes what writes to it, when the first frame goes there. */
  readonly open: () => FramePublisher | Promise<FramePublisher>
}

export interface StageStreamsOptions {
  /** By keyed stage. */
  readonly streams: ReadonlyMap<string, StageStream>
  /** What to say of a stage without a stream here. */
  readonly unknown: (stage: string) => string
}

/** How long a stream may refuse a frame before its dead letter is returned. */
const publishTimeoutMs = 15_000

/** A stage's stream on Kinesis; `client` has no retries of its own. */
export const kinesisStageStream = (client: KinesisPort, stream: StreamAddress, slots: number): StageStream => ({
  slots,
  open: () => kinesisFramePublisher({ client, ...stream, slots, clock: systemClock, logger: silent }),
})

/**
 * Writes to the streams of keyed stages.
 *
 * @example
 * const stream = kinesisStageStream(client, { streamName }, 64)
 * const streams = stageStreams({ streams: new Map([['by-customer', stream]]), unknown })
 */
export function stageStreams({ streams, unknown }: StageStreamsOptions): KeyedStreams {
  return {
    slotsOf: (stage) => streams.get(stage)?.slots ?? { reason: unknown(stage) },
    async publish(stage: string, frame: EncodedFrame) {
      const publisher = await (streams.get(stage) as StageStream).open()
      await publisher.publish([frame], AbortSignal.timeout(publishTimeoutMs))
    },
  }
}
