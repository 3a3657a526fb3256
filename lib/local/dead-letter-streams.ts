/** The streams of keyed stages on Kinesis, as a redrive writes to them. */
import { kinesisFramePublisher } from '../aws/frame-publisher-kinesis.ts'
import type { KinesisPort, StreamAddress } from '../aws/kinesis-destination.ts'
import { systemClock } from '../aws/system-clock.ts'
import type { EncodedFrame } from '../runtime/frames/frame.ts'
import type { Logger } from '../runtime/ports.ts'
import type { KeyedStreams } from './dead-letter-frame.ts'

/** The stream of one keyed stage. */
export type StageStream = StreamAddress & { readonly slots: number }

export interface KinesisStageStreamsOptions {
  /** A client without retries of its own. */
  readonly client: KinesisPort
  /** By keyed stage. */
  readonly streams: ReadonlyMap<string, StageStream>
  /** What to say of a stage without a stream here. */
  readonly unknown: (stage: string) => string
}

/** How long a stream may refuse a frame before its dead letter is returned. */
const publishTimeoutMs = 15_000

/** What a redrive says it says itself: of a letter that a stream refuses, why. */
const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * Writes to the streams of keyed stages.
 *
 * @example
 * const streams = kinesisStageStreams({ client, streams: new Map([['by-customer', { streamName, slots: 64 }]]), unknown })
 */
export function kinesisStageStreams({ client, streams, unknown }: KinesisStageStreamsOptions): KeyedStreams {
  return {
    slotsOf: (stage) => streams.get(stage)?.slots ?? { reason: unknown(stage) },
    publish(stage: string, frame: EncodedFrame) {
      const stream = streams.get(stage) as StageStream
      const publisher = kinesisFramePublisher({ client, ...stream, clock: systemClock, logger: silent })
      return publisher.publish([frame], AbortSignal.timeout(publishTimeoutMs))
    },
  }
}
