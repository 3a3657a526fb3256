/** A shard that was merged of two which had come to different times: G9 of docs/progress.md. */
import { SourceRecord } from '../../../lib/core/record.ts'
import { firstHashOf, slotOf } from '../../../lib/core/slot.ts'
import type { UpstreamNews } from '../../../lib/runtime/frames/frame.ts'
import { encodeControl, encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { endOf, firstPosition, ownPosition } from '../../../lib/runtime/frames/position.ts'
import type { PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import type { Runner, RunnerOptions } from '../../../lib/runtime/runner.ts'
import { sourceLineage } from '../../../lib/testing/memory-streams.ts'
import { graceMs, slots, trips as topology } from '../announcer/announcer-world.ts'
import { lost, StageWorld } from '../stage-world.ts'

const upstream = { name: 'trips', partition: 'p-0' }
const half = BigInt(firstHashOf(slots / 2, slots))
const ranges: Readonly<Record<string, readonly [bigint, bigint]>> = {
  left: [0n, half],
  right: [half, 2n ** 128n],
  merged: [0n, 2n ** 128n],
}
const lineage: PartitionLineage = {
  ...sourceLineage,
  describe: async (partition) => {
    const [start, end] = ranges[partition] as readonly [bigint, bigint]
    const parents = partition === 'merged' ? ['left', 'right'] : []
    return { parents, startHash: String(start), endHash: String(end - 1n) }
  },
  isDrained: async () => true,
}

const news = (markMs: number): UpstreamNews => ({ upstream, state: 'open', markMs, lastSent: new Map() })
const mark = (slot: number, markMs: number) =>
  encodeControl({ kind: 'control', from: 'announcer', slot, news: [news(markMs)] }).bytes

/** The first records of their slots: a frame for each slot. */
function trips(keys: readonly string[], eventTimeMs: number): readonly Uint8Array[] {
  const inSlots = Map.groupBy(keys, (key) => slotOf(key, slots))
  return [...inSlots].map(([slot, own]) => {
    const origin = { source: 'trips', partition: 'p-0', position: '1', subPosition: 0, arrivalTimeMs: 0 }
    const head = { side: 'by-driver', eventTimeMs, ownMarkMs: 0, origin, redrive: undefined }
    const records = own.map((key, i) => ({
      ...head,
      ...{ position: ownPosition(1 + i, 0), key, value: Buffer.from(JSON.stringify(key)) },
    }))
    const claims = [{ previous: firstPosition, last: endOf(own.length) }]
    return encodeFrame({ kind: 'frame', upstream, slot, schemaVersion: 1, markMs: 0, claims, records }).bytes
  })
}

/** Runs a batch; the answer is why it ended before its end. */
async function run(runner: Runner, partition: string, entries: readonly Uint8Array[]): Promise<readonly unknown[]> {
  const records = entries.map(
    (payload, i) =>
      new SourceRecord({
        ...{ source: 'by-driver', partition, position: String(i + 1), arrivalTimeMs: 0, key: 'k' },
        payload: Buffer.from(payload),
      }),
  )
  const { failures } = await runner.run([{ partition, records }], { deadlineMs: Number.MAX_SAFE_INTEGER })
  return failures.map(({ error }) => error)
}

/** Keys by the half that their slot is in. */
const keysOf = (isRight: boolean) => [...'abcdefghijkl'].filter((key) => slotOf(key, slots) >= slots / 2 === isRight)

/** Both parents are read to their ends: the left one has come to 300, the right one to 150, where windows up to 200 wait. */
async function parentsRead(world: StageWorld, keys: readonly string[]): Promise<void> {
  const runner = container(world)
  await run(runner, 'left', [mark(0, 0), ...trips(keysOf(false).slice(0, 1), 10), mark(0, 300)])
  await run(runner, 'right', [mark(2, 0), ...trips(keys, 120), mark(2, 150)])
  expect(world.frames.map(({ upstream: { partition } }) => partition)).toEqual(['left'])
  world.frames.length = 0
}

const container = (world: StageWorld, options: RunnerOptions = {}) =>
  world.container(options, { lineage: (stage) => (stage === 'by-driver' ? lineage : sourceLineage) })

const tick = encodeControl({ kind: 'control', from: 'announcer', slot: 0, news: [] }).bytes

test('what the slower parent left to fire is in time for the windows below', async () => {
  const world = new StageWorld(topology({ below: true }), 'by-driver')
  await parentsRead(world, keysOf(true).slice(0, 1))
  expect(await run(container(world), 'merged', [tick])).toEqual([])
  // Results and marks are held back by the grace of 'final' windows.
  expect(world.frames).toMatchObject([
    { markMs: 150 - graceMs, records: [{ key: '1', eventTimeMs: 199, ownMarkMs: 150 - graceMs }] },
  ])
})

test('where the first number is cut, what still has to fire at it keeps its due entry', async () => {
  const world = new StageWorld(topology({ below: true }), 'by-driver')
  const keys = keysOf(true).slice(0, 4)
  expect(keys).toHaveLength(4)
  await parentsRead(world, keys)
  let commits = 0
  world.before = ({ name }) => (name === 'commit' && ++commits === 2 ? lost() : undefined)
  expect(await run(container(world, { mostKeysPerCommit: 1 }), 'merged', [tick])).toHaveLength(1)
  expect(commits).toBe(2)
  world.before = () => undefined
  expect(await run(container(world), 'merged', [tick])).toEqual([])
  const results = world.frames.flatMap(({ records }) => records)
  expect(new Set(results.map(({ position }) => position.keyHash)).size).toBe(keys.length)
  // The attempt that goes on has the mark from stored progress.
  expect(new Set(results.map(({ ownMarkMs }) => ownMarkMs))).toEqual(new Set([150 - graceMs]))
})
