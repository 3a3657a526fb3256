/**
 * From the event of a Kinesis event source mapping to source records.
 *
 * 1. Records keep the order of the event, the sub-records of an aggregate the order of the aggregate.
 * 2. Sub-records share the position of their aggregate and differ by sub-position, as partial batch answers can only
 *    name the aggregate.
 * 3. A redriven record is one user record already: it is never taken apart, and has the sub-position that it is sent with.
 * 4. A payload stays the base64 text that Lambda delivered until somebody asks for its bytes.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html
 */
import { describeError } from '../../core/errors.ts'
import { type RecordFields, SourceRecord } from '../../core/record.ts'
import type { RecordList } from '../../runtime/batch.ts'
import { EventError } from './event-error.ts'
import { deaggregate, isAggregate, mayBeAggregate } from './kpl-aggregate.ts'

/** One record of the event, as far as it is read. */
export interface KinesisEventRecord {
  readonly eventID: string
  readonly eventSourceARN: string
  readonly kinesis: {
    readonly sequenceNumber: string
    readonly partitionKey: string
    /** Base64. */
    readonly data: string
    /** Seconds since 1970 UTC, with milliseconds behind the point. */
    readonly approximateArrivalTimestamp: number
  }
  /** Only a redrive sets it, never Lambda: where the user record stood in its aggregate, from 0. */
  readonly millrace?: { readonly subPosition: number }
}

/** What Lambda invokes a function with for a batch of one shard. */
export interface KinesisEvent {
  readonly Records: readonly KinesisEventRecord[]
}

/** The records of one shard. */
export interface KinesisBatch {
  /** The shard id, such as `shardId-000000000000`. */
  readonly partition: string
  /** May be empty although the event is not: an aggregate without records is acknowledged with its neighbours. */
  readonly records: RecordList
}

function malformed(index: number, what: string): never {
  throw new EventError('malformed-event', `record ${index} of the Kinesis event ${what}: it did not come from Lambda`)
}

/** `shardId-000000000000:49545…` begins with the shard, which stands nowhere else in the event. */
function shardOf(eventId: unknown, index: number): string {
  const end = typeof eventId === 'string' ? eventId.indexOf(':') : -1
  if (end <= 0) malformed(index, `has the eventID ${JSON.stringify(eventId)}, not "<shard>:<sequence number>"`)
  return (eventId as string).slice(0, end)
}

/** Says what is wrong with a record that is not what Lambda sends. */
function refuse(kinesis: KinesisEventRecord['kinesis'] | undefined, index: number): never {
  if (typeof kinesis?.sequenceNumber !== 'string') malformed(index, 'has no sequence number')
  if (typeof kinesis.data !== 'string') malformed(index, 'has no data (base64 text)')
  if (typeof kinesis.partitionKey !== 'string') malformed(index, 'has no partition key')
  const seconds = kinesis.approximateArrivalTimestamp
  if (!Number.isFinite(seconds)) malformed(index, `has the arrival time ${seconds}, not a number of seconds`)
  malformed(index, 'has a sequence number that is not made of digits')
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function isWellFormed(kinesis: KinesisEventRecord['kinesis'] | undefined): kinesis is KinesisEventRecord['kinesis'] {
  return (
    typeof kinesis?.sequenceNumber === 'string' &&
    isDigit(kinesis.sequenceNumber.charCodeAt(0)) &&
    isDigit(kinesis.sequenceNumber.charCodeAt(kinesis.sequenceNumber.length - 1)) &&
    typeof kinesis.data === 'string' &&
    typeof kinesis.partitionKey === 'string' &&
    Number.isFinite(kinesis.approximateArrivalTimestamp)
  )
}

function refuseOtherShard(partition: string, eventId: unknown, index: number): never {
  const other = shardOf(eventId, index)
  throw new EventError(
    'several-shards',
    `the Kinesis event mixes ${partition} and ${other}: Lambda sends the records of one shard, so send one event per shard`,
  )
}

/** A record's fields, read from the event when they are asked for: most records are never asked for most of them. */
class KinesisFields implements RecordFields {
  readonly shard: Shard
  readonly kinesis: KinesisEventRecord['kinesis']

  constructor(shard: Shard, kinesis: KinesisEventRecord['kinesis']) {
    this.shard = shard
    this.kinesis = kinesis
  }

  get source(): string {
    return this.shard.source
  }

  get partition(): string {
    return this.shard.partition
  }

  get position(): string {
    return this.kinesis.sequenceNumber
  }

  get arrivalTimeMs(): number {
    return Math.round(this.kinesis.approximateArrivalTimestamp * 1_000)
  }

  get key(): string {
    return this.kinesis.partitionKey
  }

  get payload(): string {
    return this.kinesis.data
  }
}

interface Shard {
  readonly source: string
  readonly partition: string
}

/**
 * The records of an event without aggregates, each made when it is asked for: made all at once they outlive a garbage
 * collection, which costs more than making them.
 */
class PlainRecords implements RecordList {
  readonly #rows: readonly KinesisEventRecord[]
  readonly #shard: Shard

  constructor(rows: readonly KinesisEventRecord[], shard: Shard) {
    this.#rows = rows
    this.#shard = shard
  }

  get length(): number {
    return this.#rows.length
  }

  at(index: number): SourceRecord | undefined {
    const row = this.#rows.at(index)
    return row && new SourceRecord(new KinesisFields(this.#shard, row.kinesis))
  }
}

/** Adds the user records of an aggregate, or as one record what is none or cannot be taken apart. */
function addRecords(into: SourceRecord[], outer: KinesisFields): void {
  const bytes = mayBeAggregate(outer.payload) ? Buffer.from(outer.payload, 'base64') : undefined
  if (!bytes || !isAggregate(bytes)) {
    into.push(new SourceRecord(outer))
    return
  }
  const { source, partition, position, arrivalTimeMs } = outer
  const where = { source, partition, position, arrivalTimeMs }
  try {
    deaggregate(bytes).forEach((record, subPosition) => {
      into.push(new SourceRecord({ ...where, subPosition, key: record.partitionKey, payload: record.data }))
    })
  } catch (error) {
    const { message } = describeError(error)
    const unreadable = { code: 'aggregate-corrupt', message }
    into.push(new SourceRecord({ ...where, key: outer.key, payload: outer.payload, unreadable }))
  }
}

/** A record of a redrive, as it was inside its aggregate. */
function redrivenRecord({ kinesis, millrace }: KinesisEventRecord, shard: Shard, index: number): SourceRecord {
  const subPosition = millrace?.subPosition
  if (!Number.isSafeInteger(subPosition) || Number(subPosition) < 0) {
    malformed(index, `has the sub-position ${JSON.stringify(subPosition)}, not a whole number from 0`)
  }
  if (!isWellFormed(kinesis)) refuse(kinesis, index)
  const { position, arrivalTimeMs, key, payload } = new KinesisFields(shard, kinesis)
  return new SourceRecord({ ...shard, position, arrivalTimeMs, key, payload, subPosition: Number(subPosition) })
}

/**
 * Reads the event of a Kinesis event source mapping. KPL aggregates are taken apart; one that is cut or has a wrong
 * checksum becomes a single record with `unreadable` set (code `aggregate-corrupt`) and its original bytes.
 *
 * A sub-record that the producer also put elsewhere, because a reshard moved its key, comes here too: Lambda does not
 * say which hash keys the shard holds.
 *
 * An event of a redrive holds nothing but redriven records, which its first one tells.
 *
 * Throws an {@link EventError}: `malformed-event` for anything that Lambda does not send, `several-shards` for an event
 * that mixes shards.
 *
 * @example
 * const { partition, records } = kinesisRecords(event, 'booking-requests')
 */
export function kinesisRecords(event: KinesisEvent, source: string): KinesisBatch {
  const first = event.Records[0]
  if (!first) throw new EventError('malformed-event', 'the Kinesis event has no records: it did not come from Lambda')
  const partition = shardOf(first.eventID, 0)
  const sameShard = `${partition}:`
  const rows = event.Records
  // Lambda sends one shard's records, all alike, so the ends stand for the rest; looking at every field of every record
  // takes longer than anything else that is done here.
  for (const index of new Set([0, rows.length - 1])) {
    const { eventID, kinesis } = rows[index] as KinesisEventRecord
    if (typeof eventID !== 'string' || !eventID.startsWith(sameShard)) refuseOtherShard(partition, eventID, index)
    if (!isWellFormed(kinesis)) refuse(kinesis, index)
  }
  const shard = { source, partition }
  if (first.millrace) return { partition, records: rows.map((row, index) => redrivenRecord(row, shard, index)) }
  let aggregates = false
  for (let index = 0; index < rows.length; index++) {
    const kinesis = rows[index]?.kinesis
    if (typeof kinesis?.data !== 'string') refuse(kinesis, index)
    aggregates ||= mayBeAggregate(kinesis.data)
  }
  if (!aggregates) return { partition, records: new PlainRecords(rows, shard) }
  const records: SourceRecord[] = []
  for (const { kinesis } of rows) addRecords(records, new KinesisFields(shard, kinesis))
  return { partition, records }
}
