import { functionArn, MappingWorld, s0, streamArn } from './mapping-world.ts'
import { answered, failed, reports, throttled } from './memory-ports.ts'

function worldWith(count: number, settings: ConstructorParameters<typeof MappingWorld>[0] = {}) {
  const world = new MappingWorld(settings)
  for (let sequence = 1; sequence <= count; sequence += 1) world.stream.put(s0, sequence)
  return world
}

describe('retries and their counting (1.5)', () => {
  test.each([1, 2, 3])(
    '[R] MaximumRetryAttempts %i gives one invocation more, and the envelope counts them',
    async (retries) => {
      const world = worldWith(1, { maximumRetryAttempts: retries })
      world.invoker.answer = () => failed()
      await world.run(60_000)
      expect(world.invoker.deliveries).toHaveLength(retries + 1)
      expect(world.destination.envelopes[0]?.requestContext.approximateInvokeCount).toBe(retries + 1)
      await world.stop()
    },
  )

  test('[R] an always failing handler is invoked eight times within a maximum age of 60 s', async () => {
    const world = worldWith(1, { maximumRecordAgeInSeconds: 60 })
    world.invoker.answer = () => failed()
    await world.run(60_001)
    // At the moment at which it is too old, not at the end of the wait before the next attempt.
    expect(world.destination.envelopes).toHaveLength(1)
    expect(world.destination.envelopes[0]?.requestContext).toMatchObject({
      condition: 'RecordAgeExceeded',
      approximateInvokeCount: 8,
    })
    await world.stop()
  })

  test('[D] a throttle does not count as an attempt', async () => {
    const world = worldWith(1, { maximumRetryAttempts: 0 })
    world.invoker.answer = (_, index) => (index < 5 ? throttled : answered(null))
    await world.run(60_000)
    expect(world.invoker.deliveries).toHaveLength(6)
    expect(world.destination.messages).toEqual([])
    expect(world.checkpoints.at(s0)).toBe('1')
    await world.stop()
  })

  test('an invoker that rejects counts as not run', async () => {
    const world = worldWith(1, { maximumRetryAttempts: 0 })
    world.invoker.answer = (_, index) => {
      if (index === 0) throw new Error('no environment')
      return answered(null)
    }
    await world.run(400)
    expect(world.shard()).toMatchObject({ state: 'running' })
    await world.run(10_000)
    expect(world.checkpoints.at(s0)).toBe('1')
    expect(world.destination.messages).toEqual([])
    await world.stop()
  })

  test('[R] BatchSize 3, R = 3, the last record always reported: it is delivered five times and the envelope says 4', async () => {
    const world = worldWith(3, { batchSize: 3, maximumRetryAttempts: 3 })
    world.invoker.answer = () => reports('3')
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2 3', '3', '3', '3', '3'])
    expect(world.destination.envelopes).toHaveLength(1)
    expect(world.destination.envelopes[0]).toMatchObject({
      requestContext: { condition: 'RetryAttemptsExhausted', approximateInvokeCount: 4 },
      KinesisBatchInfo: { startSequenceNumber: '3', batchSize: 1 },
    })
    await world.stop()
  })

  test('[I] progress after failures starts a fresh budget of 1 + R for the rest', async () => {
    const world = worldWith(3, { maximumRetryAttempts: 1 })
    world.invoker.answer = (_, index) => (index === 1 ? reports('3') : failed())
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2 3', '1 2 3', '3', '3'])
    expect(world.destination.envelopes.map((envelope) => envelope.requestContext.approximateInvokeCount)).toEqual([2])
    await world.stop()
  })

  test('[R] a report that names the first record makes no progress and spends the budget', async () => {
    const world = worldWith(3, { maximumRetryAttempts: 1 })
    world.invoker.answer = ({ sequenceNumbers }) => reports(sequenceNumbers[0])
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2 3', '1 2 3'])
    await world.stop()
  })

  test('[R] a partial failure that exhausts its retries carries functionError null; a throw carries Unhandled', async () => {
    for (const [outcome, functionError] of [
      [reports('1'), null],
      [failed(), 'Unhandled'],
    ] as const) {
      const world = worldWith(1, { maximumRetryAttempts: 0 })
      world.invoker.answer = () => outcome
      await world.run(1_000)
      expect(world.destination.envelopes[0]?.responseContext).toEqual({
        statusCode: 200,
        executedVersion: '$LATEST',
        functionError,
      })
      await world.stop()
    }
  })

  test('[D] after exhaustion the batch is reported and the shard moves on', async () => {
    const world = worldWith(4, { batchSize: 2, maximumRetryAttempts: 0 })
    world.invoker.answer = (_, index) => (index === 0 ? failed() : answered(null))
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['1 2', '3 4'])
    expect(world.checkpoints.at(s0)).toBe('4')
    await world.stop()
  })

  test('[I] a batch that is tried again stays as it was, or is filled up with what came since where the option says so', async () => {
    for (const [retriedBatch, batches] of [
      ['stays', ['1 2', '1 2', '3 4', '5']],
      ['regroups', ['1 2', '1 2 3 4', '5']],
    ] as const) {
      const world = new MappingWorld({ batchSize: 4, emulation: { retriedBatch, pollIntervalMs: 100 } })
      world.invoker.answer = (_, index) => (index === 0 ? failed() : answered(null))
      for (const sequence of [1, 2]) world.stream.put(s0, sequence)
      await world.run(50)
      for (const sequence of [3, 4]) world.stream.put(s0, sequence)
      await world.clock.advance(1_000)
      world.stream.put(s0, 5)
      await world.clock.advance(1_000)
      expect(world.invoker.batches).toEqual(batches)
      expect(world.checkpoints.at(s0)).toBe('5')
      await world.stop()
    }
  })

  test('[I] unless an option says otherwise, a batch that is tried again stays as it was', async () => {
    const world = new MappingWorld({ batchSize: 4 })
    world.invoker.answer = (_, index) => (index < 2 ? failed() : answered(null))
    for (const sequence of [1, 2]) world.stream.put(s0, sequence)
    await world.run(50)
    // They are read before the third attempt.
    for (const sequence of [3, 4]) world.stream.put(s0, sequence)
    await world.clock.advance(10_000)
    expect(world.invoker.batches).toEqual(['1 2', '1 2', '1 2', '3 4'])
    await world.stop()
  })

  test('without limits a failing batch blocks its shard, and the status says why', async () => {
    const world = worldWith(4, { batchSize: 2 })
    world.invoker.answer = () => failed('Error: no table')
    await world.run(3_600_000)
    expect(new Set(world.invoker.batches)).toEqual(new Set(['1 2']))
    expect(world.checkpoints.at(s0)).toBeUndefined()
    expect(world.shard()).toMatchObject({ state: 'retrying', reason: 'Error: no table', unfinished: 4 })
    await world.stop()
  })

  test('the wait before the next attempt grows exponentially up to its limit', async () => {
    const emulation = { backoff: { initialMs: 100, factor: 2, maxMs: 500 } }
    const world = worldWith(1, { emulation })
    world.invoker.answer = () => failed()
    await world.run(2_000)
    const times = world.invoker.deliveries.map((delivery) => delivery.atMs)
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(waits).toEqual([100, 200, 400, 500, 500])
    await world.stop()
  })
})

describe('bisecting (1.5, 1.6)', () => {
  test('[D] a failing batch is halved until the bad record is alone, at no cost to the budget', async () => {
    const world = worldWith(4, { bisectBatchOnFunctionError: true, maximumRetryAttempts: 1 })
    world.invoker.answer = ({ sequenceNumbers }) => (sequenceNumbers.includes('3') ? failed() : answered(null))
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2 3 4', '1 2', '3 4', '3', '3', '4'])
    expect(world.destination.envelopes).toHaveLength(1)
    expect(world.destination.envelopes[0]).toMatchObject({
      requestContext: { approximateInvokeCount: 2 },
      KinesisBatchInfo: { startSequenceNumber: '3', endSequenceNumber: '3', batchSize: 1 },
    })
    await world.stop()
  })

  test('[D] a partial response cuts at the returned record instead of halving', async () => {
    const world = worldWith(6, { bisectBatchOnFunctionError: true })
    world.invoker.answer = (_, index) => (index === 0 ? reports('6') : answered(null))
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2 3 4 5 6', '6'])
    await world.stop()
  })

  test('[D] a plain failure is halved although ReportBatchItemFailures is on', async () => {
    const world = worldWith(2, { bisectBatchOnFunctionError: true })
    world.invoker.answer = (_, index) => (index === 0 ? failed() : answered(null))
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['1 2', '1', '2'])
    await world.stop()
  })
})

describe('maximum record age (1.5)', () => {
  test('[R] one old and five fresh records in one read: the old one is reported alone, the fresh ones are delivered', async () => {
    const world = new MappingWorld({ maximumRecordAgeInSeconds: 60 })
    world.stream.put(s0, 1, { arrivalMs: world.clock.nowMs() - 61_000 })
    for (const sequence of [2, 3, 4, 5, 6]) world.stream.put(s0, sequence)
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['2 3 4 5 6'])
    expect(world.destination.envelopes.map((envelope) => envelope.KinesisBatchInfo)).toMatchObject([
      { startSequenceNumber: '1', batchSize: 1 },
    ])
    await world.stop()
  })

  test('[R] a record that is too old when it is read counts one invocation although the function never ran', async () => {
    const world = new MappingWorld({ maximumRecordAgeInSeconds: 60 })
    world.stream.put(s0, 1, { arrivalMs: world.clock.nowMs() - 61_000 })
    await world.run(1_000)
    expect(world.invoker.deliveries).toEqual([])
    expect(world.destination.envelopes[0]?.requestContext).toMatchObject({
      condition: 'RecordAgeExceeded',
      approximateInvokeCount: 1,
    })
    expect(world.checkpoints.at(s0)).toBe('1')
    await world.stop()
  })

  test('[R] with RecordAgeExceeded there is no responseContext', async () => {
    const world = new MappingWorld({ maximumRecordAgeInSeconds: 60 })
    world.stream.put(s0, 1, { arrivalMs: world.clock.nowMs() - 61_000 })
    await world.run(1_000)
    expect(Object.keys(world.destination.envelopes[0] ?? {})).not.toContain('responseContext')
    await world.stop()
  })

  test('throttled records end by age too', async () => {
    const world = worldWith(1, { maximumRecordAgeInSeconds: 60, maximumRetryAttempts: 0 })
    world.invoker.answer = () => throttled
    await world.run(61_000)
    expect(world.shard()).toMatchObject({ unfinished: 0, position: '1' })
    expect(world.destination.envelopes[0]?.requestContext.condition).toBe('RecordAgeExceeded')
    await world.stop()
  })

  test('what the stream itself let go of is dropped without a message', async () => {
    const world = worldWith(1, { emulation: { retentionMs: 30_000 } })
    world.invoker.answer = () => failed()
    await world.run(40_000)
    expect(world.destination.messages).toEqual([])
    expect(world.mapping.status().counters.droppedEvents).toBe(1)
    expect(world.checkpoints.at(s0)).toBe('1')
    await world.stop()
  })
})

describe('the on-failure destination (1.7)', () => {
  test('[R] the envelope for SQS and SNS is exact, its times have milliseconds, and it carries no payload', async () => {
    const world = new MappingWorld({ maximumRetryAttempts: 0 })
    const startMs = world.clock.nowMs()
    world.stream.put(s0, 1, { arrivalMs: startMs - 1_551 })
    world.stream.put(s0, 2, { arrivalMs: startMs - 7 })
    world.invoker.answer = () => failed()
    await world.run(1_000)
    expect(world.destination.messages[0]?.envelope).toEqual({
      requestContext: {
        requestId: world.invoker.deliveries[0]?.info.requestId,
        functionArn,
        condition: 'RetryAttemptsExhausted',
        approximateInvokeCount: 1,
      },
      responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
      version: '1.0',
      timestamp: '2026-01-01T00:00:00.000Z',
      KinesisBatchInfo: {
        shardId: s0,
        startSequenceNumber: '1',
        endSequenceNumber: '2',
        approximateArrivalOfFirstRecord: '2025-12-31T23:59:58.449Z',
        approximateArrivalOfLastRecord: '2025-12-31T23:59:59.993Z',
        batchSize: 2,
        streamArn,
      },
    })
    await world.stop()
  })

  test('[R] S3 receives the whole event as text, under the key that was recorded', async () => {
    const world = worldWith(1, { maximumRetryAttempts: 0 })
    world.destination.carriesPayload = true
    world.invoker.answer = () => failed()
    await world.run(1_000)
    const [message] = world.destination.messages
    expect(JSON.parse(world.destination.envelopes[0]?.payload ?? '')).toEqual(world.invoker.events[0])
    expect(message?.objectKey).toMatch(
      new RegExp(`^aws/lambda/${world.settings.uuid}/${s0}/2026/01/01/2026-01-01T00\\.00\\.00-[0-9a-f-]{36}$`),
    )
    await world.stop()
  })

  test('[D] when delivery fails the events count as dropped and the stream moves on', async () => {
    const world = worldWith(2, { batchSize: 1, maximumRetryAttempts: 0 })
    world.destination.failure = 'queue is gone'
    world.invoker.answer = (_, index) => (index === 0 ? failed() : answered(null))
    await world.run(1_000)
    expect(world.mapping.status().counters).toMatchObject({ destinationDeliveryFailures: 1, droppedEvents: 1 })
    expect(world.checkpoints.at(s0)).toBe('2')
    await world.stop()
  })
})
