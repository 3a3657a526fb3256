/** Sends a demo's input, spread over the shards of its stream. */
import { type KinesisClient, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

export interface DemoRecord {
  readonly partitionKey: string
  readonly value: unknown
  /** The shard that it goes to, counted from 0. @default the one of its partition key */
  readonly shard?: number
}

/** Where a record came to lie. */
export interface Place {
  readonly shardId: string
  readonly position: string
}

const mostPerRequest = 500

/** Sends records in order, and resolves with where each lies. The embedded Kinesis refuses none unless it is asked to. */
export async function send(
  client: KinesisClient,
  { streamName, shards }: { readonly streamName: string; readonly shards: number },
  records: readonly DemoRecord[],
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (let from = 0; from < records.length; from += mostPerRequest) {
    const Records = records.slice(from, from + mostPerRequest).map(({ partitionKey, value, shard }) => ({
      PartitionKey: partitionKey,
      Data: Buffer.from(JSON.stringify(value)),
      ...(shard === undefined ? {} : { ExplicitHashKey: middleOf(shard, shards) }),
    }))
    const answer = await client.send(new PutRecordsCommand({ StreamName: streamName, Records })).catch((error) => {
      throw new ConfigurationError(`The stream ${streamName} cannot be written: ${describeError(error).message}`)
    })
    for (const { ShardId, SequenceNumber, ErrorMessage } of answer.Records ?? []) {
      if (!ShardId || !SequenceNumber)
        throw new ConfigurationError(`The stream ${streamName} refused a record: ${ErrorMessage}`)
      places.push({ shardId: ShardId, position: SequenceNumber })
    }
  }
  return places
}

/** A hash key in the middle of what a new stream gives to one of its shards. */
const middleOf = (shard: number, shards: number): string =>
  String((2n ** 127n * BigInt(2 * shard + 1)) / BigInt(shards))
