/**
 * Publishes frames to the stream of a keyed stage (B1 to B3 of docs/frames.md).
 *
 * 1. Per slot at most one frame is unacknowledged, so none overtakes one that was refused. Frames of several slots share
 *    a request.
 * 2. Refused frames are sent again, after a while, until the signal aborts. What is in flight then is awaited.
 * 3. `publish` resolves only when every frame is acknowledged. Otherwise it rejects with a RetryableError, and nothing
 *    that depends on the frames may be committed; some of them may have been taken, and readers drop them when they come again.
 */
import { RetryableError } from '../../core/errors.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'
import type { FramePublisher } from '../ports.ts'
import type { EncodedFrame } from './frame.ts'

export type { FramePublisher } from '../ports.ts'

/** The port: a stream that takes frames by slot. */
export interface FrameStream {
  /** How messages call it, such as `stream "orders-by-customer"`. */
  readonly label: string
  /** @default 5 MiB */
  readonly maxBytesPerRequest?: number
  /** Requests in flight at a time. @default 4 */
  readonly maxRequests?: number
  /** Puts frames of different slots. Undefined says that all were taken, else there is an answer for each. */
  put(frames: readonly EncodedFrame[]): Promise<readonly Answer[] | undefined>
}

/** What PutRecords takes everywhere, emulators and older endpoints included. */
const framesPerRequest = 500
const bytesPerRequest = 5 * 1_048_576
/** What a frame takes in a request beside its bytes: its partition key, which may carry a trace. */
const keyBytes = 48

/**
 * A publisher over a stream.
 *
 * @example
 * const publisher = framePublisher(stream, { clock, logger, random, passesByItself })
 * await publisher.publish(sender.frames(outputs, { markMs, completeThrough }), signal)
 */
export function framePublisher(stream: FrameStream, ports: DeliveryPorts): FramePublisher {
  const destination: Destination<EncodedFrame> = {
    label: stream.label,
    maxItemsPerRequest: framesPerRequest,
    maxBytesPerRequest: stream.maxBytesPerRequest ?? bytesPerRequest,
    maxRequests: stream.maxRequests ?? 4,
    sizeOf: ({ bytes }) => bytes.byteLength + keyBytes,
    orderKeyOf: ({ slot }) => String(slot),
    send: (frames) => stream.put(frames),
  }
  return {
    async publish(frames, signal) {
      const outcomes = await deliverInOrder(frames, destination, ports, signal)
      const failed = outcomes.find(({ status }) => status !== 'delivered')
      if (failed === undefined || failed.status === 'delivered') return
      if (failed.error instanceof RetryableError) throw failed.error
      throw new RetryableError(`${stream.label} refused a frame for good (${failed.error.message})`, {
        code: 'frame-refused',
        cause: failed.error,
      })
    },
  }
}
