/** Builders of the events that Lambda sends, for tests that invoke the real handler. */
import type { Context, KinesisStreamEvent, KinesisStreamRecord, MSKEvent, SelfManagedKafkaEvent } from 'aws-lambda'
import type { RecordHeader } from '../core/record.ts'
import type { SourceHandle } from '../topology/handles.ts'

/** Names the stream of events whose builder was told no source. */
export const defaultStream = 'the-only-source'

/** Where events of tests come from. */
export const region = 'us-east-1'
export const account = '000000000000'
const shard = 'shardId-000000000000'

/** The bytes of a payload as a test gives it: bytes and text as they are, anything else as JSON. */
export function payloadBytes(payload: unknown): Buffer {
  if (payload instanceof Uint8Array) return Buffer.from(payload)
  return Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))
}

/** The sequence number of the record at `index` in an event of {@link kinesisEvent}, from 0. */
export function sequenceNumber(index: number): string {
  return String(49_545_115_243_490_985_018_280_067_714_973_144_582_180_062_593_244_200_961n + BigInt(index))
}

export interface KinesisEventOptions {
  /** Whose records they are. @default the topology's only source */
  readonly source?: SourceHandle<never> | { readonly name: string }
  /** @default 'key-<index>' */
  readonly partitionKey?: (index: number) => string
  /** @default 'shardId-000000000000' */
  readonly shardId?: string
  /** When the stream took the records in, or each of them, ms since 1970 UTC. @default 2026-01-01T00:00:00Z */
  readonly arrivalTimeMs?: number | ((index: number) => number)
  /** Index of the first record, so that a later event goes on with the numbers of an earlier one. @default 0 */
  readonly firstIndex?: number
}

/**
 * The event that Lambda sends for records of one Kinesis shard. Values become JSON; strings and bytes are sent as they
 * are, so that broken payloads can be tested.
 *
 * @example
 * await handler(kinesisEvent([booking, '{"cut":']), lambdaContext())
 */
export function kinesisEvent(payloads: readonly unknown[], options: KinesisEventOptions = {}): KinesisStreamEvent {
  const stream = options.source?.name ?? defaultStream
  const shardId = options.shardId ?? shard
  const { arrivalTimeMs = Date.UTC(2026, 0, 1) } = options
  const arrivedAtMs = typeof arrivalTimeMs === 'number' ? () => arrivalTimeMs : arrivalTimeMs
  const Records = payloads.map((payload, i): KinesisStreamRecord => {
    const index = i + (options.firstIndex ?? 0)
    return {
      kinesis: {
        kinesisSchemaVersion: '1.0',
        partitionKey: options.partitionKey?.(index) ?? `key-${index}`,
        sequenceNumber: sequenceNumber(index),
        data: payloadBytes(payload).toString('base64'),
        approximateArrivalTimestamp: arrivedAtMs(index) / 1_000,
      },
      eventSource: 'aws:kinesis',
      eventVersion: '1.0',
      eventID: `${shardId}:${sequenceNumber(index)}`,
      eventName: 'aws:kinesis:record',
      invokeIdentityArn: `arn:aws:iam::${account}:role/test`,
      awsRegion: region,
      eventSourceARN: `arn:aws:kinesis:${region}:${account}:stream/${stream}`,
    }
  })
  return { Records }
}

/**
 * Headers of a record in a test: by name, or as `record.headers` has them, which may hold a name more than once. Text becomes UTF-8.
 *
 * @example
 * { tenant: 'acme' }
 * [{ name: 'hop', value: 'edge' }, { name: 'hop', value: 'core' }]
 */
export type TestHeaders =
  | Readonly<Record<string, string | Uint8Array>>
  | readonly { readonly name: string; readonly value: string | Uint8Array }[]

/** The headers as a record has them. */
export function headersOf(headers: TestHeaders): readonly RecordHeader[] {
  const listed = isListed(headers) ? headers : Object.entries(headers).map(([name, value]) => ({ name, value }))
  return listed.map(({ name, value }) => ({ name, value: payloadBytes(value) }))
}

/** `Array.isArray` alone narrows no list that is read-only. */
const isListed = (headers: TestHeaders): headers is Extract<TestHeaders, readonly unknown[]> => Array.isArray(headers)

/** One record of a Kafka event. A value of null or undefined is a tombstone. */
export interface KafkaTestRecord {
  readonly offset: number
  readonly value?: unknown
  readonly key?: string | Uint8Array
  /** @default none */
  readonly headers?: TestHeaders
  /** @default 2026-01-01T00:00:00Z */
  readonly timestampMs?: number
}

/**
 * The event that Lambda sends for records of Kafka partitions, by `topic-partition`.
 *
 * @example
 * kafkaEvent({ 'orders-0': [{ offset: 5, key: 'o-1', value: order }] })
 */
export function kafkaEvent(
  partitions: Readonly<Record<string, readonly KafkaTestRecord[]>>,
  options: { readonly selfManaged?: boolean } = {},
): MSKEvent | SelfManagedKafkaEvent {
  const records = Object.fromEntries(
    Object.entries(partitions).map(([name, list]) => [name, list.map((record) => kafkaRecord(name, record))]),
  )
  const bootstrapServers = 'b-1.test:9098'
  if (options.selfManaged)
    return { eventSource: 'SelfManagedKafka', bootstrapServers, records } as SelfManagedKafkaEvent
  const eventSourceArn = `arn:aws:kafka:${region}:${account}:cluster/test/1`
  return { eventSource: 'aws:kafka', eventSourceArn, bootstrapServers, records } as MSKEvent
}

function kafkaRecord(name: string, record: KafkaTestRecord) {
  const at = name.lastIndexOf('-')
  return {
    topic: name.slice(0, at),
    partition: Number(name.slice(at + 1)),
    offset: record.offset,
    timestamp: record.timestampMs ?? Date.UTC(2026, 0, 1),
    timestampType: 'CREATE_TIME',
    ...(record.key === undefined ? {} : { key: payloadBytes(record.key).toString('base64') }),
    ...(record.value === undefined || record.value === null
      ? {}
      : { value: payloadBytes(record.value).toString('base64') }),
    headers: headersOf(record.headers ?? {}).map((header) => ({ [header.name]: [...header.value] })),
  }
}

/**
 * The context of an invocation. `remainingMs` is what is left until the deadline.
 *
 * @example
 * await handler(kinesisEvent([booking]), lambdaContext({ remainingMs: 3_000 }))
 */
export function lambdaContext(options: { readonly remainingMs?: number } = {}): Context {
  return {
    callbackWaitsForEmptyEventLoop: false,
    functionName: 'test',
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:${region}:${account}:function:test`,
    memoryLimitInMB: '512',
    awsRequestId: '00000000-0000-4000-8000-000000000000',
    logGroupName: '/aws/lambda/test',
    logStreamName: 'test',
    getRemainingTimeInMillis: () => options.remainingMs ?? 60_000,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  }
}
