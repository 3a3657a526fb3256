/** What becomes of a Kafka batch that fails. Tags are those of the facts that are known of AWS. */

import { clusterArn, KafkaWorld, reportsItems, topic } from './kafka-world.ts'
import { answered, failed, throttled } from './memory-ports.ts'

/** Polls seldom, for tests that let much time pass. */
const idle = { emulation: { pollIntervalMs: 60_000 } }

const item = (partition: unknown, offset: unknown) =>
  answered({ batchItemFailures: [{ itemIdentifier: { partition, offset } }] })

describe('on-demand mode', () => {
  test('[D] the whole batch comes again until it succeeds, and nothing of it is committed before', async () => {
    const world = new KafkaWorld({ mode: 'on-demand', ...idle })
    world.put(0, 'a', 'b')
    world.put(1, 'c')
    world.answer = (_, index) => (index < 12 ? failed() : answered(null))
    await world.run(200_000)
    expect(world.committed).toEqual({})
    await world.clock.advance(600_000)
    expect(world.batches).toEqual(Array.from({ length: 13 }, () => '0:0 0:1 1:0'))
    expect(world.committed).toEqual({ 0: 2, 1: 1 })
  })

  test('[D] a partial answer is ignored: all of the batch counts as done', async () => {
    const world = new KafkaWorld({ mode: 'on-demand' })
    world.put(0, 'a', 'b')
    world.answer = () => reportsItems('0:0')
    await world.run(60_000)
    expect([world.batches, world.committed]).toEqual([['0:0 0:1'], { 0: 2 }])
  })

  test('[I] limits of retries and age, and bisecting, count for nothing', async () => {
    const world = new KafkaWorld(
      {
        mode: 'on-demand',
        maximumRetryAttempts: 1,
        maximumRecordAgeInSeconds: 60,
        bisectBatchOnFunctionError: true,
        ...idle,
      },
      { hasDestination: true },
    )
    world.put(0, 'a', 'b')
    world.answer = () => failed()
    await world.run(300_000)
    expect(world.deliveries.length).toBeGreaterThan(8)
    expect(new Set(world.batches)).toEqual(new Set(['0:0 0:1']))
    expect(world.destination.messages).toEqual([])
  })

  test('[D] a batch that expires is gone, and the partition goes on', async () => {
    const world = new KafkaWorld({ mode: 'on-demand', emulation: { retentionMs: 30_000 } })
    world.put(0, 'a')
    world.answer = ({ records }) => (records.includes('0:0') ? failed() : answered(null))
    await world.run(29_000)
    world.put(0, 'b')
    await world.clock.advance(60_000)
    expect(world.batches.at(-1)).toBe('0:1')
    expect(world.committed).toEqual({ 0: 2 })
    expect(world.mapping.status().counters.droppedEvents).toBe(1)
  })

  test('partitions that share a poller wait for the batch that fails', async () => {
    const world = new KafkaWorld({ mode: 'on-demand' })
    world.put(0, 'bad')
    world.answer = ({ records }) => (records.includes('0:0') ? failed() : answered(null))
    await world.run()
    world.put(1, 'a')
    await world.clock.advance(30_000)
    expect(new Set(world.batches)).toEqual(new Set(['0:0']))
    world.mapping.rebalance(2)
    await world.clock.advance(5_000)
    expect(world.batches).toContain('1:0')
  })
})

describe('partial answers in provisioned mode', () => {
  test('[D] the reported records come again, and no others', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b', 'c')
    world.put(1, 'd', 'e')
    world.answer = (_, index) => (index === 0 ? reportsItems('0:1', '1:0') : answered(null))
    await world.run(5_000)
    expect(world.batches).toEqual(['0:0 0:1 0:2 1:0 1:1', '0:1 1:0'])
    expect(world.committed).toEqual({ 0: 3, 1: 2 })
  })

  test('[I] or, where AWS should do so, with all that lies behind them in their partition', async () => {
    const world = new KafkaWorld({}, { format: { retriedItems: 'and-later' } })
    world.put(0, 'a', 'b', 'c')
    world.put(1, 'd', 'e')
    world.answer = (_, index) => (index === 0 ? reportsItems('0:1') : answered(null))
    await world.run(5_000)
    expect(world.batches).toEqual(['0:0 0:1 0:2 1:0 1:1', '0:1 0:2'])
  })

  test('[I] a commit stays before the first that is not done, whatever behind it is', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b', 'c')
    world.answer = () => reportsItems('0:1')
    await world.run(5_000)
    expect(world.committed).toEqual({ 0: 1 })
    await world.stop()
    world.answer = () => answered(null)
    await world.run(5_000)
    expect(world.batches.at(-1)).toBe('0:1 0:2')
  })

  test.each([
    ['an empty answer', ''],
    ['null', null],
    ['an empty object', {}],
    ['an empty list', { batchItemFailures: [] }],
  ])('[D] %s is success', async (_, payload) => {
    const world = new KafkaWorld()
    world.put(0, 'a')
    world.answer = () => answered(payload)
    await world.run(5_000)
    expect([world.batches, world.committed]).toEqual([['0:0'], { 0: 1 }])
  })

  test.each([
    ['[D] an offset that is not in the batch', item(`${topic}-0`, 9)],
    ['[D] a partition that is not in the batch', item(`${topic}-7`, 0)],
    ['[D] a partition without its topic', item('0', 0)],
    ['[I] an offset as text', item(`${topic}-0`, '0')],
    ['[I] an identifier as of Kinesis', answered({ batchItemFailures: [{ itemIdentifier: '0' }] })],
    ['[I] no identifier', answered({ batchItemFailures: [{}] })],
  ])('%s: the whole batch comes again', async (_, outcome) => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b')
    world.answer = (_delivery, index) => (index === 0 ? outcome : answered(null))
    await world.run(5_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:0 0:1'])
  })

  test('one unknown item beside known ones fails the whole batch', async () => {
    const world = new KafkaWorld()
    world.put(0, 'a', 'b')
    world.answer = (_, index) => (index === 0 ? reportsItems('0:1', '0:7') : answered(null))
    await world.run(5_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:0 0:1'])
  })

  test('[I] without ReportBatchItemFailures every answer is success', async () => {
    const world = new KafkaWorld({ functionResponseTypes: [] })
    world.put(0, 'a')
    world.answer = () => reportsItems('0:0')
    await world.run(5_000)
    expect([world.batches, world.committed]).toEqual([['0:0'], { 0: 1 }])
  })
})

describe('retries in provisioned mode', () => {
  test('[D] with a destination, infinite retries end after ten', async () => {
    const world = new KafkaWorld(idle, { hasDestination: true })
    world.put(0, 'a')
    world.answer = () => failed()
    await world.run(3_600_000)
    expect(world.batches).toHaveLength(11)
    expect(world.committed).toEqual({ 0: 1 })
  })

  test('[D] without one they do not', async () => {
    const world = new KafkaWorld(idle)
    world.put(0, 'a')
    world.answer = () => failed()
    await world.run(3_600_000)
    expect(world.batches.length).toBeGreaterThan(11)
    expect(world.committed).toEqual({})
  })

  test('[I] progress begins a fresh budget, as recorded for streams', async () => {
    const world = new KafkaWorld({ maximumRetryAttempts: 1 }, { hasDestination: true })
    world.put(0, 'a', 'b')
    world.answer = () => reportsItems('0:1')
    await world.run(60_000)
    expect(world.batches).toEqual(['0:0 0:1', '0:1', '0:1'])
  })

  test('[D] a throttle spends no retry', async () => {
    const world = new KafkaWorld({ maximumRetryAttempts: 0 })
    world.put(0, 'a')
    world.answer = (_, index) => (index < 5 ? throttled : answered(null))
    await world.run(60_000)
    expect(world.batches).toHaveLength(6)
    expect(world.mapping.status().counters.droppedEvents).toBe(0)
  })

  test('[D] bisecting halves a batch until the bad record is alone; its halves go in order', async () => {
    const world = new KafkaWorld({ bisectBatchOnFunctionError: true, maximumRetryAttempts: 0 })
    world.put(0, 'a', 'bad')
    world.put(1, 'c', 'd')
    world.answer = ({ records }) => (records.includes('0:1') ? failed() : answered(null))
    await world.run(60_000)
    expect(world.batches).toEqual(['0:0 0:1 1:0 1:1', '0:0 0:1', '0:0', '0:1', '1:0 1:1'])
    expect(world.committed).toEqual({ 0: 2, 1: 2 })
  })

  test('[D] a record older than the maximum age is given up, its neighbours are delivered', async () => {
    const world = new KafkaWorld({ maximumRecordAgeInSeconds: 60 }, { hasDestination: true })
    world.put(0, { value: Buffer.from('old'), timestampMs: world.clock.nowMs() - 61_000 }, 'young')
    await world.run(5_000)
    expect(world.batches).toEqual(['0:1'])
    expect(world.destination.envelopes).toMatchObject([
      {
        requestContext: { condition: 'RecordAgeExceeded' },
        KafkaBatchInfo: { batchSize: 1, recordInfo: { offset: 0 } },
      },
    ])
    expect(world.committed).toEqual({ 0: 2 })
  })
})

describe('the record of a failure', () => {
  const exhausted = async (carriesPayload: boolean) => {
    const world = new KafkaWorld({ maximumRetryAttempts: 1 }, { hasDestination: true })
    world.destination.carriesPayload = carriesPayload
    world.put(1, { key: Buffer.from('k-1'), value: Buffer.from('a') }, 'b')
    world.answer = () => failed()
    await world.run(60_000)
    expect(world.destination.messages).toHaveLength(1)
    return { world, message: world.destination.messages[0] }
  }

  test('[D] has KafkaBatchInfo, and what the documentation calls RetriesExhausted', async () => {
    const { world, message } = await exhausted(false)
    const payloadSize = Buffer.byteLength(JSON.stringify(world.deliveries[0]?.event))
    expect(message?.envelope).toEqual({
      requestContext: {
        requestId: expect.any(String),
        functionArn: world.settings.functionArn,
        condition: 'RetriesExhausted',
        approximateInvokeCount: 2,
      },
      responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
      version: '1.0',
      timestamp: expect.any(String),
      KafkaBatchInfo: {
        batchSize: 2,
        eventSourceArn: clusterArn,
        bootstrapServers: 'b-1.test:9098',
        payloadSize,
        recordInfo: { offset: 0, timestamp: expect.any(Number) },
      },
    })
  })

  test('[D] S3 and a topic also get the payload, a topic under the key of the record', async () => {
    const { world, message } = await exhausted(true)
    expect(JSON.parse(String(message?.envelope.payload))).toEqual(world.deliveries[0]?.event)
    expect(Buffer.from(message?.key ?? []).toString()).toBe('k-1')
  })

  test('a destination that does not take it is counted, and the partition goes on', async () => {
    const world = new KafkaWorld({ maximumRetryAttempts: 0 }, { hasDestination: true })
    world.destination.failure = 'no such topic'
    world.put(0, 'a')
    world.answer = () => failed()
    await world.run(5_000)
    expect(world.mapping.status().counters).toMatchObject({ destinationDeliveryFailures: 1, droppedEvents: 1 })
    expect(world.committed).toEqual({ 0: 1 })
  })
})
