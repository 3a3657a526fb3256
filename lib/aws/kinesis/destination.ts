import { PutRecordsCommand, type PutRecordsCommandOutput, type PutRecordsRequestEntry } from '@aws-sdk/client-kinesis'
import { delivered } from '../../runtime/sink.ts'
import type { Answer, Destination } from '../ordered-delivery.ts'

/** What is needed of a `KinesisClient`. */
export interface KinesisPort {
  send(command: PutRecordsCommand): Promise<PutRecordsCommandOutput>
}

/** Which stream to write to, by name or by ARN. */
export type StreamAddress = { readonly streamName: string } | { readonly streamArn: string }

/** One record on its way to Kinesis; it is also the entry of PutRecords. */
export interface KinesisItem extends PutRecordsRequestEntry {
  readonly Data: Uint8Array
  readonly PartitionKey: string
}

/** The default limit of a Kinesis record: data and partition key together. */
export const kinesisRecordLimitBytes = 1_048_576
/** @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html */
const recordsPerRequest = 500
/** PutRecords takes 10 MiB today; half of it is what older endpoints and emulators take too. */
const bytesPerRequest = 5 * 1_048_576

function answers(items: readonly KinesisItem[], output: PutRecordsCommandOutput): readonly Answer[] | undefined {
  const records = output.Records ?? []
  if (records.length === items.length && !records.some((record) => record.ErrorCode)) return undefined
  return items.map((_, index) => {
    const record = records[index]
    if (record && !record.ErrorCode) return delivered
    const error = new Error(record ? `${record.ErrorCode}: ${record.ErrorMessage ?? ''}` : 'no answer for the record')
    error.name = record?.ErrorCode ?? 'NoAnswer'
    return { status: 'refused', error }
  })
}

/** A stream as a destination of packed PutRecords requests. */
export function kinesisDestination(
  client: KinesisPort,
  address: StreamAddress,
  ordering: 'per-key' | 'none',
): Destination<KinesisItem> {
  const [label, stream] =
    'streamName' in address
      ? [`stream "${address.streamName}"`, { StreamName: address.streamName }]
      : [`stream ${address.streamArn}`, { StreamARN: address.streamArn }]
  return {
    label,
    maxItemsPerRequest: recordsPerRequest,
    maxBytesPerRequest: bytesPerRequest,
    maxRequests: 4,
    sizeOf: (item) => item.Data.byteLength + item.PartitionKey.length,
    orderKeyOf: ordering === 'per-key' ? (item) => item.PartitionKey : undefined,
    async send(items) {
      const output = await client.send(new PutRecordsCommand({ ...stream, Records: items as KinesisItem[] }))
      return answers(items, output)
    },
  }
}
