import fc from 'fast-check'
import { laneOf, nextBatch, windowEndMs } from '../../../lib/emulator/event-source-mapping/batching.ts'
import { buildKinesisEvent, kinesisFormat } from '../../../lib/emulator/event-source-mapping/index.ts'
import { MappingWorld, s0, streamArn } from './mapping-world.ts'
import { answered, type Delivery, failed } from './memory-ports.ts'

describe('what closes a batch (1.2)', () => {
  test('[R] BatchSize 100 with a window of 0 is accepted: what was read is delivered at once', async () => {
    const world = new MappingWorld({ batchSize: 100, maximumBatchingWindowInSeconds: 0 })
    world.stream.put(s0, 1)
    world.stream.put(s0, 2)
    await world.run(0)
    expect(world.invoker.batches).toEqual(['1 2'])
    await world.stop()
  })

  test('BatchSize closes it before the window does', async () => {
    const world = new MappingWorld({ batchSize: 2, maximumBatchingWindowInSeconds: 60 })
    for (const sequence of [1, 2, 3]) world.stream.put(s0, sequence)
    await world.run(10_000)
    expect(world.invoker.batches).toEqual(['1 2'])
    await world.clock.advance(50_000)
    expect(world.invoker.batches).toEqual(['1 2', '3'])
    await world.stop()
  })

  test('[D23] the next window begins when the previous invocation completes', async () => {
    const world = new MappingWorld({ batchSize: 10, maximumBatchingWindowInSeconds: 10 })
    const startMs = world.clock.nowMs()
    world.invoker.answer = async () => {
      await world.clock.sleep(3_000)
      return answered(null)
    }
    world.stream.put(s0, 1)
    await world.run(11_000)
    world.stream.put(s0, 2)
    await world.clock.advance(20_000)
    expect(world.invoker.deliveries.map(({ atMs }) => atMs - startMs)).toEqual([10_000, 23_000])
    await world.stop()
  })

  test('6 MB of JSON close it, with base64 counted: 4 MiB of data fit, 5 MiB do not', async () => {
    const world = new MappingWorld()
    for (let sequence = 1; sequence <= 5; sequence += 1) {
      world.stream.put(s0, sequence, { data: new Uint8Array(1024 * 1024) })
    }
    await world.run(1_000)
    expect(world.invoker.batches).toEqual(['1 2 3 4', '5'])
    await world.stop()
  })

  test('a record that is too large even alone blocks the shard visibly and never reaches the function', async () => {
    const world = new MappingWorld({ maximumRetryAttempts: 0 })
    world.stream.put(s0, 1, { data: new Uint8Array(5 * 1024 * 1024) })
    await world.run(60_000)
    expect(world.invoker.deliveries).toEqual([])
    expect(world.shard()).toMatchObject({
      state: 'blocked',
      reason: expect.stringContaining('above the limit of 6291456'),
    })
    await world.stop()
  })

  test('[I] where the option says so, each try of it counts, and it ends in the destination', async () => {
    const world = new MappingWorld({ maximumRetryAttempts: 1, emulation: { oversizeRecord: 'function-error' } })
    world.stream.put(s0, 1, { data: new Uint8Array(5 * 1024 * 1024) })
    world.stream.put(s0, 2)
    await world.run(60_000)
    expect(world.invoker.batches).toEqual(['2'])
    expect(world.destination.envelopes).toMatchObject([
      { requestContext: { approximateInvokeCount: 2 }, KinesisBatchInfo: { startSequenceNumber: '1', batchSize: 1 } },
    ])
    await world.stop()
  })

  test('the bytes of a batch are those of its JSON, whatever is in the record', () => {
    const format = kinesisFormat({ streamArn })
    const record = fc.record({
      sequenceNumber: fc.bigInt({ min: 1n, max: 10n ** 56n }).map(String),
      partitionKey: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
      data: fc.uint8Array({ maxLength: 50 }),
      arrivalMs: fc.integer({ min: 0, max: 2 ** 41 }),
    })
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 5 }), (records) => {
        const json = JSON.stringify(format.event(records, s0))
        const counted = records.reduce((sum, one) => sum + format.eventBytes(one, s0), format.emptyEventBytes)
        // The first record has no comma before it.
        expect(counted - 1).toBe(Buffer.byteLength(json))
      }),
    )
  })

  test('a batch is the longest prefix within both limits, and at least one record', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 10, max: 100 }),
        (sizes, batchSize, maxPayloadBytes) => {
          const waiting = sizes.map((eventBytes) => ({ eventBytes }))
          const rules = { batchSize, windowMs: 0, maxPayloadBytes, emptyEventBytes: 5 }
          const { count, isFull } = nextBatch(waiting, rules)
          const bytes = (n: number) => sizes.slice(0, n).reduce((sum, size) => sum + size, 5)
          expect(count).toBeGreaterThan(0)
          expect(count === 1 || bytes(count) <= maxPayloadBytes).toBe(true)
          const couldGrow = count < batchSize && count < sizes.length && bytes(count + 1) <= maxPayloadBytes
          expect(couldGrow).toBe(false)
          expect(isFull).toBe(count === batchSize || count < sizes.length)
        },
      ),
    )
  })

  test('an empty window is followed by another, on the same grid', () => {
    expect(windowEndMs(0, 5_000, 10_000)).toBe(10_000)
    expect(windowEndMs(0, 10_000, 10_000)).toBe(20_000)
    expect(windowEndMs(0, 34_000, 10_000)).toBe(40_000)
  })
})

describe('lanes (1.3)', () => {
  const keys = ['a', 'b', 'c', 'd', 'e', 'f']
  const keyOfLane = (lane: number) => keys.find((key) => laneOf(key, 2) === lane) ?? 'none'

  test('with a factor of 1 one batch is in flight', async () => {
    const world = new MappingWorld({ batchSize: 1 })
    let inFlight = 0
    let most = 0
    world.invoker.answer = async () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      await world.clock.sleep(10)
      inFlight -= 1
      return answered(null)
    }
    for (let sequence = 1; sequence <= 20; sequence += 1)
      world.stream.put(s0, sequence, { partitionKey: `${sequence}` })
    await world.run(1_000)
    expect(most).toBe(1)
    expect(world.invoker.batches).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 1)))
    await world.stop()
  })

  test('with a factor of n up to n batches of a shard are in flight, and a key stays in its lane', async () => {
    const world = new MappingWorld({ parallelizationFactor: 2, batchSize: 1 })
    // Not in step with the sequence numbers, so that lanes by number would be seen.
    const keyOf = (sequence: number) => keys[(sequence * sequence) % 7] ?? 'a'
    let inFlight = 0
    let most = 0
    world.invoker.answer = async () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      await world.clock.sleep(10)
      inFlight -= 1
      return answered(null)
    }
    for (let sequence = 1; sequence <= 20; sequence += 1) {
      world.stream.put(s0, sequence, { partitionKey: keyOf(sequence) })
    }
    await world.run(1_000)
    expect(most).toBe(2)
    for (const key of new Set(Array.from({ length: 20 }, (_, index) => keyOf(index + 1)))) {
      const lanes = world.invoker.deliveries.filter((d) => keyOf(Number(d.sequenceNumbers[0])) === key)
      expect(new Set(lanes.map((delivery) => delivery.info.lane)).size).toBe(1)
    }
    await world.stop()
  })

  test('[I] the checkpoint stays at the lowest unfinished position over the lanes; a restart delivers the rest again', async () => {
    const world = new MappingWorld({ parallelizationFactor: 2, batchSize: 1 })
    const isBad = ({ sequenceNumbers }: Delivery) => sequenceNumbers.includes('2')
    world.stream.put(s0, 1, { partitionKey: keyOfLane(1) })
    world.stream.put(s0, 2, { partitionKey: keyOfLane(0) })
    world.stream.put(s0, 3, { partitionKey: keyOfLane(1) })
    world.invoker.answer = (delivery) => (isBad(delivery) ? failed() : answered(null))
    await world.run(1_000)
    expect(world.invoker.batches).toContain('3')
    expect(world.checkpoints.at(s0)).toBe('1')
    await world.stop()
    world.invoker.deliveries.length = 0
    world.invoker.answer = () => answered(null)
    world.mapping = world.create()
    await world.run(1_000)
    expect([...world.invoker.batches].sort()).toEqual(['2', '3'])
    expect(world.checkpoints.at(s0)).toBe('3')
    await world.stop()
  })

  test('[I] which key goes to which lane is an option', async () => {
    const laneOf = (key: string) => (key === 'a' ? 1 : 0)
    const world = new MappingWorld({ parallelizationFactor: 2, emulation: { laneOf } })
    for (const [index, partitionKey] of ['a', 'b', 'c'].entries()) world.stream.put(s0, index + 1, { partitionKey })
    await world.run(1_000)
    expect(world.invoker.deliveries.map(({ info, sequenceNumbers }) => [info.lane, sequenceNumbers.join(' ')])).toEqual(
      expect.arrayContaining([
        [0, '2 3'],
        [1, '1'],
      ]),
    )
    await world.stop()
  })

  test('[I] a failing lane stops only itself, or its whole shard where the option says so', async () => {
    for (const [failingLane, delivered] of [
      ['blocks-lane', true],
      ['blocks-shard', false],
    ] as const) {
      const world = new MappingWorld({ parallelizationFactor: 2, batchSize: 1, emulation: { failingLane } })
      world.stream.put(s0, 1, { partitionKey: keyOfLane(0) })
      world.invoker.answer = ({ sequenceNumbers }) => (sequenceNumbers.includes('1') ? failed() : answered(null))
      await world.run(100)
      world.stream.put(s0, 2, { partitionKey: keyOfLane(1) })
      await world.clock.advance(10_000)
      expect(world.invoker.batches.includes('2')).toBe(delivered)
      await world.stop()
    }
  })
})

test('[R] the event is exactly what AWS sends (1.10)', () => {
  const record = { sequenceNumber: '49', partitionKey: 'k', data: Buffer.from('{"v":1}'), arrivalMs: 1_671_562_498_449 }
  const event = buildKinesisEvent([record], s0, {
    streamArn,
    invokeIdentityArn: 'arn:aws:iam::000000000000:role/r',
  })
  expect(event).toEqual({
    Records: [
      {
        kinesis: {
          kinesisSchemaVersion: '1.0',
          partitionKey: 'k',
          sequenceNumber: '49',
          data: 'eyJ2IjoxfQ==',
          approximateArrivalTimestamp: 1671562498.449,
        },
        eventSource: 'aws:kinesis',
        eventVersion: '1.0',
        eventID: `${s0}:49`,
        eventName: 'aws:kinesis:record',
        invokeIdentityArn: 'arn:aws:iam::000000000000:role/r',
        awsRegion: 'us-east-1',
        eventSourceARN: streamArn,
      },
    ],
  })
})
