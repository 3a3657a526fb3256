/**
 * The lineage of a Kinesis stream's shards.
 *
 * 1. Shards are listed once per container, and again when a shard is asked for that is unknown, or whose listing still
 *    says open.
 * 2. A closed shard is drained where a read from behind the last completed record comes to its end: the service then gives
 *    no next iterator. Empty pages are no end, as the service may return any number of them before the next record.
 * 3. A position that the service refuses, as retention took it, is one from which nothing can be missed but what retention
 *    took as well: then the read begins at the trim horizon.
 * 4. Where reading begins at a time, what lies before it is read by nobody: a partition of which nothing is done yet begins there.
 * 5. What passes by itself is tried again until the signal aborts; everything else is a RetryableError.
 *
 * @see https://docs.aws.amazon.com/streams/latest/dev/kinesis-using-sdk-java-after-resharding.html
 */
import {
  GetRecordsCommand,
  type GetRecordsCommandOutput,
  GetShardIteratorCommand,
  type KinesisClient,
  ListShardsCommand,
  type Shard,
} from '@aws-sdk/client-kinesis'
import type { Clock } from '../../core/clock.ts'
import { RetryableError } from '../../core/errors.ts'
import {
  comparePartitionPositions,
  type ListedPartition,
  type PartitionDescription,
  type PartitionLineage,
} from '../../runtime/progress/lineage.ts'
import { errorOf, passesByItself } from '../aws-failure.ts'
import { backoffMs } from '../ordered-delivery.ts'
import type { StreamAddress } from './destination.ts'

export type KinesisLineageOptions = StreamAddress & {
  /** A `KinesisClient` without retries of its own, such as {@link createKinesisClient} makes. */
  readonly client: Pick<KinesisClient, 'send'>
  readonly clock: Clock
  /** When the mapping's starting position is, in ms since 1970 UTC. @default the oldest record of each shard */
  readonly startingAtMs?: number | undefined
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number
}

/** A shard takes five GetRecords a second. */
const betweenPagesMs = 200

type ListedShard = PartitionDescription & Pick<ListedPartition, 'isClosed'>

const listed = (shard: Shard): ListedShard => ({
  parents: [shard.ParentShardId, shard.AdjacentParentShardId].filter((id) => id !== undefined),
  startHash: shard.HashKeyRange?.StartingHashKey ?? '0',
  endHash: shard.HashKeyRange?.EndingHashKey ?? '0',
  isClosed: shard.SequenceNumberRange?.EndingSequenceNumber !== undefined,
})

class KinesisLineage implements PartitionLineage {
  readonly #options: KinesisLineageOptions
  readonly #stream: { readonly StreamName: string } | { readonly StreamARN: string }
  readonly #label: string
  #shards: ReadonlyMap<string, ListedShard> = new Map()

  constructor(options: KinesisLineageOptions) {
    this.#options = options
    if ('streamName' in options) {
      this.#stream = { StreamName: options.streamName }
      this.#label = `stream "${options.streamName}"`
    } else {
      this.#stream = { StreamARN: options.streamArn }
      this.#label = `stream ${options.streamArn}`
    }
  }

  async describe(partition: string, signal: AbortSignal): Promise<PartitionDescription | undefined> {
    if (!this.#shards.has(partition)) await this.#list(signal)
    return this.#shards.get(partition)
  }

  async isDrained(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs?: number | undefined,
  ): Promise<boolean> {
    if (!this.#shards.get(partition)?.isClosed) await this.#list(signal)
    const shard = this.#shards.get(partition)
    if (shard === undefined) return true
    if (!shard.isClosed) return false
    try {
      return await this.#endsBehind(partition, after, signal, { startsAtMs })
    } catch (error) {
      if (causeName(error) !== 'ResourceNotFoundException') throw error
      // Retention may have taken the shard since it was listed.
      await this.#list(signal)
      if (this.#shards.has(partition)) throw error
      return true
    }
  }

  async list(signal: AbortSignal): Promise<readonly ListedPartition[]> {
    await this.#list(signal)
    return [...this.#shards].map(([partition, shard]) => ({ partition, ...shard }))
  }

  isCaughtUp(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs?: number | undefined,
  ): Promise<boolean> {
    return this.#endsBehind(partition, after, signal, { atTip: true, startsAtMs })
  }

  /** Reads on from `after` until a record comes or the shard ends; with `atTip`, until there is nothing more for now. */
  async #endsBehind(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    { atTip = false, startsAtMs }: { readonly atTip?: boolean; readonly startsAtMs: number | undefined },
  ): Promise<boolean> {
    const isBehind = (position = '') => after === undefined || comparePartitionPositions(position, after) > 0
    let iterator: string | undefined = await this.#iteratorAfter(partition, after, signal, startsAtMs)
    while (iterator !== undefined) {
      const page = await this.#read(iterator, signal)
      if (page.Records?.some(({ SequenceNumber }) => isBehind(SequenceNumber))) return false
      if (atTip && page.MillisBehindLatest === 0) return true
      iterator = page.NextShardIterator ?? undefined
      // At the tip of a closed shard the end is a page or two away.
      if (iterator !== undefined && !page.MillisBehindLatest) await this.#options.clock.sleep(betweenPagesMs, signal)
    }
    return true
  }

  #read(iterator: string, signal: AbortSignal): Promise<GetRecordsCommandOutput> {
    const command = new GetRecordsCommand({ ...this.#arn, ShardIterator: iterator, Limit: 1 })
    return this.#call(() => this.#options.client.send(command), signal)
  }

  async #iteratorAfter(
    partition: string,
    after: string | undefined,
    signal: AbortSignal,
    startsAtMs: number | undefined,
  ): Promise<string> {
    const from = { ...this.#stream, ShardId: partition }
    const open = async (command: GetShardIteratorCommand) => {
      const { ShardIterator } = await this.#call(() => this.#options.client.send(command), signal)
      if (ShardIterator !== undefined) return ShardIterator
      throw this.#unusable(new Error(`no iterator was given for ${partition}`))
    }
    const fromHorizon = () => open(new GetShardIteratorCommand({ ...from, ShardIteratorType: 'TRIM_HORIZON' }))
    // What the mapping is to begin with and what counts since a reset: the later.
    const begins = [this.#options.startingAtMs, startsAtMs].filter((time) => time !== undefined)
    const startingAtMs = begins.length === 0 ? undefined : Math.max(...begins)
    if (after === undefined && startingAtMs === undefined) return await fromHorizon()
    if (after === undefined) {
      const atTime = { ShardIteratorType: 'AT_TIMESTAMP', Timestamp: new Date(startingAtMs as number) } as const
      const latest = () => open(new GetShardIteratorCommand({ ...from, ShardIteratorType: 'LATEST' }))
      // The service refuses a time that is still to come: until then nobody reads anything.
      return await orElse(open(new GetShardIteratorCommand({ ...from, ...atTime })), latest)
    }
    const behind = { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', StartingSequenceNumber: after } as const
    return await orElse(open(new GetShardIteratorCommand({ ...from, ...behind })), fromHorizon)
  }

  /** GetRecords takes the stream by its ARN only. */
  get #arn(): { StreamARN?: string } {
    return 'StreamARN' in this.#stream ? this.#stream : {}
  }

  async #list(signal: AbortSignal): Promise<void> {
    const shards = new Map<string, ListedShard>()
    let token: string | undefined
    do {
      // The service takes either the stream's name or the token of the next page.
      const command = new ListShardsCommand(token === undefined ? this.#stream : { ...this.#arn, NextToken: token })
      const page = await this.#call(() => this.#options.client.send(command), signal)
      for (const shard of page.Shards ?? []) shards.set(shard.ShardId ?? '', listed(shard))
      token = page.NextToken
    } while (token !== undefined)
    this.#shards = shards
  }

  async #call<Answer>(send: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    const { clock, random = Math.random } = this.#options
    let last: Error | undefined
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await send()
      } catch (thrown) {
        last = errorOf(thrown)
        if (!passesByItself(last)) throw this.#unusable(last)
      }
      await clock.sleep(backoffMs(attempt, random), signal)
    }
    throw new RetryableError(
      `${this.#label} could not be asked for its shards before the deadline${last ? ` (${last.message})` : ''}`,
      { code: 'lineage-deadline', cause: last },
    )
  }

  #unusable(error: Error): RetryableError {
    return new RetryableError(
      `the shards of ${this.#label} cannot be read (${error.name}: ${error.message}): check its name, and that the function may call ListShards, GetShardIterator and GetRecords`,
      { code: 'lineage-unusable', cause: error },
    )
  }
}

/** What another call gives where the service refused the place that the first one names. */
async function orElse(first: Promise<string>, second: () => Promise<string>): Promise<string> {
  try {
    return await first
  } catch (error) {
    if (causeName(error) !== 'InvalidArgumentException') throw error
    return await second()
  }
}

/** The name of what the service said, under the error that it was turned into. */
const causeName = (error: unknown): string => errorOf(errorOf(error).cause).name

/**
 * The lineage of a Kinesis stream. The function needs `kinesis:ListShards`, `kinesis:GetShardIterator` and
 * `kinesis:GetRecords`.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_ListShards.html
 * @example
 * const lineage = kinesisLineage({ client: createKinesisClient(), streamName: 'orders-by-customer', clock: systemClock })
 */
export function kinesisLineage(options: KinesisLineageOptions): PartitionLineage {
  return new KinesisLineage(options)
}
