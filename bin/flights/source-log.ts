/** What the stream `flights` holds: the order in which the topology reads, which is one of its own in every shard. */
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'

/** The payloads of each shard, in the order of its log. */
export type SourceLog = readonly (readonly Uint8Array[])[]

const recordsPerRead = 10_000

/** Reads all shards from their beginning to where they end now. */
export async function readSourceLog(client: KinesisClient, streamName: string): Promise<SourceLog> {
  const reader = new KinesisShardReader({ client, streamName, clock: systemClock })
  const shards = await reader.listShards()
  return Promise.all(shards.map(({ shardId }) => readShard(reader, shardId)))
}

async function readShard(reader: KinesisShardReader, shardId: string): Promise<readonly Uint8Array[]> {
  const payloads: Uint8Array[] = []
  let iterator: string | null = await reader.open(shardId, { at: 'trim-horizon' })
  while (iterator !== null) {
    const { records, nextIterator, millisBehindLatest } = await reader.read(iterator, recordsPerRead)
    for (const { data } of records) payloads.push(data)
    iterator = millisBehindLatest === 0 && records.length === 0 ? null : nextIterator
  }
  return payloads
}
