import fc from 'fast-check'
import type { KinesisModel } from '../../../lib/emulator/kinesis/index.ts'
import { exceptionOf, modelWithStream, openShards, put, readShard, shards } from './model-fixture.ts'

const split = (model: KinesisModel, ShardToSplit: string, NewStartingHashKey: bigint) =>
  model.call('SplitShard', { StreamName: 's', ShardToSplit, NewStartingHashKey: String(NewStartingHashKey) })
const merge = (model: KinesisModel, ShardToMerge: string, AdjacentShardToMerge: string) =>
  model.call('MergeShards', { StreamName: 's', ShardToMerge, AdjacentShardToMerge })
const scale = (model: KinesisModel, TargetShardCount: number) =>
  model.call('UpdateShardCount', { StreamName: 's', TargetShardCount, ScalingType: 'UNIFORM_SCALING' })
const id = (index: number) => `shardId-${String(index).padStart(12, '0')}`

/** The ranges of the open shards in order of their hash keys. */
const ranges = (model: KinesisModel) =>
  openShards(model)
    .map(({ HashKeyRange: r }) => [BigInt(r.StartingHashKey), BigInt(r.EndingHashKey)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))

function expectWholeCover(model: KinesisModel): void {
  let next = 0n
  for (const [start, end] of ranges(model)) {
    expect(start).toBe(next)
    next = end + 1n
  }
  expect(next).toBe(1n << 128n)
}

/** Reads every shard from its beginning, parents before children as GetRecords names them. */
function readLineage(model: KinesisModel): { key: string; data: string; sequence: bigint }[] {
  const seen = new Set<string>()
  const waiting = shards(model)
    .filter(({ ParentShardId }) => ParentShardId === undefined)
    .map(({ ShardId }) => ShardId)
  const records: { key: string; data: string; sequence: bigint }[] = []
  for (let shard = waiting.shift(); shard !== undefined; shard = waiting.shift()) {
    seen.add(shard)
    const { records: read, last } = readShard(model, shard, 3)
    records.push(
      ...read.map(({ PartitionKey, Data, SequenceNumber }) => ({
        key: PartitionKey,
        data: Data.toString(),
        sequence: BigInt(SequenceNumber),
      })),
    )
    for (const child of last.ChildShards ?? []) {
      const ready = child.ParentShards.every((parent) => seen.has(parent))
      if (ready && !waiting.includes(child.ShardId)) waiting.push(child.ShardId)
    }
  }
  return records
}

describe('resharding', () => {
  it('keeps every record readable once and every key in order, whatever is split, merged or scaled', () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ puts: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 20 }) }) },
      { weight: 1, arbitrary: fc.record({ split: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ merge: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ scale: fc.integer({ min: 1, max: 9 }) }) },
      { weight: 1, arbitrary: fc.record({ advanceMs: fc.integer({ min: 1, max: 5_000 }) }) },
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 25 }), (shardCount, script) => {
        const { clock, model } = modelWithStream(shardCount)
        const expected = new Map<string, string[]>()
        let count = 0
        for (const action of script) {
          const open = openShards(model)
          if ('puts' in action) {
            for (const k of action.puts) {
              const data = String(count++)
              put(model, `key-${k}`, data)
              expected.set(`key-${k}`, [...(expected.get(`key-${k}`) ?? []), data])
            }
          } else if ('split' in action) {
            const shard = open[action.split % open.length]
            const [start, end] = [
              BigInt(shard?.HashKeyRange.StartingHashKey ?? 0),
              BigInt(shard?.HashKeyRange.EndingHashKey ?? 0),
            ]
            split(model, shard?.ShardId ?? '', (start + end) / 2n + 1n)
          } else if ('merge' in action && open.length > 1) {
            const sorted = [...open].sort((a, b) =>
              BigInt(a.HashKeyRange.StartingHashKey) < BigInt(b.HashKeyRange.StartingHashKey) ? -1 : 1,
            )
            const first = action.merge % (open.length - 1)
            const pair = [sorted[first]?.ShardId ?? '', sorted[first + 1]?.ShardId ?? '']
            if (action.merge % 2 === 0) pair.reverse()
            merge(model, pair[0] ?? '', pair[1] ?? '')
          } else if ('scale' in action) scale(model, action.scale)
          else if ('advanceMs' in action) clock.advance(action.advanceMs)
          expectWholeCover(model)
        }
        const read = readLineage(model)
        expect(read).toHaveLength(count)
        for (const [key, data] of expected) {
          const ofKey = read.filter((record) => record.key === key)
          expect(ofKey.map((record) => record.data)).toEqual(data)
          ofKey.slice(1).forEach(({ sequence }, i) => {
            expect(sequence).toBeGreaterThan(ofKey[i]?.sequence ?? 0n)
          })
        }
      }),
      { numRuns: 150 },
    )
  })

  it('ends a closed shard with a null iterator and its children, and an open one never', () => {
    const { model } = modelWithStream(1)
    put(model, 'k', 'before')
    expect(readShard(model, id(0)).last.NextShardIterator).not.toBeNull()
    split(model, id(0), 1n << 127n)
    const { last } = readShard(model, id(0))
    expect(last.NextShardIterator).toBeNull()
    expect(last.ChildShards).toEqual([
      {
        ShardId: id(1),
        ParentShards: [id(0)],
        HashKeyRange: { StartingHashKey: '0', EndingHashKey: String((1n << 127n) - 1n) },
      },
      {
        ShardId: id(2),
        ParentShards: [id(0)],
        HashKeyRange: { StartingHashKey: String(1n << 127n), EndingHashKey: String((1n << 128n) - 1n) },
      },
    ])
    put(model, 'k', 'after')
    expect(readShard(model, id(0)).records.map(({ Data }) => Data.toString())).toEqual(['before'])
  })

  it('lists lineage, and the ending sequence number of a closed shard past its last record', () => {
    const { model } = modelWithStream(2)
    const last = put(model, 'k', '', '0').SequenceNumber
    merge(model, id(1), id(0))
    const [first, , child] = shards(model)
    expect(child).toMatchObject({ ParentShardId: id(1), AdjacentParentShardId: id(0) })
    expect(BigInt(first?.SequenceNumberRange.EndingSequenceNumber ?? 0)).toBeGreaterThan(BigInt(last))
    expect(child?.SequenceNumberRange.EndingSequenceNumber).toBeUndefined()
  })

  it.each([
    [1, 2],
    [2, 4],
    [4, 2],
    [3, 8],
    [8, 3],
    [4, 6],
    [5, 5],
  ])('scales from %i to %i equal shards', (before, after) => {
    const { model } = modelWithStream(before)
    expect(scale(model, after)).toMatchObject({ CurrentShardCount: before, TargetShardCount: after })
    const starts = Array.from({ length: after }, (_, i) => (BigInt(i) << 128n) / BigInt(after))
    expect(ranges(model).map(([start]) => start)).toEqual(starts)
  })

  it('doubles by one split of each shard and leaves nothing short-lived behind', () => {
    const { model } = modelWithStream(3)
    scale(model, 6)
    expect(shards(model)).toHaveLength(9)
  })

  it('refuses hash keys at the edge of the shard, shards apart, closed shards, and on-demand streams', () => {
    const { model } = modelWithStream(3)
    const end = BigInt(shards(model)[0]?.HashKeyRange.EndingHashKey ?? 0)
    for (const at of [0n, 1n, end, end + 1n]) {
      expect(exceptionOf(() => split(model, id(0), at))).toBe('InvalidArgumentException')
    }
    expect(exceptionOf(() => merge(model, id(0), id(2)))).toBe('InvalidArgumentException')
    expect(exceptionOf(() => merge(model, id(0), id(0)))).toBe('InvalidArgumentException')
    split(model, id(0), end / 2n)
    expect(exceptionOf(() => split(model, id(0), end / 3n))).toBe('InvalidArgumentException')
    expect(exceptionOf(() => split(model, id(77), 5n))).toBe('ResourceNotFoundException')
    const noNumber = { StreamName: 's', ShardToSplit: id(1), NewStartingHashKey: '1e30' }
    expect(exceptionOf(() => model.call('SplitShard', noNumber))).toBe('ValidationException')
    model.call('CreateStream', { StreamName: 'd', StreamModeDetails: { StreamMode: 'ON_DEMAND' } })
    const onDemand = { StreamName: 'd', TargetShardCount: 8, ScalingType: 'UNIFORM_SCALING' } as const
    expect(exceptionOf(() => model.call('UpdateShardCount', onDemand))).toBe('ValidationException')
  })

  it('lets arrival times fall neither in a child nor when the clock goes back', () => {
    const { clock, model } = modelWithStream(1)
    put(model, 'k')
    clock.advance(-60_000)
    put(model, 'k')
    split(model, id(0), 1n << 127n)
    const child = put(model, 'k').ShardId
    const times = [...readShard(model, id(0)).records, ...readShard(model, child).records].map(
      ({ ApproximateArrivalTimestamp }) => ApproximateArrivalTimestamp.getTime(),
    )
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(times).toHaveLength(3)
  })
})
