/**
 * From the event of a DynamoDB Streams event source mapping to source records.
 *
 * 1. Records keep the order of the event, which is that of one shard: all changes of an item are in it, one after the other.
 * 2. The event names no shard, and sequence numbers are known to grow per item only. So the partition of a record is its
 *    item, `table/<label of the stream>/<hash of the key>`: keys stay out of logs.
 * 3. The payload is the record's JSON without what all records have in common, so that a dead letter holds all of the change.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
 */
import { hash } from 'node:crypto'
import { type RecordFields, SourceRecord } from '../../core/record.ts'
import type { PartitionBatch } from '../../runtime/batch.ts'
import { EventError } from './event-error.ts'

/** One record of the event, as far as it is read. */
export interface DynamoDbStreamEventRecord {
  readonly eventSource: 'aws:dynamodb'
  readonly eventSourceARN: string
  readonly eventID?: string
  readonly eventName: string
  readonly userIdentity?: unknown
  readonly dynamodb: {
    /** Seconds since 1970 UTC. */
    readonly ApproximateCreationDateTime: number
    readonly Keys: Readonly<Record<string, unknown>>
    readonly SequenceNumber: string
  }
}

/** What Lambda invokes a function with for a batch of one shard. */
export interface DynamoDbStreamEvent {
  readonly Records: readonly DynamoDbStreamEventRecord[]
}

function malformed(index: number, what: string): never {
  throw new EventError(
    'malformed-event',
    `record ${index} of the DynamoDB Streams event ${what}: it did not come from Lambda`,
  )
}

/** `arn:aws:dynamodb:<region>:<account>:table/<name>/stream/<label>`: a stream that is enabled anew has a new label. */
function labelOf(arn: unknown): string {
  const [, label] = /:table\/[^/]+\/stream\/(.+)$/.exec(String(arn)) ?? []
  return label ?? malformed(0, `has the eventSourceARN ${JSON.stringify(arn)}, not that of a table's stream`)
}

/** The item's key as text, the same in whatever order its attributes come. */
function keyText(keys: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(keys).sort(([one], [other]) => (one < other ? -1 : 1))))
}

/** A record's fields; its payload is written when it is asked for, as most are decoded once. */
class ChangeFields implements RecordFields {
  readonly source: string
  readonly partition: string
  readonly key: string
  readonly #row: DynamoDbStreamEventRecord

  constructor(source: string, label: string, row: DynamoDbStreamEventRecord) {
    this.source = source
    this.key = keyText(row.dynamodb.Keys)
    this.partition = `table/${label}/${hash('sha256', this.key, 'hex').slice(0, 32)}`
    this.#row = row
  }

  get position(): string {
    return this.#row.dynamodb.SequenceNumber
  }

  get arrivalTimeMs(): number {
    return Math.round(this.#row.dynamodb.ApproximateCreationDateTime * 1_000)
  }

  get payload(): Buffer {
    const { eventID, eventName, userIdentity, dynamodb } = this.#row
    return Buffer.from(JSON.stringify({ eventID, eventName, userIdentity, dynamodb }))
  }
}

/**
 * Reads the event of a DynamoDB Streams event source mapping. Throws an {@link EventError} (code `malformed-event`) for
 * anything that Lambda does not send.
 *
 * @example
 * const { records } = dynamoDbStreamRecords(event, 'order-changes')
 */
export function dynamoDbStreamRecords(event: DynamoDbStreamEvent, source: string): PartitionBatch {
  const label = labelOf(event.Records[0]?.eventSourceARN)
  const records = event.Records.map((row, index) => {
    const { SequenceNumber, Keys, ApproximateCreationDateTime } = Object(row.dynamodb) as typeof row.dynamodb
    if (!/^\d+$/.test(SequenceNumber)) malformed(index, 'has no sequence number made of digits')
    if (typeof Keys !== 'object' || Keys === null) malformed(index, 'has no key')
    if (!Number.isFinite(ApproximateCreationDateTime)) malformed(index, 'has no creation time in seconds')
    return new SourceRecord(new ChangeFields(source, label, row))
  })
  return { partition: label, records }
}
