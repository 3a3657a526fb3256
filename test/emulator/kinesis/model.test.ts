import {
  createKinesisModel,
  type KinesisEffect,
  type KinesisOperationName,
} from '../../../lib/emulator/kinesis/index.ts'
import { exceptionOf, modelWithStream, put, readShard, START_MS, shards, virtualClock } from './model-fixture.ts'

describe('streams', () => {
  it('are created with the mode, shards and settings that were asked for', () => {
    const { model } = modelWithStream(3)
    model.call('CreateStream', {
      StreamName: 'd',
      StreamModeDetails: { StreamMode: 'ON_DEMAND' },
      MaxRecordSizeInKiB: 2_048,
    })
    const summary = (StreamName: string) => model.call('DescribeStreamSummary', { StreamName }).StreamDescriptionSummary
    expect(summary('s')).toEqual({
      StreamName: 's',
      StreamARN: 'arn:aws:kinesis:us-east-1:000000000000:stream/s',
      StreamStatus: 'ACTIVE',
      StreamModeDetails: { StreamMode: 'PROVISIONED' },
      RetentionPeriodHours: 24,
      StreamCreationTimestamp: new Date(START_MS),
      EnhancedMonitoring: [{ ShardLevelMetrics: [] }],
      EncryptionType: 'NONE',
      OpenShardCount: 3,
      ConsumerCount: 0,
      MaxRecordSizeInKiB: 1_024,
      RecordDistributionStrategy: 'USER_PARTITION_KEY',
    })
    expect(summary('d')).toMatchObject({ OpenShardCount: 4, MaxRecordSizeInKiB: 2_048 })
  })

  it('are refused with the exception that AWS names', () => {
    const { model } = modelWithStream(1)
    const create = (input: object) => exceptionOf(() => model.call('CreateStream', { StreamName: 'n', ...input }))
    expect(create({ StreamName: 's', ShardCount: 1 })).toBe('ResourceInUseException')
    expect(create({ StreamName: 'no spaces', ShardCount: 1 })).toBe('ValidationException')
    expect(create({})).toBe('ValidationException')
    expect(create({ ShardCount: 0 })).toBe('ValidationException')
    expect(create({ ShardCount: 1, MaxRecordSizeInKiB: 10_241 })).toBe('ValidationException')
    expect(create({ ShardCount: 1, StreamModeDetails: { StreamMode: 'ON_DEMAND' } })).toBe('ValidationException')
    expect(exceptionOf(() => put(createKinesisModel({ clock: virtualClock() }), 'k'))).toBe('ResourceNotFoundException')
  })

  it('are found by name or ARN, and not by an ARN of another region', () => {
    const { model } = modelWithStream(1, { region: 'eu-central-1', accountId: '123456789012' })
    const describe = (input: object) => () =>
      model.call('DescribeStreamSummary', input).StreamDescriptionSummary.StreamName
    const StreamARN = 'arn:aws:kinesis:eu-central-1:123456789012:stream/s'
    expect(describe({ StreamARN })()).toBe('s')
    expect(describe({ StreamARN, StreamName: 's' })()).toBe('s')
    expect(exceptionOf(describe({ StreamARN, StreamName: 't' }))).toBe('InvalidArgumentException')
    expect(exceptionOf(describe({ StreamARN: StreamARN.replace('eu-', 'us-') }))).toBe('ResourceNotFoundException')
    expect(exceptionOf(describe({}))).toBe('InvalidArgumentException')
  })

  it('are listed in pages by name, and no more once deleted', () => {
    const model = createKinesisModel({ clock: virtualClock() })
    for (const StreamName of ['c', 'a', 'b']) model.call('CreateStream', { StreamName, ShardCount: 1 })
    const first = model.call('ListStreams', { Limit: 2 })
    expect(first).toMatchObject({ StreamNames: ['a', 'b'], HasMoreStreams: true })
    expect(model.call('ListStreams', { NextToken: first.NextToken })).toMatchObject({
      StreamNames: ['c'],
      HasMoreStreams: false,
      StreamSummaries: [{ StreamName: 'c', StreamStatus: 'ACTIVE' }],
    })
    model.call('DeleteStream', { StreamName: 'b' })
    expect(model.call('ListStreams', {}).StreamNames).toEqual(['a', 'c'])
  })

  it('carry tags', () => {
    const { model } = modelWithStream(1)
    model.call('AddTagsToStream', { StreamName: 's', Tags: { b: '2', a: '1', c: '3' } })
    model.call('RemoveTagsFromStream', { StreamName: 's', TagKeys: ['b'] })
    expect(model.call('ListTagsForStream', { StreamName: 's', Limit: 1 })).toEqual({
      Tags: [{ Key: 'a', Value: '1' }],
      HasMoreTags: true,
    })
    const Tags = Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`k${i}`, '']))
    expect(exceptionOf(() => model.call('AddTagsToStream', { StreamName: 's', Tags }))).toBe('InvalidArgumentException')
  })
})

describe('listing shards', () => {
  it('pages with tokens that expire after 300 seconds and keep the filter', () => {
    const { clock, model } = modelWithStream(5)
    const ShardFilter = { Type: 'AFTER_SHARD_ID', ShardId: 'shardId-000000000000' } as const
    const first = model.call('ListShards', { StreamName: 's', MaxResults: 3, ShardFilter })
    expect(first.Shards.map(({ ShardId }) => ShardId.at(-1))).toEqual(['1', '2', '3'])
    clock.advance(300_000)
    const { NextToken } = first
    const rest = model.call('ListShards', { NextToken })
    expect(rest.Shards.map(({ ShardId }) => ShardId.at(-1))).toEqual(['4'])
    expect(rest.NextToken).toBeUndefined()
    expect(exceptionOf(() => model.call('ListShards', { NextToken, StreamName: 's' }))).toBe('InvalidArgumentException')
    clock.advance(1)
    expect(exceptionOf(() => model.call('ListShards', { NextToken }))).toBe('ExpiredNextTokenException')
  })

  it('filters by what was open when', () => {
    const { clock, model } = modelWithStream(1)
    clock.advance(1_000)
    model.call('UpdateShardCount', { StreamName: 's', TargetShardCount: 2, ScalingType: 'UNIFORM_SCALING' })
    clock.advance(1_000)
    const at = (Type: 'AT_TIMESTAMP' | 'FROM_TIMESTAMP', ms: number) => ({ Type, Timestamp: new Date(START_MS + ms) })
    const list = (ShardFilter: Parameters<typeof model.call<'ListShards'>>[1]['ShardFilter']) =>
      model.call('ListShards', { StreamName: 's', ShardFilter }).Shards.map(({ ShardId }) => Number(ShardId.at(-1)))
    expect(list({ Type: 'FROM_TRIM_HORIZON' })).toEqual([0, 1, 2])
    expect(list({ Type: 'AT_TRIM_HORIZON' })).toEqual([0])
    expect(list({ Type: 'AT_LATEST' })).toEqual([1, 2])
    expect(list(at('AT_TIMESTAMP', 500))).toEqual([0])
    expect(list(at('AT_TIMESTAMP', 1_500))).toEqual([1, 2])
    expect(list(at('FROM_TIMESTAMP', 500))).toEqual([0, 1, 2])
    expect(list(at('FROM_TIMESTAMP', 1_500))).toEqual([1, 2])
    expect(exceptionOf(() => list({ Type: 'AT_TIMESTAMP' }))).toBe('InvalidArgumentException')
  })

  it('describes a stream page by page', () => {
    const { model } = modelWithStream(3)
    const page = (input: object) => model.call('DescribeStream', { StreamName: 's', ...input }).StreamDescription
    expect(page({ Limit: 2 })).toMatchObject({ HasMoreShards: true, Shards: [{}, {}] })
    expect(page({ ExclusiveStartShardId: 'shardId-000000000001' })).toMatchObject({
      HasMoreShards: false,
      Shards: [{ ShardId: 'shardId-000000000002' }],
    })
  })
})

describe('the model', () => {
  it('refuses an operation that it does not have by its name', () => {
    const { model } = modelWithStream(1)
    const call = () => model.call('SubscribeToShard' as KinesisOperationName, {} as never)
    expect(exceptionOf(call)).toBe('UnknownOperationException')
    expect(call).toThrow(/'SubscribeToShard'/)
    expect(exceptionOf(() => model.call('toString' as KinesisOperationName, {} as never))).toBe(
      'UnknownOperationException',
    )
  })

  it('is restored by its effects: the same shards, records and sequence numbers, and the same future', () => {
    const effects: KinesisEffect[] = []
    const { clock, model } = modelWithStream(2, { onEffect: (effect) => effects.push(structuredClone(effect)) })
    for (let i = 0; i < 20; i += 1) put(model, `key-${i}`, String(i))
    clock.advance(5_000)
    model.call('UpdateShardCount', { StreamName: 's', TargetShardCount: 3, ScalingType: 'UNIFORM_SCALING' })
    model.call('AddTagsToStream', { StreamName: 's', Tags: { team: 'a' } })
    model.call('IncreaseStreamRetentionPeriod', { StreamName: 's', RetentionPeriodHours: 48 })
    for (let i = 0; i < 20; i += 1) put(model, `key-${i}`, String(i))

    const restored = createKinesisModel({ clock })
    for (const effect of effects) restored.restore(effect)
    expect(put(restored, 'next')).toEqual(put(model, 'next'))
    for (const input of [{ StreamName: 's' }]) {
      expect(restored.call('DescribeStream', input)).toEqual(model.call('DescribeStream', input))
      expect(restored.call('ListTagsForStream', input)).toEqual(model.call('ListTagsForStream', input))
    }
    for (const { ShardId } of shards(model)) {
      expect(readShard(restored, ShardId).records).toEqual(readShard(model, ShardId).records)
    }
  })
})
