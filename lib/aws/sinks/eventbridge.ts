/**
 * Puts outputs on an EventBridge bus.
 *
 * 1. Each event carries the identity of its output as its resource, so that a consumer can tell a repeat: EventBridge gives a
 *    repeated event another id. It begins with the topology and the sink: several may write to one bus.
 * 2. Its time is the event time of the record that the output was made of, so that a repeat is the same in all but its id. A time
 *    that no date holds is left out, and EventBridge then takes its own.
 * 3. Of one key at most one event is unacknowledged, unless ordering is 'none'. EventBridge itself promises no order.
 * 4. What EventBridge could never take of an event fails that event alone.
 *
 * @see https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
 */
import {
  PutEventsCommand,
  type PutEventsCommandOutput,
  type PutEventsRequestEntry,
  type PutEventsResultEntry,
} from '@aws-sdk/client-eventbridge'
import { RetryableError, TerminalError } from '../../core/errors.ts'
import { outputIdentity } from '../../core/record.ts'
import { delivered, type Sink } from '../../runtime/sink.ts'
import { passesByItself } from '../aws-failure.ts'
import { jsonText } from '../encoding/output-json.ts'
import { type Answer, type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'

/** What is needed of an `EventBridgeClient`. */
export interface EventBridgePort {
  send(command: PutEventsCommand): Promise<PutEventsCommandOutput>
}

export interface EventBridgeSinkOptions extends DeliveryPorts {
  /** An `EventBridgeClient`, such as {@link createEventBridgeClient} makes: without retries of its own. */
  readonly client: EventBridgePort
  /** The bus' name or ARN. */
  readonly eventBusName: string
  /** Names the sink among all that write to the bus: `<topology>/<sink>`. */
  readonly origin: string
  /** The `source` of every event. */
  readonly source: string
  /** The `detail-type` of every event. */
  readonly detailType: string
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although EventBridge promises no order; 'none' fills
   * every request.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/** One event on its way to EventBridge. */
export interface EventBridgeItem {
  /** What it must not overtake another of. */
  readonly orderKey: string
  readonly bytes: number
  readonly entry: PutEventsRequestEntry
}

const eventsPerRequest = 10
/** "Less than 1 MB", of all entries of a request together. */
const requestLimitBytes = 999_999
/** What the time of an event counts for. @see https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html */
const timeBytes = 14

/** Failures of an entry that pass by themselves, beside those of every service. */
const passing = /^(Internal(Failure|Exception)|ServiceUnavailable)/

function answerTo({ ErrorCode = 'Unknown', ErrorMessage = '' }: PutEventsResultEntry): Answer {
  if (passing.test(ErrorCode) || passesByItself({ name: ErrorCode })) {
    return { status: 'refused', error: Object.assign(new Error(`${ErrorCode}: ${ErrorMessage}`), { name: ErrorCode }) }
  }
  if (ErrorCode === 'MalformedDetail') {
    const error = new TerminalError(`EventBridge takes no such event (${ErrorCode})`, { code: 'unsupported-value' })
    return { status: 'rejected', error }
  }
  return {
    status: 'retry',
    error: new RetryableError(`EventBridge did not take an event (${ErrorCode}): check the bus and its settings`, {
      code: 'sink-misconfigured',
    }),
  }
}

function answers(items: readonly EventBridgeItem[], { Entries = [] }: PutEventsCommandOutput) {
  if (Entries.length === items.length && !Entries.some(({ ErrorCode }) => ErrorCode)) return undefined
  return items.map((_, index): Answer => {
    const answer = Entries[index]
    if (answer === undefined) return { status: 'refused', error: new Error('no answer for the event') }
    return answer.ErrorCode ? answerTo(answer) : delivered
  })
}

/** Years up to 9999, from 1970 on: what every service takes for a time. */
const isDate = (timeMs: number): boolean => timeMs >= 0 && timeMs < 253_402_300_800_000

/** The detail of an event is a JSON object. */
function detailOf(value: unknown): string {
  const detail = jsonText(value)
  if (detail.startsWith('{')) return detail
  throw new TerminalError(
    'the output is no object, and the detail of an EventBridge event is one: map it to an object',
    {
      code: 'not-an-object',
    },
  )
}

/**
 * A sink that puts each value on a bus as the detail of an event. Throttles, failures of single events and lost connections are
 * retried until the deadline; a missing bus or permission returns the records to their source.
 *
 * Dead letters by code: `not-serialisable`, `not-an-object`, `oversize`, `unsupported-value`.
 *
 * @example
 * const sink = eventBridgeSink({ client: createEventBridgeClient(), eventBusName: 'orders', origin: 'shop/paid', source: 'shop', detailType: 'order-paid', clock, logger })
 */
export function eventBridgeSink(options: EventBridgeSinkOptions): Sink<unknown, EventBridgeItem> {
  const { client, eventBusName, origin, source, detailType, ordering } = options
  const commonBytes = timeBytes + Buffer.byteLength(source) + Buffer.byteLength(detailType)
  const destination: Destination<EventBridgeItem> = {
    label: `event bus ${eventBusName}`,
    maxItemsPerRequest: eventsPerRequest,
    maxBytesPerRequest: requestLimitBytes,
    maxRequests: 4,
    sizeOf: ({ bytes }) => bytes,
    orderKeyOf: ordering === 'none' ? undefined : ({ orderKey }) => orderKey,
    send: async (items) =>
      answers(items, await client.send(new PutEventsCommand({ Entries: items.map(({ entry }) => entry) }))),
  }
  return {
    prepare({ value, key, record, index }) {
      const identity = `${origin}/${outputIdentity(record, index)}`
      const detail = detailOf(value)
      const bytes = commonBytes + Buffer.byteLength(detail) + Buffer.byteLength(identity)
      if (bytes > requestLimitBytes) {
        throw new TerminalError(`the output has ${bytes} bytes as an event: EventBridge takes ${requestLimitBytes}`, {
          code: 'oversize',
        })
      }
      const entry = {
        EventBusName: eventBusName,
        Source: source,
        DetailType: detailType,
        ...(isDate(record.eventTimeMs) ? { Time: new Date(record.eventTimeMs) } : {}),
        Resources: [identity],
        Detail: detail,
      }
      return { orderKey: key ?? identity, bytes, entry }
    },
    deliver: (items, { signal }) => deliverInOrder(items, destination, options, signal),
  }
}
