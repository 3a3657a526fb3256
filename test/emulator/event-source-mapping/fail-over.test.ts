import { MappingWorld, s0 } from './mapping-world.ts'
import { answered, failed } from './memory-ports.ts'

/** Three batches of two; the second takes 5 s, and notes what it does when it ends. */
async function inFlight() {
  const world = new MappingWorld({ batchSize: 2 })
  const effects: string[] = []
  world.invoker.answer = async ({ sequenceNumbers }, index) => {
    if (index === 1) await world.clock.sleep(5_000)
    effects.push(...sequenceNumbers)
    return answered(null)
  }
  for (const sequence of [1, 2, 3, 4, 5, 6]) world.stream.put(s0, sequence)
  await world.run(1_000)
  expect(world.invoker.batches).toEqual(['1 2', '3 4'])
  return { world, effects }
}

describe('a poller that another one takes over from (1.3, 1.13)', () => {
  test('[D23] the new poller begins after what is saved: what was in flight is delivered twice, and its effects land late', async () => {
    const { world, effects } = await inFlight()
    world.mapping.failOver(s0)
    await world.clock.advance(1_000)
    expect(world.invoker.batches).toEqual(['1 2', '3 4', '3 4', '5 6'])
    await world.clock.advance(10_000)
    expect(effects).toEqual(['1', '2', '3', '4', '5', '6', '3', '4'])
    await world.stop()
  })

  test('[D] an older checkpoint is replayed, and the records come again, out of order', async () => {
    const { world, effects } = await inFlight()
    world.mapping.failOver(s0, { at: 'trim-horizon' })
    await world.clock.advance(10_000)
    expect(world.invoker.batches).toEqual(['1 2', '3 4', '1 2', '3 4', '5 6'])
    expect(effects).toEqual(['1', '2', '1', '2', '3', '4', '5', '6', '3', '4'])
    await world.stop()
  })

  test('the old poller saves nothing any more: the checkpoint is what the new one has done', async () => {
    const { world } = await inFlight()
    world.mapping.failOver(s0, { at: 'trim-horizon' })
    world.invoker.answer = () => failed()
    await world.clock.advance(10_000)
    expect(world.checkpoints.at(s0)).toBe('2')
    expect(world.shard()).toMatchObject({ state: 'retrying', unfinished: 6 })
    await world.stop()
  })

  test('stopping waits for what the old poller has in flight', async () => {
    const { world, effects } = await inFlight()
    world.mapping.failOver(s0)
    await world.clock.advance(500)
    let isStopped = false
    const stopping = world.mapping.stop().then(() => {
      isStopped = true
    })
    await world.clock.advance(1_000)
    expect(isStopped).toBe(false)
    await world.clock.advance(5_000)
    await stopping
    expect(effects.slice(-2)).toEqual(['3', '4'])
  })

  test('a poller that is failed over while it is paused ends, and so does the mapping', async () => {
    const world = new MappingWorld()
    await world.run(500)
    world.mapping.pause()
    await world.clock.advance(5_000)
    world.mapping.failOver(s0)
    await world.stop()
    expect(world.mapping.status().state).toBe('stopped')
  })

  test('with LATEST and nothing saved but the moment of the start, nothing that came since is skipped', async () => {
    const world = new MappingWorld({ startingPosition: 'LATEST' })
    await world.run(500)
    world.stream.put(s0, 1)
    world.mapping.failOver(s0)
    await world.clock.advance(5_000)
    expect(world.invoker.batches).toEqual(['1'])
    await world.stop()
  })

  test('a shard that is drained or unknown has no poller to fail', async () => {
    const world = new MappingWorld()
    world.stream.put(s0, 1)
    world.stream.close(s0)
    await world.run(5_000)
    world.mapping.failOver(s0, { at: 'trim-horizon' })
    world.mapping.failOver('shardId-000000000009')
    await world.clock.advance(20_000)
    expect(world.invoker.batches).toEqual(['1'])
    expect(world.shard().state).toBe('drained')
    await world.stop()
  })
})
