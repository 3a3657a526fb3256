import {
  GetRecordsCommand,
  GetShardIteratorCommand,
  type GetShardIteratorCommandInput,
  type KinesisClient,
  type _Record as KinesisRecord,
  ListShardsCommand,
} from '@aws-sdk/client-kinesis'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type {
  ReadPosition,
  ShardDescription,
  ShardRead,
  ShardReader,
  SourceRecord,
} from '../../emulator/event-source-mapping/index.ts'

export interface KinesisShardReaderOptions {
  readonly client: Pick<KinesisClient, 'send'>
  readonly streamName: string
  readonly clock: Clock
  /** Tries per call while the service throttles, before the mapping hears of it. @default 5 */
  readonly maxAttempts?: number
  /** Wait after the first throttle, doubled with each further one. @default 100 */
  readonly throttleDelayMs?: number
}

const throttles = ['ProvisionedThroughputExceededException', 'LimitExceededException', 'KMSThrottlingException']

/**
 * Reads a Kinesis stream through the SDK, from AWS or anything that speaks its protocol.
 *
 * Throttles are tried again here; everything else rejects with what the service said, and the mapping tries again in its own time.
 *
 * @example
 * const reader = new KinesisShardReader({ client: new KinesisClient({ endpoint }), streamName: 'flights', clock })
 */
export class KinesisShardReader implements ShardReader {
  readonly #options: KinesisShardReaderOptions

  constructor(options: KinesisShardReaderOptions) {
    if (options.streamName === '') throw new ConfigurationError('streamName is empty: name the stream to read.')
    this.#options = options
  }

  async listShards(): Promise<readonly ShardDescription[]> {
    const { client, streamName } = this.#options
    const shards: ShardDescription[] = []
    let nextToken: string | undefined
    do {
      // The service takes either the stream or the token of the next page, never both.
      const input: { StreamName?: string; NextToken?: string } =
        nextToken === undefined ? { StreamName: streamName } : { NextToken: nextToken }
      const page = await this.#try(() => client.send(new ListShardsCommand(input)))
      for (const shard of page.Shards ?? []) {
        const parentIds = [shard.ParentShardId, shard.AdjacentParentShardId].filter((id) => id !== undefined)
        shards.push({ shardId: String(shard.ShardId), parentIds })
      }
      nextToken = page.NextToken
    } while (nextToken !== undefined)
    return shards
  }

  async open(shardId: string, position: ReadPosition): Promise<string> {
    const { client, streamName } = this.#options
    const input = { StreamName: streamName, ShardId: shardId, ...iteratorType(position) }
    const { ShardIterator: iterator } = await this.#try(() => client.send(new GetShardIteratorCommand(input)))
    if (iterator === undefined) throw new Error(`the service gave no iterator for ${shardId}`)
    return iterator
  }

  async read(iterator: string, limit: number): Promise<ShardRead> {
    const { client } = this.#options
    const input = { ShardIterator: iterator, Limit: limit }
    const answer = await this.#try(() => client.send(new GetRecordsCommand(input)))
    return {
      records: (answer.Records ?? []).map(sourceRecord),
      nextIterator: answer.NextShardIterator ?? null,
      millisBehindLatest: answer.MillisBehindLatest ?? 0,
    }
  }

  async #try<T>(call: () => Promise<T>): Promise<T> {
    const { clock, streamName, maxAttempts = 5, throttleDelayMs = 100 } = this.#options
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await call()
      } catch (thrown) {
        const { name, message } = describeError(thrown)
        if (!throttles.includes(name) || attempt >= maxAttempts) {
          throw new Error(`stream ${streamName}: ${name}: ${message}`, { cause: thrown })
        }
        await clock.sleep(throttleDelayMs * 2 ** (attempt - 1))
      }
    }
  }
}

type IteratorStart = Pick<GetShardIteratorCommandInput, 'ShardIteratorType' | 'StartingSequenceNumber' | 'Timestamp'>

function iteratorType(position: ReadPosition): IteratorStart {
  if (position.at === 'after') {
    return { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', StartingSequenceNumber: position.sequenceNumber }
  }
  if (position.at === 'timestamp') {
    return { ShardIteratorType: 'AT_TIMESTAMP', Timestamp: new Date(position.timestampMs) }
  }
  return { ShardIteratorType: position.at === 'latest' ? 'LATEST' : 'TRIM_HORIZON' }
}

function sourceRecord(record: KinesisRecord): SourceRecord {
  return {
    sequenceNumber: record.SequenceNumber ?? '',
    partitionKey: record.PartitionKey ?? '',
    data: record.Data ?? new Uint8Array(),
    arrivalMs: record.ApproximateArrivalTimestamp?.getTime() ?? 0,
  }
}
