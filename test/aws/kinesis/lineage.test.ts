import type { KinesisClient } from '@aws-sdk/client-kinesis'
import fc from 'fast-check'
import { kinesisLineage } from '../../../lib/aws/kinesis/lineage.ts'
import { createKinesisModel, isKinesisOperation, type KinesisModel } from '../../../lib/emulator/kinesis/index.ts'
import { awsError, InstantClock, never } from '../sink-worlds.ts'

const startMs = 1_700_000_000_000
const hourMs = 3_600_000
const half = String(2n ** 127n)
const shard = (n: number) => `shardId-${String(n).padStart(12, '0')}`

interface Plan {
  /** What a call is refused with. */
  fail(name: string, input: object): Error | undefined
  /** Shards per page. */
  page: number | undefined
  /** How many reads answer nothing, without an end. */
  emptyPages: { left: number; readonly behindMs: number }
}

function call(model: KinesisModel, name: string, input: object): unknown {
  if (!isKinesisOperation(name)) throw new Error(`the model has no operation ${name}`)
  return model.call(name, input as never)
}

/** A stream `s` of the embedded model, seen through a client that keeps its calls and fails by plan. */
function world(shardCount = 1, { startingAtMs }: { readonly startingAtMs?: number } = {}) {
  let nowMs = startMs
  const model = createKinesisModel({ clock: { nowMs: () => nowMs } })
  model.call('CreateStream', { StreamName: 's', ShardCount: shardCount })
  const calls: string[] = []
  const plan: Plan = { fail: () => undefined, page: undefined, emptyPages: { left: 0, behindMs: 0 } }
  const client = {
    async send(command: { readonly input: { readonly ShardIterator?: string } }) {
      const { input } = command
      const name = command.constructor.name.replace(/Command$/, '')
      calls.push(name)
      const failure = plan.fail(name, input)
      if (failure) throw failure
      const { emptyPages, page } = plan
      if (name === 'GetRecords' && emptyPages.left-- > 0) {
        return { Records: [], NextShardIterator: input.ShardIterator, MillisBehindLatest: emptyPages.behindMs }
      }
      return call(model, name, name === 'ListShards' && page !== undefined ? { ...input, MaxResults: page } : input)
    },
  } as unknown as KinesisClient
  const clock = new InstantClock()
  const lineage = kinesisLineage({ client, streamName: 's', clock, random: () => 0.5, startingAtMs })
  return {
    model,
    calls,
    plan,
    clock,
    lineage,
    advance(ms: number) {
      nowMs += ms
    },
    put: (hash: string) =>
      model.call('PutRecord', { StreamName: 's', PartitionKey: 'k', Data: Buffer.from('v'), ExplicitHashKey: hash })
        .SequenceNumber,
    split: (from: string) =>
      model.call('SplitShard', { StreamName: 's', ShardToSplit: from, NewStartingHashKey: half }),
    merge: (a: string, b: string) =>
      model.call('MergeShards', { StreamName: 's', ShardToMerge: a, AdjacentShardToMerge: b }),
  }
}

const signal = never()

describe('describing shards', () => {
  test('a split and a merge are told with parents and hash ranges', async () => {
    const { lineage, split, merge } = world()
    split(shard(0))
    merge(shard(1), shard(2))
    const largest = String(2n ** 128n - 1n)
    expect(await lineage.describe(shard(0), signal)).toMatchObject({ parents: [], startHash: '0', endHash: largest })
    expect(await lineage.describe(shard(2), signal)).toMatchObject({ parents: [shard(0)], startHash: half })
    expect(await lineage.describe(shard(3), signal)).toMatchObject({ parents: [shard(1), shard(2)], endHash: largest })
  })

  test('all pages are read, once, until a shard is asked for that is unknown', async () => {
    const { lineage, plan, calls, split } = world(5)
    plan.page = 2
    for (let n = 0; n < 5; n++) expect(await lineage.describe(shard(n), signal)).toBeDefined()
    expect(calls).toEqual(['ListShards', 'ListShards', 'ListShards'])
    // The border of the third of five shards lies on the half.
    split(shard(2))
    expect(await lineage.describe(shard(6), signal)).toMatchObject({ parents: [shard(2)] })
    expect(calls).toHaveLength(7)
  })

  test('a trimmed shard is unknown', async () => {
    const { lineage, split, advance } = world()
    split(shard(0))
    advance(25 * hourMs)
    expect(await lineage.describe(shard(1), signal)).toMatchObject({ parents: [shard(0)] })
    expect(await lineage.describe(shard(0), signal)).toBeUndefined()
  })
})

describe('whether a shard is drained', () => {
  test('it is when it is closed and nothing lies behind the position', async () => {
    const { lineage, put, split } = world()
    const [first, last] = [put('1'), put('1')]
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(false)
    split(shard(0))
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
    expect(await lineage.isDrained(shard(0), first, signal)).toBe(false)
    expect(await lineage.isDrained(shard(0), undefined, signal)).toBe(false)
  })

  test('a shard that never held a record is when it is closed', async () => {
    const { lineage, merge, split } = world()
    split(shard(0))
    expect(await lineage.isDrained(shard(1), undefined, signal)).toBe(false)
    merge(shard(1), shard(2))
    expect(await lineage.isDrained(shard(1), undefined, signal)).toBe(true)
  })

  test.each([
    ['behind the tip', 9_000, []],
    ['at the tip', 0, [200, 200, 200]],
  ])('empty pages %s are no end: a record or the end may come behind them', async (_, behindMs, sleptMs) => {
    const { lineage, plan, put, split, clock } = world()
    const [first, last] = [put('1'), put('1')]
    split(shard(0))
    plan.emptyPages = { left: 3, behindMs }
    expect(await lineage.isDrained(shard(0), first, signal)).toBe(false)
    plan.emptyPages = { left: 3, behindMs }
    clock.sleptMs.length = 0
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
    expect(clock.sleptMs).toEqual(sleptMs)
  })

  test('a listing that still says open is read again, as the shard may have closed since', async () => {
    const { lineage, put, split, calls } = world()
    const last = put('1')
    await lineage.describe(shard(0), signal)
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(false)
    split(shard(0))
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
    expect(calls.filter((name) => name === 'ListShards')).toHaveLength(3)
  })

  test('a position that the service refuses counts where the read from the trim horizon ends', async () => {
    const { lineage, plan, put, split } = world()
    const first = put('1')
    split(shard(0))
    plan.fail = (name, input) =>
      name === 'GetShardIterator' && 'StartingSequenceNumber' in input
        ? awsError('InvalidArgumentException')
        : undefined
    expect(await lineage.isDrained(shard(0), first, signal)).toBe(true)
    expect(await lineage.isDrained(shard(0), String(BigInt(first) - 1n), signal)).toBe(false)
  })

  test('records that retention took are behind nobody', async () => {
    const { lineage, put, split, advance } = world()
    const first = put('1')
    put('1')
    advance(12 * hourMs)
    split(shard(0))
    advance(13 * hourMs)
    expect(await lineage.isDrained(shard(0), first, signal)).toBe(true)
  })

  test('a shard that retention takes while it is looked at is drained', async () => {
    const { lineage, put, split, advance, calls } = world()
    const first = put('1')
    split(shard(0))
    expect(await lineage.isDrained(shard(0), first, signal)).toBe(true)
    advance(25 * hourMs)
    expect(await lineage.isDrained(shard(0), undefined, signal)).toBe(true)
    expect(calls.at(-1)).toBe('ListShards')
  })

  test('it is exactly when all records are at the position or before it, whatever was split and merged', async () => {
    const anyStep = fc.oneof(
      { weight: 4, arbitrary: fc.record({ put: fc.nat({ max: 3 }) }) },
      { weight: 1, arbitrary: fc.constantFrom('split' as const, 'merge' as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 20 }), fc.nat(), async (steps, choice) => {
        const { model, lineage } = world(2)
        const held = new Map<string, string[]>()
        const open = () =>
          model
            .call('ListShards', { StreamName: 's', ShardFilter: { Type: 'AT_LATEST' } })
            .Shards.toSorted((a, b) =>
              BigInt(a.HashKeyRange.StartingHashKey) < BigInt(b.HashKeyRange.StartingHashKey) ? -1 : 1,
            )
        for (const step of steps) {
          const [first, second] = open()
          if (step === 'split' && first) {
            const { StartingHashKey, EndingHashKey } = first.HashKeyRange
            const NewStartingHashKey = String((BigInt(StartingHashKey) + BigInt(EndingHashKey)) / 2n)
            model.call('SplitShard', { StreamName: 's', ShardToSplit: first.ShardId, NewStartingHashKey })
          } else if (step === 'merge' && first && second) {
            const shards = { ShardToMerge: first.ShardId, AdjacentShardToMerge: second.ShardId }
            model.call('MergeShards', { StreamName: 's', ...shards })
          } else if (typeof step === 'object') {
            const ExplicitHashKey = String(BigInt(step.put) * 2n ** 126n)
            const record = { PartitionKey: 'k', Data: Buffer.from('v'), ExplicitHashKey }
            const { ShardId, SequenceNumber } = model.call('PutRecord', { StreamName: 's', ...record })
            held.set(ShardId, [...(held.get(ShardId) ?? []), SequenceNumber])
          }
        }
        const openIds = new Set(open().map(({ ShardId }) => ShardId))
        for (const { ShardId } of model.call('ListShards', { StreamName: 's' }).Shards) {
          const records = held.get(ShardId) ?? []
          const completed = records.slice(0, choice % (records.length + 1))
          expect(await lineage.isDrained(ShardId, completed.at(-1), signal)).toBe(
            !openIds.has(ShardId) && completed.length === records.length,
          )
        }
      }),
    )
  })
})

describe('failing calls', () => {
  test('throttles and lost connections are waited out, in every call', async () => {
    const { lineage, plan, put, split, clock } = world()
    const last = put('1')
    split(shard(0))
    const failed = new Set<string>()
    plan.fail = (name) => {
      if (failed.has(name)) return undefined
      failed.add(name)
      return name === 'GetRecords'
        ? awsError('ProvisionedThroughputExceededException')
        : awsError('LimitExceededException')
    }
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
    expect([...failed]).toEqual(['ListShards', 'GetShardIterator', 'GetRecords'])
    expect(clock.sleptMs).toHaveLength(3)
  })

  test('until the signal aborts: then the error says what the service said', async () => {
    const { lineage, plan, calls } = world()
    const deadline = new AbortController()
    plan.fail = () => {
      if (calls.length === 4) deadline.abort()
      return awsError('LimitExceededException')
    }
    await expect(lineage.describe(shard(0), deadline.signal)).rejects.toEqual(
      expect.objectContaining({
        name: 'RetryableError',
        code: 'lineage-deadline',
        message: expect.stringContaining(
          'stream "s" could not be asked for its shards before the deadline (LimitExceeded',
        ),
      }),
    )
    expect(calls).toHaveLength(4)
  })

  test('what needs a person is retryable and says what to do', async () => {
    const { lineage, plan } = world()
    plan.fail = () => awsError('AccessDeniedException')
    await expect(lineage.isDrained(shard(0), undefined, signal)).rejects.toEqual(
      expect.objectContaining({
        name: 'RetryableError',
        code: 'lineage-unusable',
        message: expect.stringMatching(/AccessDeniedException.*ListShards, GetShardIterator and GetRecords/),
      }),
    )
  })

  test('a shard that cannot be found but is listed is an error, not a drained shard', async () => {
    const { lineage, plan, split } = world()
    split(shard(0))
    plan.fail = (name) => (name === 'GetShardIterator' ? awsError('ResourceNotFoundException') : undefined)
    await expect(lineage.isDrained(shard(0), undefined, signal)).rejects.toEqual(
      expect.objectContaining({ code: 'lineage-unusable' }),
    )
  })

  test('a stream that is gone is an error, not a drained shard', async () => {
    const { lineage, put, split, model } = world()
    const last = put('1')
    split(shard(0))
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
    model.call('DeleteStream', { StreamName: 's' })
    await expect(lineage.isDrained(shard(0), last, signal)).rejects.toEqual(
      expect.objectContaining({ code: 'lineage-unusable' }),
    )
  })
})

describe('listing', () => {
  test('all shards come with what they are, closed ones too, as they are now', async () => {
    const { lineage, split, plan } = world()
    plan.page = 1
    expect(await lineage.list(signal)).toEqual([expect.objectContaining({ partition: shard(0), isClosed: false })])
    split(shard(0))
    expect(await lineage.list(signal)).toEqual([
      { partition: shard(0), parents: [], startHash: '0', endHash: String(2n ** 128n - 1n), isClosed: true },
      { partition: shard(1), parents: [shard(0)], startHash: '0', endHash: String(2n ** 127n - 1n), isClosed: false },
      { partition: shard(2), parents: [shard(0)], startHash: half, endHash: String(2n ** 128n - 1n), isClosed: false },
    ])
  })

  test('a trimmed shard is left out', async () => {
    const { lineage, split, advance } = world()
    split(shard(0))
    advance(25 * hourMs)
    expect((await lineage.list(signal)).map(({ partition }) => partition)).toEqual([shard(1), shard(2)])
  })
})

describe('whether a shard is caught up', () => {
  test('an open one is when nothing lies behind the position now', async () => {
    const { lineage, put } = world()
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(true)
    const [first, last] = [put('1'), put('1')]
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(false)
    expect(await lineage.isCaughtUp(shard(0), first, signal)).toBe(false)
    expect(await lineage.isCaughtUp(shard(0), last, signal)).toBe(true)
    put('1')
    expect(await lineage.isCaughtUp(shard(0), last, signal)).toBe(false)
  })

  test('a closed one is when it is drained', async () => {
    const { lineage, put, split } = world()
    const last = put('1')
    split(shard(0))
    expect(await lineage.isCaughtUp(shard(0), last, signal)).toBe(true)
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(false)
  })

  test.each([
    ['with time behind them', 9_000, []],
    ['that say nothing of it', undefined, [200, 200, 200]],
  ])('empty pages %s are no end: a record may come behind them', async (_, behindMs, sleptMs) => {
    const { lineage, plan, put, clock } = world()
    const [first, last] = [put('1'), put('1')]
    plan.emptyPages = { left: 3, behindMs: behindMs as number }
    expect(await lineage.isCaughtUp(shard(0), first, signal)).toBe(false)
    plan.emptyPages = { left: 3, behindMs: behindMs as number }
    clock.sleptMs.length = 0
    expect(await lineage.isCaughtUp(shard(0), last, signal)).toBe(true)
    expect(clock.sleptMs).toEqual(sleptMs)
  })

  test('a position that retention took counts where the read from the trim horizon ends', async () => {
    const { lineage, plan, put } = world()
    const first = put('1')
    plan.fail = (name, input) =>
      name === 'GetShardIterator' && 'StartingSequenceNumber' in input
        ? awsError('InvalidArgumentException')
        : undefined
    expect(await lineage.isCaughtUp(shard(0), first, signal)).toBe(true)
    put('1')
    expect(await lineage.isCaughtUp(shard(0), first, signal)).toBe(false)
  })

  test('a throttled call is tried again; one that cannot succeed is a retryable error', async () => {
    const { lineage, plan, put, calls } = world()
    const last = put('1')
    let refused = 0
    plan.fail = (name) =>
      name === 'GetRecords' && refused++ < 2 ? awsError('ProvisionedThroughputExceededException') : undefined
    expect(await lineage.isCaughtUp(shard(0), last, signal)).toBe(true)
    expect(calls.filter((name) => name === 'GetRecords')).toHaveLength(3)
    plan.fail = () => awsError('AccessDeniedException')
    await expect(lineage.isCaughtUp(shard(0), last, signal)).rejects.toMatchObject({ code: 'lineage-unusable' })
  })
})

describe('where reading begins at a time', () => {
  const from = () => world(1, { startingAtMs: startMs + 1_000 })

  test.each([
    ['has come', 2_000],
    ['is still to come', 0],
  ])('a shard that closed before it is drained, as nobody reads it: the time %s', async (_, laterMs) => {
    const { lineage, put, split, advance } = from()
    put('1')
    split(shard(0))
    advance(laterMs)
    expect(await lineage.isDrained(shard(0), undefined, signal)).toBe(true)
  })

  test('who asks from a later time is told of what came since: after a reset nothing older counts', async () => {
    const { lineage, put, split, advance } = world()
    put('1')
    advance(1_000)
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(false)
    expect(await lineage.isCaughtUp(shard(0), undefined, signal, startMs + 500)).toBe(true)
    split(shard(0))
    expect(await lineage.isDrained(shard(0), undefined, signal)).toBe(false)
    expect(await lineage.isDrained(shard(0), undefined, signal, startMs + 500)).toBe(true)
  })

  test('a shard is caught up until something comes at that time or later', async () => {
    const { lineage, put, advance } = from()
    put('1')
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(true)
    advance(1_000)
    const first = put('1')
    expect(await lineage.isCaughtUp(shard(0), undefined, signal)).toBe(false)
    expect(await lineage.isCaughtUp(shard(0), first, signal)).toBe(true)
  })

  test('a closed one with records from that time on is drained when they are read', async () => {
    const { lineage, put, split, advance } = from()
    put('1')
    advance(2_000)
    const last = put('1')
    split(shard(0))
    expect(await lineage.isDrained(shard(0), undefined, signal)).toBe(false)
    expect(await lineage.isDrained(shard(0), last, signal)).toBe(true)
  })
})
