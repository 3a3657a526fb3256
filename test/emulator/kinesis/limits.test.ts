import { exceptionOf, iterator, modelWithStream, put, START_MS, shards } from './model-fixture.ts'

const HOUR_MS = 3_600_000
const shard = 'shardId-000000000000'

describe('retention', () => {
  it('takes records that are older than the period, and no others', () => {
    const { clock, model } = modelWithStream(1)
    const old = put(model, 'k', 'old').SequenceNumber
    clock.advance(HOUR_MS)
    put(model, 'k', 'new')
    const read = () =>
      model.call('GetRecords', { ShardIterator: iterator(model, shard) }).Records.map(({ Data }) => Data.toString())
    clock.advance(23 * HOUR_MS)
    expect(read()).toEqual(['old', 'new'])
    clock.advance(1)
    expect(read()).toEqual(['new'])
    const { ShardIterator } = model.call('GetShardIterator', {
      StreamName: 's',
      ShardId: shard,
      ShardIteratorType: 'AT_SEQUENCE_NUMBER',
      StartingSequenceNumber: old,
    })
    expect(model.call('GetRecords', { ShardIterator }).Records.map(({ Data }) => Data.toString())).toEqual(['new'])
  })

  it('is lengthened and shortened by the operation of that name only', () => {
    const { clock, model } = modelWithStream(1)
    const increase = (RetentionPeriodHours: number) => () =>
      model.call('IncreaseStreamRetentionPeriod', { StreamName: 's', RetentionPeriodHours })
    const decrease = (RetentionPeriodHours: number) => () =>
      model.call('DecreaseStreamRetentionPeriod', { StreamName: 's', RetentionPeriodHours })
    put(model, 'k')
    increase(168)()
    clock.advance(100 * HOUR_MS)
    expect(model.call('GetRecords', { ShardIterator: iterator(model, shard) }).Records).toHaveLength(1)
    for (const call of [increase(100), decrease(200), decrease(23), increase(8_761)]) {
      expect(exceptionOf(call)).toBe('InvalidArgumentException')
    }
    decrease(99)()
    expect(model.call('GetRecords', { ShardIterator: iterator(model, shard) }).Records).toHaveLength(0)
  })

  it('takes a closed shard from the list, and a reader that still holds an iterator is led to the children', () => {
    const { clock, model } = modelWithStream(1)
    put(model, 'k')
    model.call('SplitShard', { StreamName: 's', ShardToSplit: shard, NewStartingHashKey: String(1n << 127n) })
    clock.advance(24 * HOUR_MS)
    expect(shards(model)).toHaveLength(3)
    const held = iterator(model, shard)
    clock.advance(1)
    expect(shards(model).map(({ ShardId }) => ShardId)).toEqual(['shardId-000000000001', 'shardId-000000000002'])
    expect(exceptionOf(() => iterator(model, shard))).toBe('ResourceNotFoundException')
    const answer = model.call('GetRecords', { ShardIterator: held })
    expect(answer.Records).toEqual([])
    expect(answer.NextShardIterator).toBeNull()
    expect(answer.ChildShards).toHaveLength(2)
  })
})

describe('throughput, where it is enforced', () => {
  const putMany = (model: ReturnType<typeof modelWithStream>['model'], count: number, bytes: number, hash = '0') =>
    model.call('PutRecords', {
      StreamName: 's',
      Records: Array.from({ length: count }, () => ({
        PartitionKey: 'k',
        Data: Buffer.alloc(bytes),
        ExplicitHashKey: hash,
      })),
    })

  it('takes 1,000 records a second and shard, refuses the rest one by one, and recovers', () => {
    const { clock, model } = modelWithStream(2, { enforceLimits: true })
    putMany(model, 500, 1)
    putMany(model, 450, 1)
    const answer = putMany(model, 100, 1)
    expect(answer.FailedRecordCount).toBe(50)
    expect(answer.Records.map(({ ErrorCode }) => ErrorCode)).toEqual([
      ...Array(50).fill(undefined),
      ...Array(50).fill('ProvisionedThroughputExceededException'),
    ])
    expect(answer.Records.at(-1)?.ErrorMessage).toContain(shard)
    expect(model.call('GetRecords', { ShardIterator: iterator(model, shard) }).Records).toHaveLength(1_000)
    expect(putMany(model, 500, 1, String((1n << 128n) - 1n)).FailedRecordCount).toBe(0)
    clock.advance(100)
    expect(putMany(model, 200, 1).FailedRecordCount).toBe(100)
  })

  it('takes 1 MiB a second and shard; a smaller record behind a refused one still passes', () => {
    const { clock, model } = modelWithStream(1, { enforceLimits: true })
    const half = { PartitionKey: 'k', Data: Buffer.alloc(524_288) }
    const small = { PartitionKey: 'k', Data: Buffer.alloc(10) }
    const answer = model.call('PutRecords', { StreamName: 's', Records: [half, half, small] })
    expect(answer.Records.map(({ ErrorCode }) => ErrorCode !== undefined)).toEqual([false, true, false])
    expect(exceptionOf(() => put(model, 'k', 'x'.repeat(600_000)))).toBe('ProvisionedThroughputExceededException')
    clock.advance(1_000)
    expect(put(model, 'k', 'x'.repeat(600_000)).ShardId).toBe(shard)
  })

  it('answers five GetRecords a second and shard', () => {
    const { clock, model } = modelWithStream(1, { enforceLimits: true })
    const read = () => model.call('GetRecords', { ShardIterator: iterator(model, shard) })
    for (let i = 0; i < 5; i += 1) read()
    expect(exceptionOf(read)).toBe('ProvisionedThroughputExceededException')
    clock.advance(200)
    read()
    expect(exceptionOf(read)).toBe('ProvisionedThroughputExceededException')
  })

  it('reads 2 MiB a second: 10 MiB at once are paid for over the next seconds', () => {
    const { clock, model } = modelWithStream(1, { enforceLimits: true })
    for (let i = 0; i < 10; i += 1) {
      put(model, 'k', 'x'.repeat(1_048_575))
      clock.advance(1_000)
    }
    const read = () => model.call('GetRecords', { ShardIterator: iterator(model, shard) })
    expect(read().Records).toHaveLength(10)
    clock.advance(3_900)
    expect(exceptionOf(read)).toBe('ProvisionedThroughputExceededException')
    clock.advance(1_100)
    expect(read().Records).toHaveLength(10)
  })

  it('lets UpdateShardCount at most double and at least halve', () => {
    const { model } = modelWithStream(4, { enforceLimits: true })
    const scale = (TargetShardCount: number) => () =>
      model.call('UpdateShardCount', { StreamName: 's', TargetShardCount, ScalingType: 'UNIFORM_SCALING' })
    expect(exceptionOf(scale(9))).toBe('InvalidArgumentException')
    expect(exceptionOf(scale(1))).toBe('InvalidArgumentException')
    expect(scale(8)()).toMatchObject({ TargetShardCount: 8 })
  })

  it('is not enforced unless asked', () => {
    const { model } = modelWithStream(1)
    for (let i = 0; i < 10; i += 1) expect(putMany(model, 500, 1_000).FailedRecordCount).toBe(0)
    expect(
      model.call('DescribeStreamSummary', { StreamName: 's' }).StreamDescriptionSummary.StreamCreationTimestamp,
    ).toEqual(new Date(START_MS))
  })
})
