import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { MappingSettings } from '../../../lib/emulator/event-source-mapping/index.ts'
import { MappingWorld, s0 } from './mapping-world.ts'
import { answered, failed, reports } from './memory-ports.ts'

const s1 = 'shardId-000000000001'
const s2 = 'shardId-000000000002'

describe('settings (1.1)', () => {
  test.each<[Partial<MappingSettings>, string]>([
    [{ batchSize: 0 }, 'batchSize is 0: give an integer from 1 to 10000'],
    [{ batchSize: 10_001 }, 'batchSize is 10001'],
    [{ batchSize: 1.5 }, 'batchSize is 1.5'],
    [{ maximumBatchingWindowInSeconds: 301 }, 'maximumBatchingWindowInSeconds is 301'],
    [{ parallelizationFactor: 11 }, 'parallelizationFactor is 11'],
    [{ maximumRetryAttempts: 10_001 }, 'maximumRetryAttempts is 10001'],
    [{ maximumRetryAttempts: -2 }, 'maximumRetryAttempts is -2'],
    [{ maximumRecordAgeInSeconds: 59 }, 'maximumRecordAgeInSeconds is 59: give an integer from 60 to 604800, or -1'],
    [{ maximumRecordAgeInSeconds: 604_801 }, 'maximumRecordAgeInSeconds is 604801'],
    [{ startingPosition: 'NOW' as 'LATEST' }, 'startingPosition is NOW'],
    [{ startingPosition: 'AT_TIMESTAMP' }, 'comes with startingPositionTimestampMs undefined'],
    [{ startingPositionTimestampMs: 5 }, 'but startingPosition is TRIM_HORIZON'],
    [{ functionResponseTypes: ['Other' as 'ReportBatchItemFailures'] }, 'functionResponseTypes has Other'],
    [
      { filterCriteria: { filters: Array(11).fill({ pattern: '{"data":{"a":[1]}}' }) } },
      'filterCriteria has 11 filters',
    ],
    [{ emulation: { pollIntervalMs: -1 } }, 'emulation.pollIntervalMs is -1'],
    [{ uuid: '' }, 'uuid is empty'],
  ])('%j is refused', (settings, message) => {
    expect(() => new MappingWorld(settings)).toThrow(ConfigurationError)
    expect(() => new MappingWorld(settings)).toThrow(message)
  })
})

describe('polling (1.2)', () => {
  test('[D] a shard that is caught up is read once a second, one with a backlog at once', async () => {
    const world = new MappingWorld()
    await world.run(3_000)
    expect(world.stream.reads).toHaveLength(4)
    await world.stop()
    const behind = new MappingWorld({ batchSize: 1, emulation: { maxBufferedRecords: 2 } })
    for (let sequence = 1; sequence <= 8; sequence += 1) behind.stream.put(s0, sequence)
    await behind.run(600)
    expect(behind.invoker.deliveries).toHaveLength(8)
    await behind.stop()
  })

  test('reading ahead is bounded while the function is stuck', async () => {
    const world = new MappingWorld({ batchSize: 2, emulation: { maxBufferedRecords: 5 } })
    for (let sequence = 1; sequence <= 100; sequence += 1) world.stream.put(s0, sequence)
    world.invoker.answer = () => failed()
    await world.run(10_000)
    expect(world.shard().unfinished).toBe(5)
    await world.stop()
  })

  test('a stream that cannot be listed is a clear state, and the mapping goes on when it is back', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    world.stream.failure = 'ResourceNotFoundException'
    await world.run(5_000)
    expect(world.mapping.status()).toMatchObject({
      state: 'blocked',
      reason: expect.stringContaining('ResourceNotFound'),
    })
    world.stream.failure = undefined
    await world.clock.advance(60_000)
    expect(world.invoker.batches).toEqual(['1'])
    await world.stop()
  })

  test('a stream that is deleted while it is read blocks its shards visibly and loses nothing', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    await world.run(500)
    world.stream.failure = 'stream is gone'
    await world.clock.advance(2_000)
    expect(world.shard()).toMatchObject({ state: 'blocked', reason: expect.stringContaining('stream is gone') })
    world.stream.failure = undefined
    world.stream.put(s0, 2)
    await world.clock.advance(60_000)
    expect(world.invoker.batches).toEqual(['1', '2'])
    expect(world.shard().state).toBe('running')
    await world.stop()
  })
})

describe('starting positions (1.1)', () => {
  test('TRIM_HORIZON reads what is there, LATEST only what comes after the first poll', async () => {
    for (const [startingPosition, batches] of [
      ['TRIM_HORIZON', ['1', '3']],
      ['LATEST', ['3']],
    ] as const) {
      const world = new MappingWorld({ startingPosition })
      world.stream.put(s0, 1)
      await world.run(500)
      world.stream.put(s0, 3)
      await world.clock.advance(1_000)
      expect(world.invoker.batches).toEqual(batches)
      await world.stop()
    }
  })

  test('[D] LATEST misses what arrives while the mapping is still starting', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST', emulation: { startDelayMs: 120_000 } })
    await world.run(60_000)
    world.stream.put(s0, 1)
    await world.clock.advance(61_000)
    world.stream.put(s0, 2)
    await world.clock.advance(2_000)
    expect(world.invoker.batches).toEqual(['2'])
    await world.stop()
  })

  test('AT_TIMESTAMP reads from that time on', async () => {
    const startMs = new MappingWorld().clock.nowMs()
    const world = new MappingWorld({ startingPosition: 'AT_TIMESTAMP', startingPositionTimestampMs: startMs - 10 })
    world.stream.put(s0, 1, { arrivalMs: startMs - 11 })
    world.stream.put(s0, 2, { arrivalMs: startMs - 10 })
    await world.run(500)
    expect(world.invoker.batches).toEqual(['2'])
    await world.stop()
  })

  test('[D] a restart goes on at the checkpoint, whatever the starting position says', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST' })
    await world.run(500)
    world.stream.put(s0, 1)
    await world.clock.advance(1_000)
    await world.stop()
    world.stream.put(s0, 2)
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['1', '2'])
    await world.stop()
  })

  test('LATEST restarted before its first record loses nothing that came since', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST' })
    world.stream.put(s0, 1, { arrivalMs: world.clock.nowMs() - 1 })
    await world.run(500)
    await world.stop()
    world.stream.put(s0, 2)
    world.mapping = world.create()
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['2'])
    await world.stop()
  })

  test('LATEST opened again after a read error, before the first record, loses nothing either', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST' })
    await world.run(500)
    world.stream.failure = 'iterator expired'
    await world.clock.advance(1_000)
    world.stream.put(s0, 1)
    world.stream.failure = undefined
    await world.clock.advance(10_000)
    expect(world.invoker.batches).toEqual(['1'])
    await world.stop()
  })
})

describe('resharding (1.4)', () => {
  test('[I] a child is read only after its parent is drained and that is saved', async () => {
    const world = new MappingWorld({ batchSize: 1 })
    world.stream.put(s0, 1)
    world.stream.put(s0, 2)
    world.stream.close(s0)
    world.stream.addShard(s1, [s0])
    world.stream.put(s1, 10)
    world.invoker.answer = (_, index) => (index < 3 ? failed() : answered(null))
    await world.run(1_000)
    expect(world.shard(s1).state).toBe('waiting-for-parents')
    await world.clock.advance(60_000)
    expect(world.invoker.batches).toEqual(['1', '1', '1', '1', '2', '10'])
    const drained = world.checkpoints.history.findIndex(
      ({ shardId, checkpoint }) => shardId === s0 && checkpoint.drained,
    )
    const child = world.checkpoints.history.findIndex(({ shardId }) => shardId === s1)
    expect(drained).toBeGreaterThan(-1)
    expect(child).toBeGreaterThan(drained)
    expect(world.shard(s0).state).toBe('drained')
    await world.stop()
  })

  test('a shard that is drained while the shards are being listed has its children found at once', async () => {
    const world = new MappingWorld()
    const listShards = world.stream.listShards.bind(world.stream)
    world.stream.listShards = async () => {
      const listing = await listShards()
      await world.clock.sleep(3_000)
      return listing
    }
    await world.run(13_500)
    // The periodic listing began at 13 s and has not answered yet.
    world.stream.close(s0)
    world.stream.addShard(s1, [s0])
    world.stream.put(s1, 1)
    await world.clock.advance(6_000)
    expect(world.invoker.batches).toEqual(['1'])
    await world.stop(5_000)
  })

  test('the child of a merge waits for both parents', async () => {
    const world = new MappingWorld()
    world.stream.addShard(s1)
    world.stream.close(s0)
    world.stream.addShard(s2, [s0, s1])
    world.stream.put(s2, 5)
    await world.run(5_000)
    expect(world.invoker.batches).toEqual([])
    world.stream.close(s1)
    await world.clock.advance(15_000)
    expect(world.invoker.batches).toEqual(['5'])
    await world.stop()
  })

  test('parents that the stream no longer holds do not hold up a child', async () => {
    const world = new MappingWorld()
    world.stream.addShard(s1, ['shardId-trimmed'])
    world.stream.put(s1, 5)
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['5'])
    await world.stop()
  })

  test('a drained parent is not read again after a restart, and its child goes on', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    world.stream.close(s0)
    world.stream.addShard(s1, [s0])
    world.stream.put(s1, 2)
    await world.run(5_000)
    await world.stop()
    world.stream.put(s1, 3)
    world.mapping = world.create()
    world.stream.opened.length = 0
    await world.run(5_000)
    expect(world.invoker.batches).toEqual(['1', '2', '3'])
    expect(world.stream.opened.map(({ shardId }) => shardId)).toEqual([s1])
    await world.stop()
  })

  test('with LATEST a child that appears later is read from its beginning', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST' })
    await world.run(1_000)
    world.stream.close(s0)
    world.stream.addShard(s1, [s0])
    world.stream.put(s1, 1)
    await world.clock.advance(2_000)
    expect(world.invoker.batches).toEqual(['1'])
    await world.stop()
  })
})

describe('stopping and pausing', () => {
  test('stop lets the invocation in flight finish, saves it, and begins no other', async () => {
    const world = new MappingWorld({ batchSize: 1 })
    world.stream.put(s0, 1)
    world.stream.put(s0, 2)
    world.invoker.answer = async () => {
      await world.clock.sleep(5_000)
      return answered(null)
    }
    await world.run(1_000)
    expect(world.shard().lanes[0]).toMatchObject({ state: 'invoking', inFlight: 1, waiting: 1 })
    await world.stop(10_000)
    expect(world.invoker.batches).toEqual(['1'])
    expect(world.checkpoints.at(s0)).toBe('1')
    expect(world.mapping.status().state).toBe('stopped')
    world.invoker.answer = () => answered(null)
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['1', '2'])
    await world.stop()
  })

  test('stop does not wait for a backoff or a window', async () => {
    const world = new MappingWorld({ maximumBatchingWindowInSeconds: 300 })
    world.stream.put(s0, 1)
    await world.run(1_000)
    await world.stop()
    expect(world.checkpoints.at(s0)).toBeUndefined()
  })

  test('pause begins nothing new and keeps the retry budget; resume goes on', async () => {
    const world = new MappingWorld({ maximumRetryAttempts: 1 })
    world.stream.put(s0, 1)
    world.invoker.answer = () => failed()
    await world.run(100)
    world.mapping.pause()
    await world.clock.advance(60_000)
    expect(world.mapping.status().state).toBe('paused')
    expect(world.invoker.deliveries).toHaveLength(1)
    world.mapping.resume()
    await world.clock.advance(60_000)
    expect(world.invoker.deliveries).toHaveLength(2)
    expect(world.destination.envelopes[0]?.requestContext.approximateInvokeCount).toBe(2)
    await world.stop()
  })

  test('nothing is given up while the mapping is paused; what has become too old is reported after it', async () => {
    const world = new MappingWorld({ maximumRecordAgeInSeconds: 60 })
    world.stream.put(s0, 1)
    world.invoker.answer = () => failed()
    await world.run(100)
    world.mapping.pause()
    await world.clock.advance(120_000)
    expect(world.destination.messages).toEqual([])
    world.mapping.resume()
    await world.clock.advance(1_000)
    expect(world.destination.envelopes[0]?.requestContext.condition).toBe('RecordAgeExceeded')
    await world.stop()
  })

  test('stopping a paused mapping ends', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    world.invoker.answer = () => failed()
    await world.run(100)
    world.mapping.pause()
    await world.clock.advance(10_000)
    await world.stop()
    expect(world.mapping.status().state).toBe('stopped')
  })

  test('a checkpoint that cannot be saved holds the shard up visibly; nothing is lost, and it goes on', async () => {
    const world = new MappingWorld({ batchSize: 1 })
    for (const sequence of [1, 2, 3]) world.stream.put(s0, sequence)
    world.checkpoints.failure = 'the disk is full'
    await world.run(30_000)
    expect(world.invoker.batches).toEqual(['1'])
    expect(world.shard()).toMatchObject({ state: 'blocked', reason: expect.stringContaining('the disk is full') })
    world.checkpoints.failure = undefined
    await world.clock.advance(120_000)
    expect(world.invoker.batches).toEqual(['1', '2', '3'])
    expect(world.shard()).toMatchObject({ state: 'running', position: '3' })
    await world.stop()
  })

  test('stopping with a full disk ends, says so, and the next run delivers again', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    world.checkpoints.failure = 'the disk is full'
    await world.run(1_000)
    await world.stop()
    expect(world.shard()).toMatchObject({ state: 'blocked', reason: expect.stringContaining('the disk is full') })
    world.checkpoints.failure = undefined
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['1', '1'])
    await world.stop()
  })

  test('checkpoints that cannot be loaded refuse the start', async () => {
    const world = new MappingWorld()
    world.checkpoints.load = async () => {
      throw new ConfigurationError('checkpoints.json is not JSON')
    }
    await expect(world.mapping.start()).rejects.toThrow('checkpoints.json is not JSON')
    expect(world.mapping.status().state).toBe('stopped')
  })
})

test('the status shows position, lag, attempts and reason for a live display', async () => {
  const world = new MappingWorld()
  for (const sequence of [1, 2, 3]) world.stream.put(s0, sequence)
  world.invoker.answer = (_, index) => (index === 0 ? reports('2') : failed('Error: table is gone'))
  await world.run(500)
  expect(world.shard()).toMatchObject({
    state: 'retrying',
    reason: 'Error: table is gone',
    position: '1',
    unfinished: 2,
    millisBehindLatest: 0,
    oldestUnfinishedAgeMs: 500,
    lanes: [{ lane: 0, state: 'retrying', inFlight: 2, failures: 2, nextAttemptMs: world.clock.nowMs() + 700 }],
  })
  await world.stop()
})
