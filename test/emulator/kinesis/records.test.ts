import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { exceptionOf, iterator, modelWithStream, put, readOn, readShard, START_MS, shards } from './model-fixture.ts'

/** Which shard takes a key, computed apart from the model: MD5 as an integer, looked up in the listed ranges. */
function expectedShard(ranges: ReturnType<typeof shards>, partitionKey: string): string | undefined {
  const digest = createHash('md5').update(partitionKey, 'utf8').digest()
  const hashKey = digest.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  return ranges.find(
    ({ HashKeyRange }) =>
      BigInt(HashKeyRange.StartingHashKey) <= hashKey && hashKey <= BigInt(HashKeyRange.EndingHashKey),
  )?.ShardId
}

describe('putting records', () => {
  it('routes each key by the MD5 of its UTF-8 bytes', () => {
    const { model } = modelWithStream(7)
    const ranges = shards(model)
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 50, unit: 'grapheme' }), (partitionKey) => {
        fc.pre(partitionKey.length <= 256)
        expect(put(model, partitionKey).ShardId).toBe(expectedShard(ranges, partitionKey))
      }),
    )
  })

  it('routes by ExplicitHashKey instead when there is one', () => {
    const { model } = modelWithStream(4)
    const placed = shards(model).flatMap(({ HashKeyRange }) => [
      put(model, 'k', '', HashKeyRange.StartingHashKey).ShardId,
      put(model, 'k', '', HashKeyRange.EndingHashKey).ShardId,
    ])
    expect(placed).toEqual(shards(model).flatMap(({ ShardId }) => [ShardId, ShardId]))
    expect(exceptionOf(() => put(model, 'k', '', String(1n << 128n)))).toBe('InvalidArgumentException')
    expect(exceptionOf(() => put(model, 'k', '', '01'))).toBe('ValidationException')
    expect(exceptionOf(() => put(model, 'k', '', '0x1'))).toBe('ValidationException')
    expect(exceptionOf(() => put(model, 'k', '', '9'.repeat(40)))).toBe('ValidationException')
  })

  it('gives unique sequence numbers of 56 digits that strictly increase within a shard and are not dense', () => {
    const { clock, model } = modelWithStream(3)
    const byShard = new Map<string, bigint[]>()
    for (let i = 0; i < 300; i += 1) {
      if (i % 7 === 0) clock.advance(400)
      const { ShardId, SequenceNumber } = put(model, `key-${i}`)
      expect(SequenceNumber).toMatch(/^\d{56}$/)
      byShard.set(ShardId, [...(byShard.get(ShardId) ?? []), BigInt(SequenceNumber)])
    }
    for (const numbers of byShard.values()) {
      numbers.slice(1).forEach((number, i) => {
        expect(number - (numbers[i] ?? 0n)).toBeGreaterThan(1n)
      })
    }
    expect(new Set([...byShard.values()].flat()).size).toBe(300)
  })

  it('reads back keys, bytes, numbers and arrival times in order', () => {
    const { clock, model } = modelWithStream(1)
    const placed = ['a', 'b', 'c'].map((key, i) => {
      clock.advance(10)
      return { key, i, ...put(model, key, `data-${i}`) }
    })
    expect(readShard(model, 'shardId-000000000000').records).toEqual(
      placed.map(({ key, i, SequenceNumber }) => ({
        SequenceNumber,
        ApproximateArrivalTimestamp: new Date(START_MS + 10 * (i + 1)),
        Data: Buffer.from(`data-${i}`),
        PartitionKey: key,
        EncryptionType: 'NONE',
      })),
    )
  })

  it('refuses the whole PutRecords above 500 records, above 10 MiB, or with one record that is too large', () => {
    const { model } = modelWithStream(1)
    const records = (count: number, bytes: number) =>
      Array.from({ length: count }, () => ({ PartitionKey: 'k', Data: Buffer.alloc(bytes) }))
    const putAll = (Records: ReturnType<typeof records>) => () => model.call('PutRecords', { StreamName: 's', Records })
    expect(exceptionOf(putAll(records(501, 1)))).toBe('ValidationException')
    expect(exceptionOf(putAll([]))).toBe('ValidationException')
    expect(exceptionOf(putAll(records(11, 1_048_575)))).toBe('InvalidArgumentException')
    expect(exceptionOf(putAll([...records(1, 1), ...records(1, 1_048_576)]))).toBe('InvalidArgumentException')
    expect(readShard(model, 'shardId-000000000000').records).toEqual([])
    expect(putAll(records(10, 1_048_575))()).toMatchObject({ FailedRecordCount: 0 })
  })

  it('takes larger records where MaxRecordSizeInKiB says so', () => {
    const { model } = modelWithStream(1)
    const large = 'x'.repeat(2 * 1_048_576)
    expect(exceptionOf(() => put(model, 'k', large))).toBe('InvalidArgumentException')
    const { StreamARN } = model.call('DescribeStreamSummary', { StreamName: 's' }).StreamDescriptionSummary
    model.call('UpdateMaxRecordSize', { StreamARN, MaxRecordSizeInKiB: 10_240 })
    put(model, 'k', large)
    expect(readShard(model, 'shardId-000000000000').records[0]?.Data).toHaveLength(large.length)
  })

  it('accepts SequenceNumberForOrdering only from this stream', () => {
    const { model } = modelWithStream(1)
    const ordered = (SequenceNumberForOrdering: string) =>
      model.call('PutRecord', { StreamName: 's', PartitionKey: 'k', Data: Buffer.alloc(1), SequenceNumberForOrdering })
    const first = put(model, 'k').SequenceNumber
    const second = ordered(first).SequenceNumber
    expect(BigInt(second)).toBeGreaterThan(BigInt(first))
    expect(exceptionOf(() => ordered('12'))).toBe('InvalidArgumentException')
    expect(exceptionOf(() => ordered('twelve'))).toBe('ValidationException')
    expect(exceptionOf(() => ordered(String(BigInt(second) + (1n << 90n))))).toBe('InvalidArgumentException')
  })
})

describe('shard iterators', () => {
  const shard = 'shardId-000000000000'

  function modelOfFive() {
    const { clock, model } = modelWithStream(2)
    const numbers = [0, 1, 2, 3, 4].map((i) => {
      clock.advance(1_000)
      return put(model, 'k', String(i), '0').SequenceNumber
    })
    const read = (
      type: 'AT_SEQUENCE_NUMBER' | 'AFTER_SEQUENCE_NUMBER' | 'AT_TIMESTAMP',
      start: object,
      ShardId = shard,
    ) => {
      const { ShardIterator } = model.call('GetShardIterator', {
        StreamName: 's',
        ShardId,
        ShardIteratorType: type,
        ...start,
      })
      return readOn(model, ShardIterator).records.map(({ Data }) => Data.toString())
    }
    return { clock, model, numbers, read }
  }

  it('begin at, or after, a sequence number', () => {
    const { numbers, read } = modelOfFive()
    numbers.forEach((StartingSequenceNumber, i) => {
      const rest = ['0', '1', '2', '3', '4'].slice(i)
      expect(read('AT_SEQUENCE_NUMBER', { StartingSequenceNumber })).toEqual(rest)
      expect(read('AFTER_SEQUENCE_NUMBER', { StartingSequenceNumber })).toEqual(rest.slice(1))
    })
  })

  it('begin at the starting number that the shard lists', () => {
    const { model, read } = modelOfFive()
    const StartingSequenceNumber = shards(model)[0]?.SequenceNumberRange.StartingSequenceNumber
    expect(read('AT_SEQUENCE_NUMBER', { StartingSequenceNumber })).toHaveLength(5)
    expect(read('AFTER_SEQUENCE_NUMBER', { StartingSequenceNumber })).toHaveLength(5)
  })

  it('begin at the first record that arrived at or after a time', () => {
    const { read } = modelOfFive()
    const at = (ms: number) => read('AT_TIMESTAMP', { Timestamp: new Date(START_MS + ms) })
    expect([at(0), at(3_000), at(3_001), at(5_000)].map(({ length }) => length)).toEqual([5, 3, 2, 1])
    expect(exceptionOf(() => at(5_001))).toBe('InvalidArgumentException')
  })

  it('at LATEST see only what comes later', () => {
    const { model } = modelOfFive()
    const latest = iterator(model, shard, 'LATEST')
    expect(readOn(model, latest).records).toEqual([])
    put(model, 'k', 'new', '0')
    expect(readOn(model, latest).records.map(({ Data }) => Data.toString())).toEqual(['new'])
  })

  it('refuse a number of another shard, one that was never given, and garbage', () => {
    const { model, numbers, read } = modelOfFive()
    const at = (StartingSequenceNumber: string | undefined, shardId?: string) =>
      exceptionOf(() => read('AT_SEQUENCE_NUMBER', { StartingSequenceNumber }, shardId))
    expect(at(numbers[0], 'shardId-000000000001')).toBe('InvalidArgumentException')
    expect(at(String(BigInt(numbers[4] ?? 0) + (1n << 84n)))).toBe('InvalidArgumentException')
    expect(at('garbage')).toBe('ValidationException')
    expect(at('12')).toBe('InvalidArgumentException')
    expect(at(undefined)).toBe('InvalidArgumentException')
    expect(exceptionOf(() => iterator(model, 'shardId-000000000009'))).toBe('ResourceNotFoundException')
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator: 'garbage' }))).toBe('InvalidArgumentException')
  })

  it('live for five minutes', () => {
    const { clock, model } = modelOfFive()
    const ShardIterator = iterator(model, shard)
    clock.advance(300_000)
    expect(model.call('GetRecords', { ShardIterator }).Records).toHaveLength(5)
    clock.advance(1)
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator }))).toBe('ExpiredIteratorException')
  })

  it('do not outlive their stream, even if another takes its name', () => {
    const { clock, model } = modelOfFive()
    const ShardIterator = iterator(model, shard)
    model.call('DeleteStream', { StreamName: 's' })
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator }))).toBe('ResourceNotFoundException')
    clock.advance(1)
    model.call('CreateStream', { StreamName: 's', ShardCount: 1 })
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator }))).toBe('ResourceNotFoundException')
  })
})

describe('reading records', () => {
  it('honours Limit and tells how far behind the answer ends', () => {
    const { clock, model } = modelWithStream(1)
    for (let i = 0; i < 5; i += 1) {
      put(model, 'k', String(i))
      clock.advance(1_000)
    }
    const first = model.call('GetRecords', { ShardIterator: iterator(model, 'shardId-000000000000'), Limit: 2 })
    expect(first.Records).toHaveLength(2)
    expect(first.MillisBehindLatest).toBe(4_000)
    const rest = model.call('GetRecords', { ShardIterator: first.NextShardIterator ?? '', Limit: 3 })
    expect(rest.Records.map(({ Data }) => Data.toString())).toEqual(['2', '3', '4'])
    expect(rest.MillisBehindLatest).toBe(0)
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator: 'x', Limit: 10_001 }))).toBe(
      'InvalidArgumentException',
    )
    expect(exceptionOf(() => model.call('GetRecords', { ShardIterator: 'x', Limit: 0 }))).toBe('ValidationException')
  })

  it('answers at most 10,000 records and 10 MiB', () => {
    const { model } = modelWithStream(1)
    const Records = Array.from({ length: 500 }, () => ({ PartitionKey: 'k', Data: Buffer.alloc(0) }))
    for (let i = 0; i < 21; i += 1) model.call('PutRecords', { StreamName: 's', Records })
    expect(model.call('GetRecords', { ShardIterator: iterator(model, 'shardId-000000000000') }).Records).toHaveLength(
      10_000,
    )

    const large = modelWithStream(1).model
    for (let i = 0; i < 11; i += 1) put(large, 'k', 'x'.repeat(1_048_575))
    expect(large.call('GetRecords', { ShardIterator: iterator(large, 'shardId-000000000000') }).Records).toHaveLength(
      10,
    )
  })
})
