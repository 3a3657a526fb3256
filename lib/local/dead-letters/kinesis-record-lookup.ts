import { GetRecordsCommand, GetShardIteratorCommand, type KinesisClient } from '@aws-sdk/client-kinesis'
import { describeError } from '../../core/errors.ts'
import type { SourceBytes } from './record.ts'

/** Kinesis may answer with nothing in the middle of a shard. */
const mostReads = 5

/**
 * Reads one record of a stream by its coordinates; undefined where the stream no longer holds it.
 *
 * @example
 * const found = await lookUpRecord(client, { StreamName: 'orders' }, { partition: 'shardId-000000000000', position: '49545' })
 */
export async function lookUpRecord(
  client: KinesisClient,
  stream: { readonly StreamName: string } | { readonly StreamARN: string },
  { partition, position }: { readonly partition: string; readonly position: string },
): Promise<SourceBytes | undefined> {
  try {
    const start = {
      ShardId: partition,
      ShardIteratorType: 'AT_SEQUENCE_NUMBER',
      StartingSequenceNumber: position,
    } as const
    let { ShardIterator } = await client.send(new GetShardIteratorCommand({ ...stream, ...start }))
    for (let reads = 0; reads < mostReads && ShardIterator !== undefined; reads++) {
      const answer = await client.send(new GetRecordsCommand({ ShardIterator, Limit: 1 }))
      const found = answer.Records?.[0]
      if (found?.SequenceNumber === position)
        return { partitionKey: found.PartitionKey ?? '', data: Buffer.from(found.Data ?? []) }
      if (found !== undefined || answer.MillisBehindLatest === 0) return undefined
      ShardIterator = answer.NextShardIterator
    }
    return undefined
  } catch (error) {
    const { name } = describeError(error)
    if (name === 'ResourceNotFoundException' || name === 'InvalidArgumentException') return undefined
    throw error
  }
}
