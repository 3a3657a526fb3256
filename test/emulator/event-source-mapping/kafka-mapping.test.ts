/** The event source mapping of Kafka: reading, batches and commits. Tags are those of the facts that are known of AWS. */
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { KafkaWorld, reportsItems, topic } from './kafka-world.ts'
import { answered, failed } from './memory-ports.ts'

const big = (bytes: number) => Buffer.alloc(bytes, 'x').toString()

describe('batches', () => {
  test('[D] one payload may hold several partitions, each in the order of its offsets', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b')
    world.put(1, 'c')
    await world.run()
    expect(world.batches).toEqual(['0:0 0:1 1:0'])
    expect(Object.keys(world.deliveries[0]?.event.records ?? {})).toEqual([`${topic}-0`, `${topic}-1`])
  })

  test('[D] a batch closes at its size before its window ends', async () => {
    const world = new KafkaWorld({ batchSize: 2, maximumBatchingWindowInSeconds: 300 })
    world.put(0, 'a', 'b', 'c', 'd', 'e')
    await world.run()
    expect(world.batches).toEqual(['0:0 0:1', '0:2 0:3'])
    await world.clock.advance(300_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:2 0:3', '0:4'])
  })

  test('[D] the window is half a second unless it is said', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a')
    const startMs = world.clock.nowMs()
    await world.run(499)
    expect(world.batches).toEqual([])
    await world.clock.advance(1)
    expect(world.deliveries[0]?.atMs).toBe(startMs + 500)
  })

  test('[D23] the window begins with the first record, not where the one before ended', async () => {
    const world = new KafkaWorld({ maximumBatchingWindowInSeconds: 10 })
    await world.run(7_000)
    world.put(0, 'a')
    await world.clock.advance(200)
    world.put(1, 'b')
    await world.clock.advance(9_700)
    expect(world.batches).toEqual([])
    await world.clock.advance(200)
    expect(world.batches).toEqual(['0:0 1:0'])
    world.put(0, 'c')
    await world.clock.advance(9_900)
    expect(world.batches).toHaveLength(1)
    await world.clock.advance(300)
    expect(world.batches).toEqual(['0:0 1:0', '0:1'])
  })

  test('[D] no event is above 6 MB as JSON', async () => {
    const world = new KafkaWorld({ batchSize: 10_000 }, { topic: { maxMessageBytes: 10_000_000 } })
    for (let i = 0; i < 10; i += 1) world.put(i % 2, big(900_000))
    await world.run(5_000)
    const sizes = world.deliveries.map(({ event }) => Buffer.byteLength(JSON.stringify(event)))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(6 * 1024 * 1024)
    expect(world.deliveries.map(({ records }) => records.length)).toEqual([5, 5])
  })

  test('[I] a record too large even alone is not run, for ever in on-demand mode', async () => {
    const world = new KafkaWorld({ mode: 'on-demand' }, { topic: { maxMessageBytes: 10_000_000 } })
    world.put(0, big(5_000_000), 'b')
    await world.run(60_000)
    expect(world.batches).toEqual([])
    expect(world.mapping.status().pollers[0]).toMatchObject({ wasNotRun: true, state: 'retrying' })
  })

  test('[D/I] of a partition at most one batch is in flight; pollers share the partitions', async () => {
    const world = new KafkaWorld({ pollers: 2, batchSize: 1 }, { topic: { partitions: 3 } })
    const inFlight = new Set<string>()
    let most = 0
    world.answer = async ({ records }) => {
      const [partition = ''] = (records[0] ?? '').split(':')
      expect(inFlight.has(partition)).toBe(false)
      inFlight.add(partition)
      most = Math.max(most, inFlight.size)
      await world.clock.sleep(1_000)
      inFlight.delete(partition)
      return answered(null)
    }
    for (const partition of [0, 1, 2]) world.put(partition, 'a', 'b', 'c')
    await world.run(20_000)
    expect(most).toBe(2)
    for (const partition of [0, 1, 2]) {
      const own = world.batches.filter((batch) => batch.startsWith(`${partition}:`))
      expect(own).toEqual([0, 1, 2].map((offset) => `${partition}:${offset}`))
    }
    const pollerOf = new Map(world.deliveries.map(({ records, info }) => [records[0]?.split(':')[0], info.lane]))
    expect(pollerOf).toEqual(
      new Map([
        ['0', 0],
        ['1', 1],
        ['2', 0],
      ]),
    )
  })

  test('[D] there are never more pollers than partitions', async () => {
    const world = new KafkaWorld({ pollers: 5 })
    await world.run()
    expect(world.mapping.status().pollers).toHaveLength(2)
  })

  test('gaps in the offsets are normal: compaction and the ends of transactions', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a')
    world.kafka.appendControl(topic, 0)
    world.put(0, 'b')
    world.kafka.appendControl(topic, 0)
    await world.run()
    expect(world.batches).toEqual(['0:0 0:2'])
    expect(world.committed).toEqual({ 0: 3 })
  })
})

describe('commits', () => {
  test('[D] the group is the mapping’s uuid unless it is given another', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a')
    await world.run()
    expect(world.kafka.committedOffsets(world.settings.uuid, topic)).toEqual(new Map([[0, 1]]))
    const other = new KafkaWorld({ consumerGroupId: 'orders-app' })
    other.put(0, 'a')
    await other.run()
    expect(other.kafka.committedOffsets('orders-app', topic)).toEqual(new Map([[0, 1]]))
    expect(other.kafka.committedOffsets(other.settings.uuid, topic)).toEqual(new Map())
  })

  test('[D] offsets are committed after the batch, not before', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b')
    world.put(1, 'c')
    world.answer = async () => {
      await world.clock.sleep(2_000)
      return answered(null)
    }
    await world.run(2_000)
    expect([world.batches.length, world.committed]).toEqual([1, {}])
    await world.clock.advance(1_000)
    expect(world.committed).toEqual({ 0: 2, 1: 1 })
  })

  test('[D] what was filtered out is committed with what was not; without a match nothing is invoked', async () => {
    const filters = [{ pattern: '{"value":{"city":["Oslo"]}}' }]
    const world = new KafkaWorld({ filterCriteria: { filters } })
    world.put(0, '{"city":"Bern"}', '{"city":"Oslo"}', 'no JSON', { value: null }, '{"city":"Bern"}')
    world.put(1, '{"city":"Bern"}')
    world.answer = () => failed()
    await world.run(10_000)
    expect(world.batches.every((batch) => batch === '0:1')).toBe(true)
    expect(world.committed).toEqual({ 0: 1, 1: 1 })
    world.answer = () => answered(null)
    await world.clock.advance(60_000)
    expect(world.committed).toEqual({ 0: 5, 1: 1 })
    expect(world.mapping.status().counters).toMatchObject({ polledEvents: 6, filteredOutEvents: 5 })
  })

  test('a restart goes on behind what is committed, a batch in flight ends before the stop', async () => {
    const world = new KafkaWorld({ batchSize: 2 })
    world.put(0, 'a', 'b', 'c', 'd')
    world.answer = async () => {
      await world.clock.sleep(1_000)
      return answered(null)
    }
    await world.run(600)
    await world.stop(2_000)
    expect(world.mapping.status().state).toBe('stopped')
    expect([world.batches, world.committed]).toEqual([['0:0 0:1'], { 0: 2 }])
    world.mapping = world.create()
    await world.run(5_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:2 0:3'])
  })
})

describe('starting positions', () => {
  test('[D] an existing committed offset wins over the starting position, partition by partition', async () => {
    const world = new KafkaWorld({ startingPosition: 'TRIM_HORIZON' })
    world.put(0, 'a', 'b', 'c')
    world.put(1, 'd')
    world.kafka.commitOffsets(world.group, [{ topic, partition: 0, offset: 2 }])
    await world.run()
    expect(world.batches).toEqual(['0:2 1:0'])
  })

  test('[D] LATEST begins behind what is there, and goes on there when a read has failed', async () => {
    const world = new KafkaWorld({ startingPosition: 'LATEST' })
    world.put(0, 'a')
    await world.run()
    world.put(0, 'b')
    await world.clock.advance(1_000)
    expect(world.batches).toEqual(['0:1'])
  })

  test('[D] with LATEST what comes while the mapping is not polling yet is missed', async () => {
    const world = new KafkaWorld({ startingPosition: 'LATEST', emulation: { startDelayMs: 120_000 } })
    await world.run()
    world.put(0, 'missed')
    await world.clock.advance(120_000)
    world.put(0, 'b')
    await world.clock.advance(1_000)
    expect(world.batches).toEqual(['0:1'])
  })

  test('[I] with LATEST and nothing committed a restart begins at the end again', async () => {
    const world = new KafkaWorld({ startingPosition: 'LATEST' })
    await world.run()
    await world.stop()
    world.put(0, 'missed')
    await world.run()
    expect(world.batches).toEqual([])
  })

  test('[D] AT_TIMESTAMP begins with the first record of that time or later, by the records’ own timestamps', async () => {
    const world = new KafkaWorld({
      startingPosition: 'AT_TIMESTAMP',
      startingPositionTimestampMs: Date.UTC(2026, 0, 1),
    })
    const at = (ms: number) => ({ value: Buffer.from('v'), timestampMs: Date.UTC(2026, 0, 1) + ms })
    world.put(0, at(-2), at(5), at(-1))
    world.put(1, at(-1))
    await world.run()
    expect(world.batches).toEqual(['0:1 0:2'])
    world.put(1, at(-3))
    await world.clock.advance(1_000)
    expect(world.batches).toEqual(['0:1 0:2', '1:1'])
  })

  test.each([
    ['trim-horizon', '0:3'],
    ['latest', undefined],
  ] as const)('[I] where the committed offset is gone, reading goes on at the %s', async (whenLost, batch) => {
    const world = new KafkaWorld({}, { reader: { whenLost } })
    world.put(0, 'a', 'b', 'c', 'd')
    world.kafka.commitOffsets(world.group, [{ topic, partition: 0, offset: 1 }])
    world.kafka.deleteRecords(topic, 0, 3)
    await world.run()
    expect(world.batches[0]).toBe(batch)
    world.put(0, 'e')
    await world.clock.advance(1_000)
    expect(world.batches.at(-1)).toBe('0:4')
  })
})

describe('the topic changes', () => {
  test('a partition that was added is read from its beginning', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a')
    await world.run()
    world.kafka.createPartitions(topic, 3)
    world.put(2, 'b')
    await world.clock.advance(20_000)
    expect(world.batches).toEqual(['0:0', '2:0'])
    expect(world.committed).toEqual({ 0: 1, 2: 1 })
  })

  test('[I] with LATEST an added partition is read from when it was noticed', async () => {
    const world = new KafkaWorld({ startingPosition: 'LATEST' })
    await world.run()
    world.kafka.createPartitions(topic, 3)
    world.put(2, 'missed')
    await world.clock.advance(20_000)
    world.put(2, 'b')
    await world.clock.advance(1_000)
    expect(world.batches).toEqual(['2:1'])
  })

  test('a topic that was made again is read from its beginning: its offsets start over', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b')
    await world.run()
    world.kafka.deleteTopic(topic)
    world.kafka.createTopic(topic, { partitions: 2 })
    world.put(0, 'c')
    await world.clock.advance(30_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:0'])
    expect(world.committed).toEqual({ 0: 1 })
  })

  test('while the topic is gone the mapping says so, and goes on trying', async () => {
    const world = new KafkaWorld()
    await world.run()
    world.kafka.deleteTopic(topic)
    await world.clock.advance(30_000)
    expect(world.mapping.status()).toMatchObject({ state: 'blocked', reason: expect.stringContaining(topic) })
    world.kafka.createTopic(topic)
    world.put(0, 'a')
    await world.clock.advance(120_000)
    expect([world.mapping.status().state, world.batches]).toEqual(['running', ['0:0']])
  })
})

describe('a rebalance', () => {
  test('hands a batch in flight to another poller, and the first commits nothing', async () => {
    const world = new KafkaWorld()
    const ends: (() => void)[] = []
    world.answer = () => new Promise((resolve) => ends.push(() => resolve(answered(null))))
    world.put(0, 'a', 'b')
    await world.run()
    world.mapping.rebalance(2)
    await world.clock.advance(1_000)
    // Both are at it at the same time.
    expect(world.batches).toEqual(['0:0 0:1', '0:0 0:1'])
    ends[0]?.()
    await world.clock.advance(1_000)
    expect(world.committed).toEqual({})
    ends[1]?.()
    await world.clock.advance(1_000)
    expect(world.committed).toEqual({ 0: 2 })
    expect(world.batches).toHaveLength(2)
  })

  test('what failed before it is not tried again by the old poller, and its budget begins anew', async () => {
    const world = new KafkaWorld({ maximumRetryAttempts: 1 })
    world.put(0, 'a')
    world.answer = (_, index) => (index < 2 ? failed() : answered(null))
    await world.run(550)
    world.mapping.rebalance()
    await world.clock.advance(10_000)
    expect(world.batches).toEqual(['0:0', '0:0', '0:0'])
    expect([world.committed, world.mapping.status().counters.droppedEvents]).toEqual([{ 0: 1 }, 0])
  })

  test('that is asked for while another is at work is not lost', async () => {
    const world = new KafkaWorld()
    await world.run()
    world.mapping.rebalance(1)
    world.mapping.rebalance(2)
    await world.clock.advance(100)
    expect(world.mapping.status().pollers).toHaveLength(2)
  })

  test('follows where the group has begun a generation that was not joined: what was in flight comes again', async () => {
    const world = new KafkaWorld()
    world.answer = async () => {
      await world.clock.sleep(2_000)
      return answered(null)
    }
    world.put(0, 'a')
    await world.run()
    world.kafka.rebalanceGroup(world.group)
    await world.clock.advance(10_000)
    expect([world.batches, world.committed]).toEqual([['0:0', '0:0'], { 0: 1 }])
  })

  test('that finds no group to join is tried again until it does', async () => {
    let refusals = 0
    const world = new KafkaWorld(
      {},
      {
        group: ({ join }) => ({
          async join(onLost) {
            if (refusals-- > 0) throw new Error('the coordinator is away')
            return join(onLost)
          },
        }),
      },
    )
    await world.run()
    refusals = 2
    world.mapping.rebalance(2)
    await world.clock.advance(300)
    expect(world.mapping.status()).toMatchObject({ state: 'blocked', pollers: [{ lane: 0 }] })
    await world.clock.advance(10_000)
    expect(world.mapping.status().pollers).toHaveLength(2)
  })

  test('a stop waits for what older pollers have in flight', async () => {
    const world = new KafkaWorld()
    let end = () => {}
    world.answer = (_, index) =>
      index > 0 ? answered(null) : new Promise((resolve) => (end = () => resolve(answered(null))))
    world.put(0, 'a')
    await world.run()
    world.mapping.rebalance()
    await world.clock.advance(1_000)
    let isStopped = false
    const stopped = world.mapping.stop().then(() => (isStopped = true))
    await world.clock.advance(1_000)
    expect([world.committed, isStopped]).toEqual([{ 0: 1 }, false])
    end()
    await stopped
    expect(world.committed).toEqual({ 0: 1 })
  })
})

test('a pause begins nothing new, and nothing is lost', async () => {
  const world = new KafkaWorld()
  await world.run()
  world.mapping.pause()
  world.put(0, 'a')
  await world.clock.advance(5_000)
  expect([world.mapping.status().state, world.batches]).toEqual(['paused', []])
  world.mapping.resume()
  await world.clock.advance(5_000)
  expect(world.batches).toEqual(['0:0'])
})

describe('settings that AWS refuses', () => {
  test.each([
    [{ pollers: 0 }, 'pollers is 0'],
    [{ pollers: 2_001 }, 'pollers is 2001'],
    [{ consumerGroupId: '' }, 'consumerGroupId is empty'],
    [{ mode: 'queue' as never }, 'mode is queue'],
    [{ batchSize: 10_001 }, 'batchSize is 10001'],
    [{ maximumBatchingWindowInSeconds: 301 }, 'maximumBatchingWindowInSeconds is 301'],
    [{ maximumRecordAgeInSeconds: 59 }, 'maximumRecordAgeInSeconds is 59'],
    [{ startingPosition: 'AT_TIMESTAMP' as const }, 'AT_TIMESTAMP'],
  ])('%j', (settings, message) => {
    expect(() => new KafkaWorld(settings)).toThrow(ConfigurationError)
    expect(() => new KafkaWorld(settings)).toThrow(message)
  })

  test.each([1, 2_000])('and one that it takes: %d pollers', (pollers) => {
    expect(() => new KafkaWorld({ pollers })).not.toThrow()
  })

  test('an ARN that is none of MSK', () => {
    expect(() => new KafkaWorld({}, { format: { clusterArn: 'arn:aws:kinesis:us-east-1:0:stream/x' } })).toThrow(
      'is not the ARN of an MSK cluster',
    )
  })
})

test('reported records come again, and a poller goes on with nothing newer before them', async () => {
  const world = new KafkaWorld({ batchSize: 3 })
  world.put(0, 'a', 'b', 'c', 'd')
  world.answer = (_, index) => (index === 0 ? reportsItems('0:1', '0:2') : answered(null))
  await world.run(5_000)
  expect(world.batches).toEqual(['0:0 0:1 0:2', '0:1 0:2', '0:3'])
})
