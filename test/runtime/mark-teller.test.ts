/** The invariants of mark-teller.ts, by number. */
import { firstHashOf } from '../../lib/core/slot.ts'
import type { Feed } from '../../lib/plan/plan.ts'
import type { ControlFrame } from '../../lib/runtime/frames/frame.ts'
import { decodeFrame } from '../../lib/runtime/frames/frame-format.ts'
import { MarkTeller } from '../../lib/runtime/mark-teller.ts'
import type { Ports } from '../../lib/runtime/ports.ts'
import type { ListedPartition } from '../../lib/runtime/progress/lineage.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { sourceLineage } from '../../lib/testing/memory-streams.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'

const { signal } = new AbortController()
const slots = 4
const everyMs = 1_000

const shard = (partition: string, from: number, until: number, isClosed = false): ListedPartition => ({
  partition,
  parents: [],
  startHash: firstHashOf(from, slots),
  endHash: String(until === slots ? 2n ** 128n - 1n : BigInt(firstHashOf(until, slots)) - 1n),
  isClosed,
})

/** A teller of stage `trips`, which feeds `one` and `two`, both with these shards. */
function world(shards: readonly ListedPartition[] = [shard('a', 0, 2), shard('b', 2, 4), shard('old', 0, 4, true)]) {
  const clock = new VirtualClock()
  const memory = memoryPorts({ clock })
  const told: string[] = []
  const state = { shards, listed: 0, broken: new Set<string>() }
  const ports: Ports = {
    ...memory,
    lineage: () => ({
      ...sourceLineage,
      list: async () => {
        state.listed++
        return state.shards
      },
    }),
    frames: (stage) => ({
      publish: async (frames) => {
        if (state.broken.has(stage)) throw new Error('throttled')
        for (const { bytes } of frames) {
          const { from, slot, news } = decodeFrame(bytes) as ControlFrame
          for (const { upstream, state: is, markMs } of news) {
            told.push(`${stage} slot ${slot}: ${is} ${upstream.name}/${upstream.partition} ${markMs} from the ${from}`)
          }
        }
      },
    }),
  }
  const feeds = ['one', 'two'].map((stage) => ({ stage, slots }) as Feed)
  const teller = new MarkTeller({ stage: 'trips', feeds, ports, everyMs })
  const tell = async (markMs: number, partition = 'p-0') => {
    told.length = 0
    await teller.tell({ partition, generation: 1 }, markMs, signal)
    return [...told]
  }
  return { clock, tell, state, lines: memory.lines }
}

const lineFor = (stage: string, slot: number, markMs: number, partition = 'p-0') =>
  `${stage} slot ${slot}: open trips/${partition} ${markMs} from the stage`

test('a mark goes to one slot of every open partition of each stage that is fed (2)', async () => {
  const { tell } = world()
  expect(await tell(5)).toEqual([
    lineFor('one', 0, 5),
    lineFor('one', 2, 5),
    lineFor('two', 0, 5),
    lineFor('two', 2, 5),
  ])
})

test('no mark is none to tell (2)', async () => {
  const { tell, state } = world()
  expect(await tell(Number.NEGATIVE_INFINITY)).toEqual([])
  expect(state.listed).toBe(0)
})

test('only what has moved is told, at most once in its time, each partition by itself (2)', async () => {
  const { tell, clock } = world([shard('a', 0, 4)])
  expect(await tell(5)).toHaveLength(2)
  clock.advance(everyMs)
  expect(await tell(5)).toEqual([])
  expect(await tell(4)).toEqual([])
  expect(await tell(6)).toHaveLength(2)
  clock.advance(everyMs - 1)
  expect(await tell(7)).toEqual([])
  expect(await tell(7, 'p-1')).toHaveLength(2)
  clock.advance(1)
  expect(await tell(7)).toHaveLength(2)
})

test('partitions that were split are found within a minute', async () => {
  const { tell, state, clock } = world([shard('a', 0, 4)])
  expect(await tell(1)).toEqual([lineFor('one', 0, 1), lineFor('two', 0, 1)])
  state.shards = [shard('a', 0, 4, true), shard('b', 0, 2), shard('c', 2, 4)]
  clock.advance(59_999)
  expect(await tell(2)).toHaveLength(2)
  clock.advance(60_000)
  expect(await tell(3)).toEqual([
    lineFor('one', 0, 3),
    lineFor('one', 2, 3),
    lineFor('two', 0, 3),
    lineFor('two', 2, 3),
  ])
  expect(state.listed).toBe(4)
})

test('a stage that cannot be told fails nothing and keeps no other from being told; the mark is told again (3)', async () => {
  const { tell, state, lines } = world([shard('a', 0, 4)])
  state.broken.add('one')
  expect(await tell(5)).toEqual([lineFor('two', 0, 5)])
  expect(lines).toEqual([
    { level: 'warn', message: expect.any(String), fields: expect.objectContaining({ partition: 'p-0', fed: 'one' }) },
  ])
  state.broken.clear()
  expect(await tell(5)).toEqual([lineFor('one', 0, 5), lineFor('two', 0, 5)])
})
