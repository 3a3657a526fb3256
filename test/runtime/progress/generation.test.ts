/** Generations (R1 to R6 of docs/progress.md). That state comes out right is in reset.property.test.ts. */
import { SourceRecord } from '../../../lib/core/record.ts'
import type { ControlFrame, EncodedFrame } from '../../../lib/runtime/frames/frame.ts'
import { encodeControl, encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { endOf, firstPosition, ownPosition } from '../../../lib/runtime/frames/position.ts'
import { KeyedFold } from '../../../lib/runtime/progress/fold.ts'
import {
  generationName,
  readGeneration,
  resetKeyed,
  resetSource,
  upstreamName,
  upstreamOf,
  writeGeneration,
} from '../../../lib/runtime/progress/generation.ts'
import type { PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import { openKeyedProgress, openSourceProgress, progressName } from '../../../lib/runtime/progress/open.ts'
import { blankKeyedProgress, blankSourceProgress } from '../../../lib/runtime/progress/progress.ts'
import { writeKeyedProgress, writeSourceProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import { wholePartition } from '../../../lib/testing/memory-streams.ts'

const { signal } = new AbortController()
const second = { ...blankKeyedProgress(1, [0]), completed: '5', number: 7, doneThrough: 7, generation: 2 }
const fold = () => new KeyedFold(second, { retentionMs: Number.POSITIVE_INFINITY })

let position = 10
const entryOf = ({ bytes }: EncodedFrame) =>
  new SourceRecord({
    ...{ source: 'by-key', partition: 'p', position: String(++position), arrivalTimeMs: 3, key: 'k' },
    payload: Buffer.from(bytes),
  })

const record = (number: number) => ({
  position: ownPosition(number, 0),
  ...{ side: 's', key: `k${number}`, ownMarkMs: 0, eventTimeMs: 0, value: Buffer.from('1'), redrive: undefined },
  origin: { source: 'orders', partition: 'p-0', position: String(number), subPosition: 0, arrivalTimeMs: 0 },
})
const frameOf = (name: string, ...numbers: readonly number[]) =>
  entryOf(
    encodeFrame({
      ...{ kind: 'frame', upstream: { name, partition: 'p-0' }, slot: 0, schemaVersion: 1, markMs: 50 },
      claims: [{ previous: firstPosition, last: endOf(numbers.at(-1) ?? 0) }],
      records: numbers.map(record),
    }),
  )
const controlOf = (from: ControlFrame['from'], ...names: readonly string[]) =>
  entryOf(
    encodeControl({
      ...{ kind: 'control', from, slot: 0 },
      news: names.map((name) => ({
        upstream: { name, partition: 'p-0' },
        ...{ state: 'open', markMs: 40, lastSent: new Map() },
      })),
    }),
  )

describe('names of upstreams (R1)', () => {
  test('tell the generation, but for the first', () => {
    expect([upstreamName('orders', 1), upstreamName('orders', 12)]).toEqual(['orders', 'orders@12'])
    expect(upstreamOf('orders')).toEqual({ stage: 'orders', generation: 1 })
    expect(upstreamOf('orders@12')).toEqual({ stage: 'orders', generation: 12 })
  })

  test('frames of an older generation are dropped record by record, each with its number, and leave no trace', () => {
    const folded = fold()
    const lines = folded.fold(frameOf('orders', 1, 2), 0)
    expect(lines.map(({ number, record: taken }) => [number, taken])).toEqual([
      [8, undefined],
      [9, undefined],
    ])
    expect(folded.duplicates).toBe(2)
    expect(folded.result().upstreams).toEqual(new Map())
    const own = folded.fold(frameOf('orders@2', 1, 2), 1)
    expect(own.map(({ number, record: taken }) => [number, taken?.key])).toEqual([
      [10, 'k1'],
      [11, 'k2'],
    ])
    // Within, upstreams are known by their stage: frames of the next generation do not fill progress with old ones.
    expect([...folded.result().upstreams.values()].map(({ upstream }) => upstream)).toEqual([
      { name: 'orders', partition: 'p-0' },
    ])
  })

  test('a newer generation waits, and the fold is as it was', () => {
    const folded = fold()
    expect(() => folded.fold(frameOf('orders@3', 1), 0)).toThrow(expect.objectContaining({ code: 'newer-generation' }))
    expect(() => folded.fold(controlOf('stage', 'orders@3'), 0)).toThrow(/run `millrace reset` again/)
    expect(folded.result()).toEqual(second)
  })

  test('what the announcer said before the reset makes nothing known, a tick included', () => {
    const folded = fold()
    folded.fold(controlOf('announcer', 'orders'), 0)
    folded.fold(controlOf('announcer'), 1)
    expect([folded.result().known, folded.result().watermarkMs]).toEqual([false, Number.NEGATIVE_INFINITY])
    folded.fold(controlOf('announcer', 'orders@2'), 2)
    expect([folded.result().known, folded.result().watermarkMs]).toEqual([true, 40])
  })
})

/** Every partition but the parent is open; the parent is closed, and drained where the read begins late enough. */
const lineage: PartitionLineage = {
  list: async () => [],
  isCaughtUp: async () => false,
  describe: async (partition) => ({ ...wholePartition, parents: partition === 'child' ? ['parent'] : [] }),
  isDrained: async (_partition, after, _signal, startsAtMs = 0) => after === '9' || startsAtMs >= 100,
}

function stage(name: string) {
  const store = new MemoryStateStore({ stage: name, clock: { nowMs: () => 0 } })
  const options = (partition: string) => ({ store, stage: name, partition, lineage, signal })
  return {
    store,
    source: (partition: string) => openSourceProgress(options(partition)),
    keyed: (partition: string) => openKeyedProgress({ ...options(partition), slots: 4 }),
  }
}

describe('the generation of a partition (R2, R3)', () => {
  test('without progress is that of its stage; while the stage is held it waits', async () => {
    const { store, source } = stage('orders')
    expect((await source('p')).progress).toEqual(blankSourceProgress)
    await writeGeneration(store, 'orders', { generation: 2, startsAtMs: 100, isHeld: true }, signal)
    await expect(source('p')).rejects.toMatchObject({ code: 'reset-underway' })
    await writeGeneration(store, 'orders', { generation: 2, startsAtMs: 100 }, signal)
    expect((await source('p')).progress).toEqual({ ...blankSourceProgress, generation: 2, startsAtMs: 100 })
    // Nobody goes back, and nobody begins the same generation again.
    for (const generation of [1, 2]) {
      const written = writeGeneration(store, 'orders', { generation, startsAtMs: 7 }, signal)
      await expect(written).rejects.toMatchObject({ code: 'reset-underway' })
    }
    expect(await readGeneration(store, 'orders', signal)).toEqual({ generation: 2, startsAtMs: 100 })
  })

  test('with progress is what that says, whatever generation its stage has begun', async () => {
    const { store, keyed } = stage('by-key')
    const progress = { ...blankKeyedProgress(4, [0, 1, 2, 3]), completed: '5', number: 3, doneThrough: 3 }
    await store.writeProgress(progressName('by-key', 'p'), 0, writeKeyedProgress(progress), signal)
    await writeGeneration(store, 'by-key', { generation: 2, isHeld: true }, signal)
    expect(await keyed('p')).toEqual({ version: 1, progress })
  })

  test('what a reset left of a source begins anew from its parents, over the version that is there (R4)', async () => {
    const { store, source } = stage('orders')
    const generation = { generation: 2, startsAtMs: 100 }
    await writeGeneration(store, 'orders', generation, signal)
    await store.writeProgress(progressName('orders', 'child'), 0, writeSourceProgress(resetSource(generation)), signal)
    const parent = { ...blankSourceProgress, ...generation, completed: '9', number: 4, doneThrough: 4 }
    const withTime = { ...parent, largestEventTimeMs: 70, largestArrivedAtMs: 120 }
    await store.writeProgress(progressName('orders', 'parent'), 0, writeSourceProgress(withTime), signal)
    const opened = await source('child')
    expect(opened.version).toBe(1)
    expect(opened.progress).toMatchObject({ ...generation, number: 4, completed: undefined, largestEventTimeMs: 70 })
  })

  test('a parent that holds nothing since the time of the reset is drained', async () => {
    const { store, source } = stage('orders')
    await expect(source('child')).rejects.toMatchObject({ code: 'parent-not-drained' })
    await writeGeneration(store, 'orders', { generation: 2, startsAtMs: 100 }, signal)
    expect((await source('child')).progress).toMatchObject({ generation: 2, startsAtMs: 100 })
  })

  test('a child of parents of another generation waits', async () => {
    const { store, keyed } = stage('by-key')
    const parent = { ...blankKeyedProgress(4, [0, 1, 2, 3]), completed: '9', number: 4, doneThrough: 4 }
    await store.writeProgress(progressName('by-key', 'parent'), 0, writeKeyedProgress(parent), signal)
    await writeGeneration(store, 'by-key', { generation: 2 }, signal)
    await expect(keyed('child')).rejects.toMatchObject({ code: 'reset-underway' })
  })

  test('that a newer release wrote waits for it', async () => {
    const { store } = stage('orders')
    await store.writeProgress(generationName('orders'), 0, { format: 2, generation: 5 }, signal)
    await expect(readGeneration(store, 'orders', signal)).rejects.toMatchObject({ code: 'newer-format' })
  })
})

test('a reset keeps the place of a keyed partition in its log, and its numbers (R5)', () => {
  const before = {
    ...blankKeyedProgress(4, [1, 2]),
    ...{ completed: '9', number: 40, doneThrough: 44, watermarkMs: 7, known: true, processingMs: 11 },
    failing: { number: 45, attempts: 2 },
  }
  expect(resetKeyed(before, { generation: 3 })).toEqual({
    ...blankKeyedProgress(4, [1, 2]),
    ...{ completed: '9', number: 40, doneThrough: 40, processingMs: 11, generation: 3 },
  })
})
