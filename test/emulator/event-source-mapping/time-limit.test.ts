import { EventSourceMapping, kinesisFormat, withTimeLimit } from '../../../lib/emulator/event-source-mapping/index.ts'
import { MappingWorld, s0, streamArn } from './mapping-world.ts'
import { answered } from './memory-ports.ts'

/** A mapping whose function may take 3 s. */
function limitedWorld(maximumRetryAttempts: number) {
  const world = new MappingWorld({ maximumRetryAttempts })
  const { stream: reader, checkpoints, clock, settings, destination: onFailure } = world
  const invoker = withTimeLimit(world.invoker, 3_000, clock)
  const format = kinesisFormat({ streamArn })
  world.mapping = new EventSourceMapping({ settings, format, reader, invoker, checkpoints, clock, onFailure })
  world.stream.put(s0, 1)
  return world
}

test('[D] a function that times out is a function error: it counts as an attempt, and the envelope says Unhandled', async () => {
  const world = limitedWorld(1)
  const startMs = world.clock.nowMs()
  world.invoker.answer = () => new Promise(() => {})
  await world.run(3_100)
  expect(world.shard()).toMatchObject({ state: 'retrying', reason: 'Task timed out after 3.00 seconds' })
  await world.clock.advance(10_000)
  expect(world.invoker.deliveries.map(({ atMs }) => atMs - startMs)).toEqual([0, 3_400])
  expect(world.destination.envelopes).toMatchObject([
    { requestContext: { approximateInvokeCount: 2 }, responseContext: { statusCode: 200, functionError: 'Unhandled' } },
  ])
  await world.stop()
})

test('an answer that comes after the limit is not heard, and one within it is', async () => {
  const world = limitedWorld(-1)
  world.invoker.answer = async (_, index) => {
    await world.clock.sleep(index === 0 ? 3_001 : 2_999)
    return answered(null)
  }
  await world.run(3_300)
  expect(world.checkpoints.at(s0)).toBeUndefined()
  await world.clock.advance(3_200)
  expect(world.invoker.batches).toEqual(['1', '1'])
  expect(world.checkpoints.at(s0)).toBe('1')
  await world.stop()
})
