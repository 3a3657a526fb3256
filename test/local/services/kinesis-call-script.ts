/**
 * One script of calls through the SDK that any endpoint that claims to be Kinesis can be put to, so that two of them can be
 * compared call by call. What endpoints choose freely (sequence numbers, iterators, times, accounts) is left out or replaced by its
 * order or its place; exceptions are recorded by name.
 */
import {
  AddTagsToStreamCommand,
  CreateStreamCommand,
  DecreaseStreamRetentionPeriodCommand,
  DeleteStreamCommand,
  DescribeStreamCommand,
  DescribeStreamSummaryCommand,
  GetRecordsCommand,
  type GetRecordsCommandOutput,
  GetShardIteratorCommand,
  IncreaseStreamRetentionPeriodCommand,
  type KinesisClient,
  ListShardsCommand,
  ListStreamsCommand,
  ListTagsForStreamCommand,
  MergeShardsCommand,
  PutRecordCommand,
  PutRecordsCommand,
  RemoveTagsFromStreamCommand,
  type Shard,
  type ShardFilter,
  type ShardIteratorType,
  SplitShardCommand,
  UpdateShardCountCommand,
  waitUntilStreamExists,
} from '@aws-sdk/client-kinesis'

/** A call, and what came of it. */
export interface CallOutcome {
  readonly call: string
  readonly outcome: unknown
}

/** Runs the script on a stream of the given name, which must not exist, and deletes it. */
export async function runKinesisCalls(client: KinesisClient, StreamName: string): Promise<CallOutcome[]> {
  const outcomes: CallOutcome[] = []
  const note = async (call: string, run: () => Promise<unknown>) => {
    const outcome = await run().catch((error: unknown) => ({ exception: (error as Error).name }))
    outcomes.push({ call, outcome })
  }
  const ready = () => waitUntilStreamExists({ client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }, { StreamName })

  await note('describe a stream that is not there', () => client.send(new DescribeStreamCommand({ StreamName })))
  await client.send(new CreateStreamCommand({ StreamName, ShardCount: 2 }))
  await ready()
  await note('create it again', () => client.send(new CreateStreamCommand({ StreamName, ShardCount: 2 })))
  await note('summary', async () => {
    const { StreamDescriptionSummary: s } = await client.send(new DescribeStreamSummaryCommand({ StreamName }))
    return { status: s?.StreamStatus, open: s?.OpenShardCount, hours: s?.RetentionPeriodHours }
  })
  await note('list streams', async () =>
    (await client.send(new ListStreamsCommand({}))).StreamNames?.includes(StreamName),
  )
  await note('tags', async () => {
    await client.send(new AddTagsToStreamCommand({ StreamName, Tags: { team: 'a' } }))
    return (await client.send(new ListTagsForStreamCommand({ StreamName }))).Tags
  })
  await note('retention', () =>
    client.send(new IncreaseStreamRetentionPeriodCommand({ StreamName, RetentionPeriodHours: 48 })).then(() => 'done'),
  )
  await note('tags removed', async () => {
    await client.send(new RemoveTagsFromStreamCommand({ StreamName, TagKeys: ['team'] }))
    return (await client.send(new ListTagsForStreamCommand({ StreamName }))).Tags
  })
  await note('shorter retention', async () => {
    await client.send(new DecreaseStreamRetentionPeriodCommand({ StreamName, RetentionPeriodHours: 24 }))
    const { StreamDescriptionSummary: s } = await client.send(new DescribeStreamSummaryCommand({ StreamName }))
    return s?.RetentionPeriodHours
  })
  await note('retention below a day', () =>
    client.send(new DecreaseStreamRetentionPeriodCommand({ StreamName, RetentionPeriodHours: 23 })),
  )
  await noteRecords(client, StreamName, note)
  await noteRefusals(client, StreamName, note)
  await noteResharding(client, StreamName, note, ready)
  await note('delete', () => client.send(new DeleteStreamCommand({ StreamName })).then(() => 'done'))
  await note('delete what is not there', () =>
    client.send(new DeleteStreamCommand({ StreamName: `${StreamName}-none` })),
  )
  return outcomes
}

type Note = (call: string, run: () => Promise<unknown>) => Promise<void>

async function noteRecords(client: KinesisClient, StreamName: string, note: Note): Promise<void> {
  const sequences: string[] = []
  await note('put one by one', async () => {
    const shardIds: (string | undefined)[] = []
    for (const [i, PartitionKey] of ['a', 'b', 'c', 'ключ', '🗝️'].entries()) {
      const put = await client.send(new PutRecordCommand({ StreamName, PartitionKey, Data: Buffer.from([i, 0xff, 0]) }))
      shardIds.push(put.ShardId)
      sequences.push(put.SequenceNumber ?? '')
    }
    return shardIds
  })
  await note('put many', async () => {
    const Records = [
      { PartitionKey: 'x', Data: Buffer.from('low'), ExplicitHashKey: '0' },
      { PartitionKey: 'x', Data: Buffer.from('high'), ExplicitHashKey: String((1n << 128n) - 1n) },
      { PartitionKey: 'x', Data: Buffer.alloc(0), ExplicitHashKey: '1' },
    ]
    const answer = await client.send(new PutRecordsCommand({ StreamName, Records }))
    return { failed: answer.FailedRecordCount, shards: answer.Records?.map(({ ShardId }) => ShardId) }
  })
  const read = async (shard: number, ShardIteratorType: ShardIteratorType, more: object = {}) => {
    const ShardId = `shardId-${String(shard).padStart(12, '0')}`
    const { ShardIterator } = await client.send(
      new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType, ...more }),
    )
    return summarise(await client.send(new GetRecordsCommand({ ShardIterator })))
  }
  for (const shard of [0, 1]) {
    await note(`read shard ${shard} from its beginning`, () => read(shard, 'TRIM_HORIZON'))
    await note(`read shard ${shard} from its end`, () => read(shard, 'LATEST'))
    await note(`read shard ${shard} since 1970`, () => read(shard, 'AT_TIMESTAMP', { Timestamp: new Date(1_000) }))
  }
  await note('read at a number', () => read(0, 'AT_SEQUENCE_NUMBER', { StartingSequenceNumber: sequences[0] }))
  await note('read after a number', () => read(0, 'AFTER_SEQUENCE_NUMBER', { StartingSequenceNumber: sequences[0] }))
  await note('read at a number of another shard', () =>
    read(1, 'AT_SEQUENCE_NUMBER', { StartingSequenceNumber: sequences[0] }),
  )
  await note('read a shard that is not there', () => read(9, 'TRIM_HORIZON'))
  await note('put above the range of hash keys', () =>
    client.send(
      new PutRecordCommand({
        StreamName,
        PartitionKey: 'x',
        Data: Buffer.alloc(1),
        ExplicitHashKey: String(1n << 128n),
      }),
    ),
  )
}

async function noteRefusals(client: KinesisClient, StreamName: string, note: Note): Promise<void> {
  const put = (PartitionKey: string, bytes: number, more: object = {}) =>
    client
      .send(new PutRecordCommand({ StreamName, PartitionKey, Data: Buffer.alloc(bytes), ...more }))
      .then(({ ShardId }) => ShardId)
  await note('put one mebibyte, the key counted', () => put('k', 1_048_575))
  await note('put a byte more than one mebibyte', () => put('k', 1_048_576))
  await note('put with the longest key', () => put('k'.repeat(256), 1))
  await note('put with a key that is too long', () => put('k'.repeat(257), 1))
  await note('put with an empty key', () => put('', 1))
  await note('put with a hash key that is no number', () => put('k', 1, { ExplicitHashKey: '0x1' }))
  await note('put 501 records', () => {
    const Records = Array.from({ length: 501 }, () => ({ PartitionKey: 'k', Data: Buffer.alloc(1) }))
    return client.send(new PutRecordsCommand({ StreamName, Records })).then(() => 'accepted')
  })
  await note('put no records', () =>
    client.send(new PutRecordsCommand({ StreamName, Records: [] })).then(() => 'accepted'),
  )
  await note('put to a stream that is not there', () =>
    client.send(new PutRecordCommand({ StreamName: `${StreamName}-none`, PartitionKey: 'k', Data: Buffer.alloc(1) })),
  )
  const ShardId = 'shardId-000000000000'
  const iteratorOf = (ShardIteratorType: ShardIteratorType, more: object = {}) =>
    client.send(new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType, ...more }))
  await note('iterator after no number', () => iteratorOf('AFTER_SEQUENCE_NUMBER'))
  await note('iterator after what is no number', () =>
    iteratorOf('AFTER_SEQUENCE_NUMBER', { StartingSequenceNumber: 'first' }),
  )
  await note('iterator at no time', () => iteratorOf('AT_TIMESTAMP'))
  await note('read with an iterator that is none', () => client.send(new GetRecordsCommand({ ShardIterator: 'x' })))
  await note('read no records', async () => {
    const { ShardIterator } = await iteratorOf('TRIM_HORIZON')
    return client.send(new GetRecordsCommand({ ShardIterator, Limit: 0 }))
  })
  await note('read one record at a time', async () => {
    const keys: (string | undefined)[] = []
    let { ShardIterator } = await iteratorOf('TRIM_HORIZON')
    for (let reads = 0; reads < 3; reads += 1) {
      const answer = await client.send(new GetRecordsCommand({ ShardIterator, Limit: 1 }))
      keys.push(...(answer.Records ?? []).map(({ PartitionKey }) => PartitionKey))
      ShardIterator = answer.NextShardIterator
    }
    return keys
  })
  await note('create a stream with a bad name', () =>
    client.send(new CreateStreamCommand({ StreamName: 'no spaces', ShardCount: 1 })),
  )
  await note('create a stream without shards', () =>
    client.send(new CreateStreamCommand({ StreamName: `${StreamName}-none`, ShardCount: 0 })),
  )
}

async function noteListing(client: KinesisClient, StreamName: string, note: Note): Promise<void> {
  const idsOf = (shards: readonly Shard[] | undefined) => shards?.map(({ ShardId }) => Number(ShardId?.slice(-12)))
  const list = async (ShardFilter: ShardFilter) =>
    idsOf((await client.send(new ListShardsCommand({ StreamName, ShardFilter }))).Shards)
  await note('list in pages of two', async () => {
    const pages: unknown[] = []
    let input: { StreamName?: string; NextToken?: string } = { StreamName }
    for (;;) {
      const page = await client.send(new ListShardsCommand({ ...input, MaxResults: 2 }))
      pages.push(idsOf(page.Shards))
      if (page.NextToken === undefined) return pages
      input = { NextToken: page.NextToken }
    }
  })
  await note('list with name and token', async () => {
    const { NextToken } = await client.send(new ListShardsCommand({ StreamName, MaxResults: 1 }))
    return client.send(new ListShardsCommand({ StreamName, NextToken }))
  })
  await note('list after a shard', async () => {
    const ExclusiveStartShardId = 'shardId-000000000001'
    return idsOf((await client.send(new ListShardsCommand({ StreamName, ExclusiveStartShardId }))).Shards)
  })
  await note('list what is open', () => list({ Type: 'AT_LATEST' }))
  await note('list from the oldest record on', () => list({ Type: 'FROM_TRIM_HORIZON' }))
  await note('list what was open at the oldest record', () => list({ Type: 'AT_TRIM_HORIZON' }))
  await note('list behind a shard', () => list({ Type: 'AFTER_SHARD_ID', ShardId: 'shardId-000000000001' }))
  await note('describe in pages', async () => {
    const { StreamDescription: first } = await client.send(new DescribeStreamCommand({ StreamName, Limit: 2 }))
    return { shards: idsOf(first?.Shards), more: first?.HasMoreShards }
  })
  await note('merge shards that are not adjacent', () => {
    const pair = { ShardToMerge: 'shardId-000000000002', AdjacentShardToMerge: 'shardId-000000000001' }
    return client.send(new MergeShardsCommand({ StreamName, ...pair }))
  })
  await note('split outside of its range', () => {
    const ShardToSplit = 'shardId-000000000001'
    return client.send(new SplitShardCommand({ StreamName, ShardToSplit, NewStartingHashKey: '1' }))
  })
  await note('split a shard that is not there', () => {
    const ShardToSplit = 'shardId-000000000099'
    return client.send(new SplitShardCommand({ StreamName, ShardToSplit, NewStartingHashKey: '1' }))
  })
}

async function noteResharding(
  client: KinesisClient,
  StreamName: string,
  note: Note,
  ready: () => Promise<unknown>,
): Promise<void> {
  const list = async () => (await client.send(new ListShardsCommand({ StreamName }))).Shards?.map(shape)
  const NewStartingHashKey = String(1n << 126n)
  await note('split', async () => {
    await client.send(new SplitShardCommand({ StreamName, ShardToSplit: 'shardId-000000000000', NewStartingHashKey }))
    await ready()
    return list()
  })
  await noteListing(client, StreamName, note)
  await note('split a closed shard', () =>
    client.send(new SplitShardCommand({ StreamName, ShardToSplit: 'shardId-000000000000', NewStartingHashKey })),
  )
  await note('read the closed shard to its end', async () => {
    const iterator = await client.send(
      new GetShardIteratorCommand({ StreamName, ShardId: 'shardId-000000000000', ShardIteratorType: 'TRIM_HORIZON' }),
    )
    let count = 0
    for (let ShardIterator = iterator.ShardIterator; ; ) {
      const answer = await client.send(new GetRecordsCommand({ ShardIterator }))
      count += answer.Records?.length ?? 0
      if (!answer.NextShardIterator) return { count, children: answer.ChildShards?.map(({ ShardId }) => ShardId) }
      ShardIterator = answer.NextShardIterator
    }
  })
  await note('merge', async () => {
    const pair = { ShardToMerge: 'shardId-000000000002', AdjacentShardToMerge: 'shardId-000000000003' }
    await client.send(new MergeShardsCommand({ StreamName, ...pair }))
    await ready()
    return (await list())?.length
  })
  await note('scale', async () => {
    await client.send(new UpdateShardCountCommand({ StreamName, TargetShardCount: 4, ScalingType: 'UNIFORM_SCALING' }))
    await ready()
    const { Shards } = await client.send(new ListShardsCommand({ StreamName, ShardFilter: { Type: 'AT_LATEST' } }))
    return Shards?.length
  })
}

function shape(shard: Shard) {
  return {
    id: shard.ShardId,
    parents: [shard.ParentShardId, shard.AdjacentParentShardId].filter(Boolean),
    range: shard.HashKeyRange,
    closed: shard.SequenceNumberRange?.EndingSequenceNumber !== undefined,
  }
}

function summarise(answer: GetRecordsCommandOutput) {
  const records = answer.Records ?? []
  const numbers = records.map(({ SequenceNumber }) => BigInt(SequenceNumber ?? 0))
  return {
    records: records.map(({ PartitionKey, Data }) => [PartitionKey, Buffer.from(Data ?? []).toString('hex')]),
    increasing: numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0n)),
    arrived: records.every(
      ({ ApproximateArrivalTimestamp: t }) => t instanceof Date && t.getTime() > 1_600_000_000_000,
    ),
    goesOn: Boolean(answer.NextShardIterator),
    behindMs: answer.MillisBehindLatest,
  }
}
