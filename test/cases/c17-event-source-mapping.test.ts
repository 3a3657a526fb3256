import { MappingWorld, s0 } from '../emulator/event-source-mapping/mapping-world.ts'
import { reports } from '../emulator/event-source-mapping/memory-ports.ts'

const filteredBy = (pattern: object) => ({ filterCriteria: { filters: [{ pattern: JSON.stringify(pattern) }] } })

describe('C17', () => {
  test('retries 2, the first of [1, 2] always reported: three attempts, one message that starts at 1, then the shard moves on', async () => {
    const world = new MappingWorld({ maximumRetryAttempts: 2, batchSize: 2 })
    world.stream.put(s0, 1)
    world.stream.put(s0, 2)
    world.invoker.answer = ({ sequenceNumbers }) => reports(...sequenceNumbers.filter((number) => number === '1'))
    await world.run(30_000)
    world.stream.put(s0, 3)
    await world.clock.advance(2_000)
    expect(world.invoker.batches).toEqual(['1 2', '1 2', '1 2', '3'])
    expect(world.destination.envelopes).toHaveLength(1)
    expect(world.destination.envelopes[0]?.KinesisBatchInfo.startSequenceNumber).toBe('1')
    expect(world.checkpoints.at(s0)).toBe('3')
    await world.stop()
  })

  test('[R] a filter that matches none of [1, 2, 3] invokes nothing and still advances', async () => {
    const world = new MappingWorld(filteredBy({ data: { v: [9] } }))
    for (const v of [1, 2, 3]) world.stream.put(s0, v, { json: { v } })
    await world.run(2_000)
    expect(world.invoker.deliveries).toEqual([])
    expect(world.checkpoints.at(s0)).toBe('3')
    await world.stop()
  })

  test('a filter that matches only 2 delivers only 2', async () => {
    const world = new MappingWorld(filteredBy({ data: { v: [2] } }))
    for (const v of [1, 2, 3]) world.stream.put(s0, v, { json: { v } })
    await world.run(2_000)
    expect(world.invoker.batches).toEqual(['2'])
    expect(world.checkpoints.at(s0)).toBe('3')
    await world.stop()
  })
})
