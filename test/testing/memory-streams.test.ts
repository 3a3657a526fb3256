import fc from 'fast-check'
import { slotsHeld } from '../../lib/core/slot.ts'
import { sequenceNumber } from '../../lib/testing/events.ts'
import { MemoryStream, sourceLineage } from '../../lib/testing/memory-streams.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'

const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
const never = new AbortController().signal

function stream(slots: number, shards?: number) {
  const clock = new VirtualClock(1_000)
  const made = new MemoryStream({
    stage: 'by-hotel',
    slots,
    clock,
    logger,
    ...(shards === undefined ? {} : { shards }),
  })
  return { clock, stream: made }
}

const frame = (slot: number, text: string) => ({ slot, bytes: Buffer.from(text) })

test('a frame goes to the shard that holds its slot, in order, and is taken once', async () => {
  const { clock, stream: by } = stream(4)
  await by.publisher.publish([frame(0, 'a'), frame(3, 'b'), frame(1, 'c')], never)
  clock.advance(5)
  await by.publisher.publish([frame(0, 'd')], never)
  const shown = () =>
    by
      .take()
      .map(({ shardId, frames }) => [
        shardId,
        frames.map(({ bytes, index, arrivalTimeMs }) => `${index} ${Buffer.from(bytes).toString()} ${arrivalTimeMs}`),
      ])
  expect(shown()).toEqual([
    ['shardId-000000000000', ['0 a 1000', '1 c 1000', '2 d 1005']],
    ['shardId-000000000001', ['0 b 1000']],
  ])
  expect(shown()).toEqual([])
  await by.publisher.publish([frame(2, 'e')], never)
  expect(shown()).toEqual([['shardId-000000000001', ['1 e 1005']]])
})

test('a frame is found in the shard whose hash range says that it holds the slot, however many there are', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 1, max: 5 }), async (bits, shards) => {
      const slots = 2 ** bits
      const { stream: by } = stream(slots, shards)
      const all = Array.from({ length: slots }, (_, slot) => frame(slot, String(slot)))
      await by.publisher.publish(all, never)
      const found = new Set<number>()
      for (const { shardId, frames } of by.take()) {
        const held = slotsHeld((await by.lineage.describe(shardId, never)) ?? { startHash: '0', endHash: '0' }, slots)
        for (const { slot } of frames) {
          expect(held).toContain(slot)
          found.add(slot)
        }
      }
      expect(found.size).toBe(slots)
    }),
    { numRuns: 50 },
  )
})

test('an aborted publish appends nothing and rejects', async () => {
  const { stream: by } = stream(4)
  const aborted = AbortSignal.abort()
  await expect(by.publisher.publish([frame(0, 'a')], aborted)).rejects.toThrow('stage "by-hotel"')
  expect(by.take()).toEqual([])
})

test('shards have no parents and are never drained; a shard of another stream is unknown', async () => {
  const { stream: by } = stream(4)
  expect(await by.lineage.describe('shardId-000000000001', never)).toMatchObject({ parents: [] })
  expect(await by.lineage.describe('shardId-000000000002', never)).toBeUndefined()
  expect(await by.lineage.isDrained('shardId-000000000001', undefined, never)).toBe(false)
  expect(await sourceLineage.describe('anything', never)).toMatchObject({ parents: [], startHash: '0' })
})

test('a shard is caught up where nothing is behind a position', async () => {
  const { stream: by } = stream(4)
  const [shard] = (await by.lineage.list(never)).map(({ partition, isClosed }) => ({ partition, isClosed }))
  expect(shard).toEqual({ partition: 'shardId-000000000000', isClosed: false })
  const isCaughtUp = (after?: string) => by.lineage.isCaughtUp('shardId-000000000000', after, never)
  expect(await isCaughtUp()).toBe(true)
  await by.publisher.publish([frame(0, 'a'), frame(0, 'b')], never)
  expect([await isCaughtUp(), await isCaughtUp(sequenceNumber(0)), await isCaughtUp(sequenceNumber(1))]).toEqual([
    false,
    false,
    true,
  ])
})
