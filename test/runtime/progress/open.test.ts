import { ownPosition } from '../../../lib/runtime/frames/position.ts'
import { KeyedFold } from '../../../lib/runtime/progress/fold.ts'
import { comparePartitionPositions, type PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import { mergeKeyed, mergeSource } from '../../../lib/runtime/progress/merge.ts'
import { openKeyedProgress, openSourceProgress, progressName } from '../../../lib/runtime/progress/open.ts'
import {
  blankKeyedProgress,
  blankSourceProgress,
  type KeyedProgress,
  type SourceProgress,
} from '../../../lib/runtime/progress/progress.ts'
import { writeKeyedProgress, writeSourceProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { PlainFrame } from './naive-fold.ts'
import { entryAt, upstreamOf } from './plain-log.ts'

const signal = new AbortController().signal
const largestHash = 2n ** 128n - 1n

interface Shard {
  readonly parents?: readonly string[]
  /** The part of all hashes that it holds, as quarters. */
  readonly quarters?: readonly [from: number, until: number]
  readonly closed?: boolean
  /** The position of the last record that it holds; 0 where it holds none. */
  readonly last?: number
}

/** A stream as its shards; those that are left out are trimmed. */
function lineageOf(shards: { readonly [partition: string]: Shard }): PartitionLineage & { readonly calls: string[] } {
  const calls: string[] = []
  const quarter = (largestHash + 1n) / 4n
  return {
    calls,
    async describe(partition) {
      calls.push(`describe ${partition}`)
      const shard = shards[partition]
      if (!shard) return undefined
      const [from, until] = shard.quarters ?? [0, 4]
      return {
        parents: shard.parents ?? [],
        startHash: String(BigInt(from) * quarter),
        endHash: String(BigInt(until) * quarter - 1n),
      }
    },
    list: async () => [],
    isCaughtUp: async () => false,
    async isDrained(partition, after) {
      calls.push(`isDrained ${partition} ${after}`)
      const { closed = false, last = 0 } = shards[partition] ?? {}
      return closed && comparePartitionPositions(String(last), after ?? '0') <= 0
    },
  }
}

/** Progress by partition. */
type Stored = { readonly [partition: string]: Partial<SourceProgress> | KeyedProgress }

async function storeWith(values: Stored) {
  const store = new MemoryStateStore({ stage: 'by-hotel', clock: { nowMs: () => 0 } })
  for (const [partition, progress] of Object.entries(values)) {
    const value =
      'memories' in progress
        ? writeKeyedProgress(progress)
        : writeSourceProgress({ ...blankSourceProgress, ...progress })
    await store.writeProgress(progressName('by-hotel', partition), 0, value, signal)
  }
  return store
}

async function openSource(partition: string, shards: Parameters<typeof lineageOf>[0], values: Stored = {}) {
  const options = { store: await storeWith(values), stage: 'by-hotel', partition, lineage: lineageOf(shards), signal }
  return openSourceProgress(options)
}

async function openKeyed(partition: string, shards: Parameters<typeof lineageOf>[0], values: Stored = {}, slots = 4) {
  const lineage = lineageOf(shards)
  const options = { store: await storeWith(values), stage: 'by-hotel', partition, lineage, slots, signal }
  return { ...(await openKeyedProgress(options)), calls: lineage.calls }
}

const notDrained = expect.objectContaining({ name: 'RetryableError', code: 'parent-not-drained' })
const timed = (largestEventTimeMs: number, fields: Partial<SourceProgress> = {}): Partial<SourceProgress> => ({
  largestEventTimeMs,
  largestArrivedAtMs: largestEventTimeMs + 1,
  ...fields,
})

/** Keyed progress that has read one frame of a slot. */
function keyedWith(held: readonly number[], slot: number, fields: Partial<KeyedProgress> = {}): KeyedProgress {
  const frame: PlainFrame = {
    kind: 'frame',
    upstream: 'p-0',
    slot,
    mark: 3,
    records: [slot + 1],
    covers: [[0, slot + 1]],
  }
  const fold = new KeyedFold(blankKeyedProgress(4, held), { retentionMs: 1 })
  fold.fold(entryAt(frame, 0), 0)
  return { ...fold.result(), ...fields }
}

describe('opening progress (G1: children wait for their parents)', () => {
  test('stored progress is taken as it is, and the stream is not asked', async () => {
    const { version, progress, calls } = await openKeyed('a', {}, { a: keyedWith([0, 1, 2, 3], 2) })
    expect([version, progress.number, progress.held, calls]).toEqual([1, 1, [0, 1, 2, 3], []])
  })

  test('a partition without parents begins at nothing', async () => {
    expect(await openSource('a', { a: {} })).toEqual({ version: 0, progress: blankSourceProgress })
    const { version, progress } = await openKeyed('b', { b: { quarters: [1, 3] } })
    expect([version, progress]).toEqual([0, blankKeyedProgress(4, [1, 2])])
  })

  test.each([
    ['is open', { closed: false, last: 7 }, '7'],
    ['was not read to its end', { closed: true, last: 8 }, '7'],
    ['holds a record and was never read', { closed: true, last: 8 }, undefined],
    ['is open and never held a record', { closed: false }, undefined],
  ])('not begun while the parent %s', async (_, parent, completed) => {
    const values: Stored = completed === undefined ? {} : { a: { completed } }
    await expect(openSource('b', { a: parent, b: { parents: ['a'] } }, values)).rejects.toEqual(notDrained)
  })

  test('one parent of two that is not drained holds the child back, and the error says which', async () => {
    const shards = { a: { closed: true, last: 7 }, b: { closed: true, last: 9 }, c: { parents: ['a', 'b'] } }
    const opening = openSource('c', shards, { a: { completed: '7' }, b: { completed: '8' } })
    await expect(opening).rejects.toThrow('partition b to its end (it has completed 8), and partition c follows it')
  })

  test('a partition that the stream does not know is refused', async () => {
    await expect(openSource('a', {})).rejects.toEqual(expect.objectContaining({ code: 'partition-unknown' }))
  })
})

describe('opening progress (G2: empty parents)', () => {
  const chain = (parent: Shard) => ({ a: parent, b: { parents: ['a'], closed: true }, c: { parents: ['b'] } })

  test('a closed parent that never held a record stands for its own parents', async () => {
    const { progress } = await openSource('c', chain({ closed: true, last: 7 }), {
      a: timed(50, { completed: '7', number: 3 }),
    })
    expect(progress).toMatchObject({ number: 3, largestEventTimeMs: 50, completed: undefined })
  })

  test('and those must be drained as well', async () => {
    const opening = openSource('c', chain({ closed: true, last: 7 }), { a: { completed: '6' } })
    await expect(opening).rejects.toEqual(notDrained)
  })

  test('empty parents hand on the slots that they held and no others', async () => {
    const shards = {
      a: { closed: true, last: 7 },
      b: { parents: ['a'], quarters: [0, 2], closed: true },
      c: { parents: ['a'], quarters: [2, 4], closed: true, last: 9 },
      d: { parents: ['b', 'c'] },
    } as const
    const root = keyedWith([0, 1, 2, 3], 1, { completed: '7' })
    const right = keyedWith([2, 3], 2, { completed: '9', number: 12 })
    const { progress } = await openKeyed('d', shards, { a: root, c: right })
    expect(progress.number).toBe(12)
    expect([1, 2].map((slot) => progress.memories.of(upstreamOf('p-0'), slot)?.high)).toEqual([
      root.memories.of(upstreamOf('p-0'), 1)?.high,
      right.memories.of(upstreamOf('p-0'), 2)?.high,
    ])
  })

  test('two empty parents with one parent of their own ask for it once', async () => {
    const shards = {
      a: { closed: true },
      b: { parents: ['a'], quarters: [0, 2], closed: true },
      c: { parents: ['a'], quarters: [2, 4], closed: true },
      d: { parents: ['b', 'c'] },
    } as const
    const { progress, calls } = await openKeyed('d', shards)
    expect(progress).toEqual(blankKeyedProgress(4, [0, 1, 2, 3]))
    expect(calls.filter((call) => call === 'isDrained a undefined')).toHaveLength(1)
  })
})

describe('opening progress (G3: trimmed parents)', () => {
  test('one counts as drained, with the progress that it left', async () => {
    const { progress } = await openSource(
      'b',
      { b: { parents: ['a'] } },
      { a: timed(50, { completed: '7', number: 3 }) },
    )
    expect(progress).toMatchObject({ number: 3, largestEventTimeMs: 50 })
  })

  test('without progress it means nothing, beside others that left some', async () => {
    expect((await openSource('b', { b: { parents: ['a'] } })).progress).toEqual(blankSourceProgress)
    const shards = { b: { closed: true, last: 7 }, c: { parents: ['a', 'b'] } }
    const { progress } = await openSource('c', shards, { b: timed(50, { completed: '7', number: 3 }) })
    expect(progress).toMatchObject({ number: 3, largestEventTimeMs: 50 })
  })
})

describe('opening progress (refusals)', () => {
  test('another number of slots names stage, progress and remedy', async () => {
    const opening = openKeyed('a', {}, { a: keyedWith([0], 0) }, 8)
    await expect(opening).rejects.toEqual(
      expect.objectContaining({
        name: 'RetryableError',
        code: 'slots-changed',
        message: expect.stringContaining(
          'stage "by-hotel" has 8 slots, but the progress of stage "by-hotel" in partition a was made with 4',
        ),
      }),
    )
  })

  test('parents with another number of slots as well', async () => {
    const shards = { a: { closed: true }, b: { parents: ['a'] } }
    await expect(openKeyed('b', shards, { a: keyedWith([0], 0) }, 8)).rejects.toEqual(
      expect.objectContaining({ code: 'slots-changed' }),
    )
  })
})

describe('merging (G5 to G9)', () => {
  test('of sources: the least of the largest event times, with its arrival, of those that had a record', () => {
    const parents = [timed(70), timed(40, { number: 9, doneThrough: 9 }), {}].map((fields) => ({
      ...blankSourceProgress,
      ...fields,
    }))
    expect(mergeSource(parents)).toEqual({
      ...blankSourceProgress,
      number: 9,
      doneThrough: 9,
      largestEventTimeMs: 40,
      largestArrivedAtMs: 41,
    })
    expect(mergeSource([blankSourceProgress])).toEqual(blankSourceProgress)
  })

  test('what was sent, completed, failing and suspected is not handed on', () => {
    const sent = new Map([['by-hotel', new Map([[0, ownPosition(3, 0)]])]])
    const failing = { number: 3, attempts: 1 }
    const suspect = { from: 1, to: 3, attempts: 1 }
    const used = { completed: '9', sent, failing, suspect }
    expect(mergeSource([{ ...blankSourceProgress, ...used }])).toEqual(blankSourceProgress)
    expect(mergeKeyed([{ ...blankKeyedProgress(4, [0]), ...used }], 4, [0])).toEqual(blankKeyedProgress(4, [0]))
  })

  test('numbers go on behind what a parent did of an entry that retention then took', () => {
    const parents = [{ ...blankSourceProgress, number: 5, doneThrough: 8 }]
    expect(mergeSource(parents)).toMatchObject({ number: 8, doneThrough: 8 })
  })

  test('until its first number a child goes by the mark of the parent that left something due (G9)', () => {
    const at = (watermarkMs: number, slot: number, dueMs?: number): KeyedProgress => ({
      ...blankKeyedProgress(4, [slot]),
      watermarkMs,
      earliest: { event: new Map(dueMs === undefined ? [] : [[slot, dueMs]]), processing: new Map() },
    })
    const marksOf = ({ watermarkMs, openingMarkMs }: KeyedProgress) => [watermarkMs, openingMarkMs]
    const child = mergeKeyed([at(50, 0, 70), at(100, 1, 120)], 4, [0, 1])
    expect(marksOf(child)).toEqual([100, 50])
    // What is not reached yet fires in its own time, and a parent that waits for nothing holds nothing back.
    expect(marksOf(mergeKeyed([at(50, 0, 101), at(100, 1)], 4, [0, 1]))).toEqual([100, undefined])
    expect(marksOf(mergeKeyed([at(50, 0), at(100, 1, 120)], 4, [0, 1]))).toEqual([100, undefined])
    // A child that never held a record hands it on.
    expect(marksOf(mergeKeyed([child, at(110, 2)], 4, [0, 1, 2]))).toEqual([110, 50])
    const fold = new KeyedFold(child, { retentionMs: 1 })
    expect(marksOf(fold.result())).toEqual([100, 50])
    fold.fold(entryAt({ kind: 'garbage', slot: 0 }, 0), 0)
    expect(marksOf(fold.result())).toEqual([100, undefined])
  })

  test('operator states go with their slots', () => {
    const operatorStates = new Map([
      [0, { 'once.seen': 3 }],
      [1, { 'once.seen': 4 }],
    ])
    const child = mergeKeyed([{ ...blankKeyedProgress(4, [0, 1]), operatorStates }], 4, [1])
    expect([...child.operatorStates]).toEqual([[1, { 'once.seen': 4 }]])
  })
})

test('C14: positions are compared as numbers, whatever their length', () => {
  const older = '9900000000002513012315'
  const newer = '10000000000002513012315'
  expect(comparePartitionPositions(older, newer)).toBeLessThan(0)
  expect(comparePartitionPositions(newer, older)).toBeGreaterThan(0)
  expect(comparePartitionPositions('17', '18')).toBeLessThan(0)
  expect(comparePartitionPositions('18', '17')).toBeGreaterThan(0)
  expect(comparePartitionPositions('0', '00')).toBe(0)
  expect(comparePartitionPositions('007', '10')).toBeLessThan(0)
})
